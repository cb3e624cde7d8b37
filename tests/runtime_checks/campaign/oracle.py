"""Where bytes land, computed from addresses alone: what a transfer does, whoever asked for it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.runtime_checks.campaign.calls import Call, Side
from tests.runtime_checks.campaign.memory import WORD, Memory

Place = tuple[int, int]


def taken(indices: Any) -> np.ndarray:
    """The descriptor numbers that NIXL 1.5.1 makes of an array: a cast to 32 bits, unasked."""
    with np.errstate(invalid="ignore"):
        return np.asarray(indices).astype(np.int64) % 2**32


@dataclass(frozen=True)
class Effect:
    """Source, destination and bytes of every piece, in order; None where NIXL must refuse."""

    sources: np.ndarray
    targets: np.ndarray
    lengths: np.ndarray

    def same(self, other: "Effect | None") -> bool:
        """Whether the same bytes land in the same places."""
        return other is not None and self.landing() == other.landing()

    def landing(self) -> frozenset[tuple[int, int, int]]:
        return frozenset(
            zip(self.sources.tolist(), self.targets.tolist(), self.lengths.tolist(), strict=True)
        )

    def repeats(self) -> bool:
        """Whether a byte is written twice."""
        order = np.argsort(self.targets)
        ends = self.targets[order] + self.lengths[order]
        return bool((self.targets[order][1:] < ends[:-1]).any())


def effect(call: Call) -> Effect | None:
    """What the call does; None where an index is in no list or two lengths differ."""
    both = {}
    for name in ("local", "remote"):
        side = call.side(name)
        addresses, lengths = side.descriptors()
        numbers = taken(side.indices)
        if len(numbers) == 0 or (numbers >= len(addresses)).any():
            return None
        both[name] = addresses[numbers], lengths[numbers]
    (sources, sizes), (targets, others) = both[call.source], both[call.destination]
    if len(sizes) != len(others) or (sizes != others).any():
        return None
    return Effect(sources, targets, sizes)


def hits(side: Side, memory: Memory) -> list[Place | None]:
    """Region and slot that each position really reaches."""
    addresses, _ = side.descriptors()
    return [
        memory.owner(int(addresses[number])) if number < len(addresses) else None
        for number in taken(side.indices).tolist()
    ]


def listed(side: Side) -> list[Place | None]:
    """The same by the numbers of the list: run and place in it, whatever memory that is. What is
    past the end is counted on from the last run's first."""
    firsts = np.cumsum([0, *(run.count for run in side.runs[:-1])])
    found: list[Place | None] = []
    for number in taken(side.indices).tolist():
        run = int(np.searchsorted(firsts, number, side="right")) - 1
        found.append((run, number - int(firsts[run])))
    return found


def after(
    before: np.ndarray, source: np.ndarray, done: Effect, bases: tuple[int, int]
) -> np.ndarray:
    """The target's words once the transfer is done; `bases`: addresses of both arenas."""
    words = before.copy()
    for length in np.unique(done.lengths):
        chosen = done.lengths == length
        steps = np.arange(length // WORD)
        take = (done.sources[chosen] - bases[0])[:, None] // WORD + steps
        put = (done.targets[chosen] - bases[1])[:, None] // WORD + steps
        words[put] = source[take]
    return words


def another_request(
    call: Call, mine: Memory, theirs: Memory, *, declared: bool, apart: bool = True
) -> bool:
    """Whether this is the right call of some other request, which nothing can tell from it.

    So it is where on either side all regions of a group get the same slots, each is paired with
    its counterpart, and nothing is written twice. Groups are what can be known of them: what is
    declared, else regions that the list gives equally many slots, unless the other side keeps
    them `apart` by other slots.
    """
    done = effect(call)
    if done is None or done.repeats():
        return False
    reached = {"local": hits(call.local, mine), "remote": hits(call.remote, theirs)}
    for here, there in zip(*reached.values(), strict=True):
        if here is None or there is None or here[0] != there[0]:
            return False
    for name, memory in (("local", mine), ("remote", theirs)):
        runs = call.side(name).runs
        if len(runs) != len(memory.regions):
            return False
        slots, others = _by_region(reached[name]), _by_region(reached[_OTHER[name]])
        columns: dict[object, set[tuple[int, ...]]] = {}
        for region, (cut, run) in enumerate(zip(memory.regions, runs, strict=True)):
            guess = run.count, tuple(others.get(region, ())) if apart else ()
            group = cut.group if declared else guess
            columns.setdefault(group, set()).add(tuple(sorted(slots.get(region, ()))))
        if any(len(column) > 1 for column in columns.values()):
            return False
    return True


_OTHER = {"local": "remote", "remote": "local"}


def _by_region(places: list[Place | None]) -> dict[int, list[int]]:
    slots: dict[int, list[int]] = {}
    for place in places:
        if place is not None:
            slots.setdefault(place[0], []).append(place[1])
    return slots
