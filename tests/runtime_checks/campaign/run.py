"""The campaign: right transfers that must be silent, and faults that must be found."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.runtime_checks.campaign.calls import Call
from tests.runtime_checks.campaign.judge import (
    Ear,
    Place,
    miscounted,
    named,
    past_ends,
    placed,
    wrong_places,
)
from tests.runtime_checks.campaign.lifetimes import CRASHES, STORIES, Stage
from tests.runtime_checks.campaign.mutators import BEYOND, MUTATORS, Scene
from tests.runtime_checks.campaign.oracle import Effect, another_request, effect
from tests.runtime_checks.campaign.shapes import Shape, shapes
from tests.runtime_checks.campaign.world import Fleet, World

KINDS = (*MUTATORS, *STORIES)


@dataclass
class Count:
    """Of one kind of mutant. `dropped` counts what was no fault, by why."""

    mutants: int = 0
    found: int = 0
    placed: int = 0
    refused: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass
class Tally:
    """What came of it. The two lists hold one line each for what should not have been."""

    transfers: int = 0
    kinds: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    @property
    def mutants(self) -> int:
        return sum(count.mutants for count in self.kinds.values())

    def add(self, other: "Tally") -> None:
        """What came of another campaign, of another seed."""
        self.transfers += other.transfers
        self.missed += other.missed
        self.alarms += other.alarms
        for kind, count in other.kinds.items():
            own = self.kinds[kind]
            own.mutants += count.mutants
            own.found += count.found
            own.placed += count.placed
            own.refused += count.refused
            own.dropped += count.dropped


class Campaign:
    """A number of right transfers and of mutants, spread evenly over the geometries drawn."""

    def __init__(self, transfers: int, mutants: int, number: int, each: int = 40) -> None:
        """`each`: right transfers in one geometry."""
        self.transfers, self.mutants, self.seed, self.each = transfers, mutants, number, each
        self.tally, self.ear = Tally(), Ear()
        self.fleet, self.worlds = Fleet(), 0
        # Of mutants in one geometry: so many that both numbers are reached together, or nearly.
        self.share = min(24, math.ceil(mutants * each / max(1, transfers - mutants)))

    def run(self, progress: Callable[[Tally], None] = lambda tally: None) -> Tally:
        most = 100 + 4 * (self.transfers // self.each + self.mutants)

        @seed(self.seed)
        @settings(
            max_examples=most,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(shapes())
        def play(shape: Shape) -> None:
            if not self._enough():
                self._play(shape)
                progress(self.tally)

        play()
        return self.tally

    def _enough(self) -> bool:
        return self.tally.transfers >= self.transfers and self.tally.mutants >= self.mutants

    def _play(self, shape: Shape) -> None:
        self.worlds += 1
        if self.worlds % 40 == 0:  # UCX keeps the sockets of peers that are gone
            self.fleet = Fleet()
        world = World(self.fleet, shape)
        self._silent("preparing", shape)
        for _ in range(self.each):
            self._right(world, world.random.randrange(1, 1 + shape.peers))
        barren: set[str] = set()
        end = min(self.mutants, self.tally.mutants + self.share)
        if shape.layout == "bare":
            end = 0
        while self.tally.mutants < end and (kind := self._rarest(barren)):
            before = self.tally.mutants
            if kind in STORIES:
                self._story(kind, world.random)
            else:
                self._mutant(kind, world)
            if self.tally.mutants == before:
                barren.add(kind)
        world.close()
        self._silent("closing", shape)

    def _rarest(self, barren: set[str]) -> str | None:
        """Kinds get equal shares, except where a geometry has no room for them."""
        possible = [k for k in KINDS if k not in barren and (self.ear.hears or k not in CRASHES)]
        return min(possible, key=lambda kind: self.tally.kinds[kind].mutants, default=None)

    def _silent(self, what: str, about: object) -> None:
        for record in self.ear.said():
            self.tally.alarms.append(f"{what}: {record['check']}: {record['message']}: {about}")

    def _right(self, world: World, peers: int) -> None:
        """One transfer, or one to each of several peers, in flight together."""
        together = peers if world.shape.operation == "WRITE" else 1
        chosen = world.random.sample(range(world.shape.peers), together)
        least = world.random.random() < 0.2
        calls = [world.by_least(peer) if least else world.right(peer) for peer in chosen]
        self._twin(world, *calls)

    def _twin(self, world: World, *calls: Call) -> None:
        effects = [(call.peer, _sure(effect(call))) for call in calls]
        described = len(calls) == 1 and world.random.random() < 0.1
        run = world.run_described if described else world.run
        landed = world.landed(lambda: run(*calls), *effects)
        self.tally.transfers += len(calls)
        if not landed:
            self.tally.alarms.append(f"bytes of a right transfer are wrong: {world.shape}")
        self._silent("right transfer", world.shape)

    def _mutant(self, kind: str, world: World) -> None:
        count = self.tally.kinds[kind]
        peer = world.random.randrange(world.shape.peers)
        right = world.right(peer)
        mine, theirs = world.mine, world.theirs[peer]
        fault = MUTATORS[kind](Scene(right, mine, theirs, world.random))
        if fault is None:
            count.dropped["no room"] += 1
            return
        before, done = _sure(effect(right)), effect(fault.call)
        if before.same(done):
            count.dropped["same bytes"] += 1
            return
        declared = world.shape.layout == "one"
        apart = kind != "constant stride, both sides"
        other = another_request(fault.call, mine, theirs, declared=declared, apart=apart)
        if other and "index-dtype" not in fault.checks:
            count.dropped["another request"] += 1
            return
        self._twin(world, right)
        count.mutants += 1
        try:
            wanted = [] if done is None or done.repeats() else [(peer, done)]
            landed = world.landed(lambda: world.run(fault.call), *wanted)
            if wanted and not landed:
                self.tally.alarms.append(f"{kind}: not where the oracle says: {world.shape}")
        except Exception as error:
            if not type(error).__module__.endswith("_bindings"):
                raise
            count.refused += 1
        places = wrong_places(right, fault.call, mine, theirs)
        places |= miscounted(fault.call, mine, theirs)
        if fault.checks & BEYOND:
            places |= past_ends(fault.call, mine, theirs)
        self._judge(kind, fault.checks, places, world.shape)

    def _story(self, kind: str, random: Random) -> None:
        count, state = self.tally.kinds[kind], random.getstate()
        told = None
        for faulty in (False, True):
            random.setstate(state)  # the same geometry, the same choices
            stage = Stage(*self.fleet.pair, random)
            told = STORIES[kind](stage, faulty)
            if not faulty:
                self.tally.transfers += 1
                if told is not None and not stage.arrived():
                    self.tally.alarms.append(f"{kind}: bytes of the right twin are wrong")
                self._silent(f"{kind}, right twin", "")
            elif told is None:
                count.dropped["no room"] += 1
                self.ear.said()
            else:
                count.mutants += 1
                self._judge(kind, told.checks, told.places, "")
            stage.close()
            self._silent(f"{kind}, closing", "")
            del stage

    def _judge(
        self, kind: str, checks: frozenset[str], places: frozenset[Place], about: object
    ) -> None:
        count, records = self.tally.kinds[kind], self.ear.said()
        right = named(records, checks)
        count.found += bool(right)
        count.placed += any(placed(record, places) for record in right)
        if not any(placed(record, places) for record in right):
            said = [
                (r["check"], r["side"], r["region"], r["slot"], r["message"]) for r in records[:4]
            ]
            self.tally.missed.append(f"{kind}: {said or 'nothing said'}: {about}")


def _sure(done: Effect | None) -> Effect:
    assert done is not None, "a right call is one that NIXL takes"
    return done
