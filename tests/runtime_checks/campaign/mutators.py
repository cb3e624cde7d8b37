"""The faults of the campaign that are in the arguments: one function a kind.

Each takes a right call and gives the same call with one fault, or None where the geometry has
no room for it. What it does to bytes is not its business: the oracle says that, and throws away
what changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import numpy as np

from tests.runtime_checks.campaign.calls import Call, Run, Side, flat, runs, starts
from tests.runtime_checks.campaign.memory import Memory

Place = tuple[int, int]
BEYOND: Final = frozenset({"out-of-region", "unregistered"})
ELSEWHERE: Final = frozenset({"column", "pairing"})
# What NIXL says by itself where the fault happens to leave the list or to meet other lengths.
REFUSED: Final = frozenset({"index-range", "unequal-lengths", "unequal-counts"})


@dataclass(frozen=True)
class Faulty:
    """A call with a fault, and the checks of which one must find it."""

    call: Call
    checks: frozenset[str]


@dataclass(frozen=True)
class Scene:
    """The right call and both sides' memory."""

    call: Call
    mine: Memory
    theirs: Memory
    random: Random

    def memory(self, side: str) -> Memory:
        return self.mine if side == "local" else self.theirs

    def either(self) -> str:
        return self.random.choice(("local", "remote"))


Mutator = Callable[[Scene], Faulty | None]
MUTATORS: dict[str, Mutator] = {}


def kind(name: str) -> Callable[[Mutator], Mutator]:
    def register(mutator: Mutator) -> Mutator:
        MUTATORS[name] = mutator
        return mutator

    return register


def _listed(scene: Scene, side: str, counts: Sequence[int]) -> Faulty:
    """The list made with `counts`, the indices as they were meant for the real ones."""
    memory = scene.memory(side)
    changed = scene.call.with_side(side, runs=runs(memory, counts))
    beyond = any(n > own for n, own in zip(counts, memory.slots, strict=True))
    return Faulty(changed, BEYOND if beyond else ELSEWHERE | REFUSED)


@kind("out of region")
def past_the_end(scene: Scene) -> Faulty | None:
    """A group is taken for one to three slots longer, and the first of those is selected."""
    side, random = scene.either(), scene.random
    memory, asked = scene.memory(side), scene.call.side(side)
    group = random.choice(memory.regions).group
    extra = random.randint(1, 3)
    members = memory.group(group)
    counts = [n + extra * (r in members) for r, n in enumerate(memory.slots)]
    slots = sorted({slot for region, slot in asked.meant if region in members})
    given = random.choice(slots)
    end = memory.regions[members[0]].slots
    places = [(r, end if r in members and s == given else s) for r, s in asked.meant]
    indices = flat(places, starts(counts))
    changed = scene.call.with_side(side, runs=runs(memory, counts), indices=indices)
    return Faulty(changed, BEYOND)


@kind("one count for all")
def one_count(scene: Scene) -> Faulty | None:
    """The list has the same count for every region; the indices have each region's own."""
    side = scene.either()
    own = scene.memory(side).slots
    count = scene.random.choice((own[0], min(own), max(own)))
    return _listed(scene, side, [count] * len(own))


@kind("one count and one stride for all")
def one_page_space(scene: Scene) -> Faulty | None:
    """List and indices agree on the largest count, and a page is selected that a region lacks."""
    side = scene.either()
    memory, asked = scene.memory(side), scene.call.side(side)
    own = memory.slots
    count, least = max(own), min(own)
    if count == least:
        return None
    short = [r for r, n in enumerate(own) if n == least]
    given = scene.random.choice(sorted({s for r, s in asked.meant if r in short}))
    page = scene.random.randrange(least, count)
    places = [(r, page if r in short and s == given else s) for r, s in asked.meant]
    indices = flat(places, starts([count] * len(own)))
    changed = scene.call.with_side(side, runs=runs(memory, [count] * len(own)), indices=indices)
    return Faulty(changed, BEYOND)


@kind("index dtype")
def floating(scene: Scene) -> Faulty | None:
    """Indices that a division left a quarter short of the number meant."""
    side = scene.either()
    places = scene.call.side(side).meant
    exact = flat(places, starts(scene.memory(side).slots))
    if not exact.any():
        return None
    indices = np.maximum(exact - 0.25, 0).astype(scene.random.choice((np.float64, np.float32)))
    return Faulty(scene.call.with_side(side, indices=indices), frozenset({"index-dtype"}))


@kind("index width")
def wide(scene: Scene) -> Faulty | None:
    """One index is 2**32 and something: NIXL takes the something."""
    side, random = scene.either(), scene.random
    indices = flat(scene.call.side(side).meant, starts(scene.memory(side).slots))
    at, other = random.randrange(len(indices)), random.randrange(sum(scene.memory(side).slots))
    if indices[at] == other:
        return None
    indices[at] = random.choice((1, 2, 1 << 20)) * 2**32 + other
    return Faulty(scene.call.with_side(side, indices=indices), frozenset({"index-width"}))


def _strided(side: Side, memory: Memory) -> np.ndarray:
    stride = memory.regions[0].slots
    return flat(side.meant, [region * stride for region in range(len(memory.regions))])


@kind("constant stride, one side")
def one_stride(scene: Scene) -> Faulty | None:
    side = scene.either()
    indices = _strided(scene.call.side(side), scene.memory(side)).astype(np.int32)
    return Faulty(scene.call.with_side(side, indices=indices), ELSEWHERE | REFUSED)


@kind("constant stride, both sides")
def one_stride_each(scene: Scene) -> Faulty | None:
    """As engines do it: region by region, and of one number of pages. Where groups get different
    numbers, on both sides alike, nothing tells this from regions of several groups."""
    order = [region for region, _ in scene.call.local.meant]
    if order != sorted(order) or len(set(Counter(order).values())) > 1:
        return None
    changed = scene.call
    for side in ("local", "remote"):
        indices = _strided(scene.call.side(side), scene.memory(side)).astype(np.int32)
        changed = changed.with_side(side, indices=indices)
    return Faulty(changed, ELSEWHERE | REFUSED)


def _exchanged(scene: Scene, side: str, one: int, other: int) -> Call:
    """The blocks of indices of two regions change places."""
    asked = scene.call.side(side)
    exact = flat(asked.meant, starts(scene.memory(side).slots))
    at: dict[int, list[int]] = {}
    for position, (region, _) in enumerate(asked.meant):
        at.setdefault(region, []).append(position)
    if sorted(asked.meant, key=lambda place: place[0]) == list(asked.meant):
        order = sorted(at)
        a, b = order.index(one), order.index(other)
        order[a], order[b] = order[b], order[a]
        taken = [position for region in order for position in at[region]]
    else:
        taken = list(range(len(exact)))
        for a, b in zip(at[one], at[other], strict=False):
            taken[a], taken[b] = taken[b], taken[a]
    return scene.call.with_side(side, indices=exact[taken].astype(np.int32))


@kind("wrong pairing")
def exchanged_in_group(scene: Scene) -> Faulty | None:
    """Two regions of one group are taken for each other on one side."""
    side, random = scene.either(), scene.random
    memory = scene.memory(side)
    one, other = random.sample(memory.group(random.choice(memory.regions).group), 2)
    return Faulty(_exchanged(scene, side, one, other), frozenset({"pairing"}))


@kind("blocks of unequal counts exchanged")
def exchanged_between_groups(scene: Scene) -> Faulty | None:
    side, random = scene.either(), scene.random
    memory = scene.memory(side)
    pairs = [
        (one, other)
        for one, cut in enumerate(memory.regions)
        for other in range(one)
        if cut.slots != memory.regions[other].slots
    ]
    if not pairs:
        return None
    changed = _exchanged(scene, side, *random.choice(pairs))
    return Faulty(changed, frozenset({"pairing", "unequal-lengths"}))


@kind("duplicate destination")
def same_slot_twice(scene: Scene) -> Faulty | None:
    """In one group a slot stands twice among the destinations, another not at all."""
    side, random = scene.call.destination, scene.random
    memory, asked = scene.memory(side), scene.call.side(side)
    group = random.choice(memory.regions).group
    members = memory.group(group)
    slots = sorted({slot for region, slot in asked.meant if region in members})
    if len(slots) < 2:
        return None
    lost, kept = random.sample(slots, 2)
    places = [(r, kept if r in members and s == lost else s) for r, s in asked.meant]
    indices = flat(places, starts(memory.slots)).astype(np.int32)
    changed = scene.call.with_side(side, indices=indices)
    return Faulty(changed, frozenset({"duplicate-destination"}))


@kind("overlapping destinations")
def half_stride(scene: Scene) -> Faulty | None:
    """The destinations of a group lie half a slot apart, and neighbours are selected."""
    side, random = scene.call.destination, scene.random
    memory, asked = scene.memory(side), scene.call.side(side)
    members = set(memory.group(random.choice(memory.regions).group))
    chosen = {slot for region, slot in asked.meant if region in members}
    if not any(slot + 1 in chosen for slot in chosen):
        return None
    listed = tuple(
        replace(run, stride=run.length // 2) if region in members else run
        for region, run in enumerate(asked.runs)
    )
    changed = scene.call.with_side(side, runs=listed, form="Nx3")
    return Faulty(changed, frozenset({"overlapping-destination"}))


@kind("one region listed twice")
def aliased(scene: Scene) -> Faulty | None:
    """A destination list has the address of one region in the place of another, too."""
    side, random = scene.call.destination, scene.random
    memory, asked = scene.memory(side), scene.call.side(side)
    lost, kept = random.sample(memory.group(random.choice(memory.regions).group), 2)
    if memory.layout != "apart" and asked.form != "Nx5" and lost == kept + 1:
        # In single rows this looks like the region before, run past its end just so far.
        return None
    listed: list[Run] = list(asked.runs)
    listed[lost] = replace(listed[lost], address=listed[kept].address)
    changed = scene.call.with_side(side, runs=tuple(listed))
    checks = frozenset({"duplicate-destination", "overlapping-destination"})
    return Faulty(changed, checks)


@kind("truncated list: tail")
def without_its_tail(scene: Scene) -> Faulty | None:
    """The last region's last slots are missing, and one of them is selected."""
    side, random = scene.either(), scene.random
    memory, asked = scene.memory(side), scene.call.side(side)
    own = memory.slots
    highest = max(slot for region, slot in asked.meant if region == len(own) - 1)
    if highest == 0:
        return None
    return _listed(scene, side, [*own[:-1], random.randint(1, highest)])


@kind("truncated list: a region")
def without_a_region(scene: Scene) -> Faulty | None:
    """A region is missing from the list, and the indices count on it."""
    side = scene.either()
    listed = list(scene.call.side(side).runs)
    listed.pop(scene.random.randrange(len(listed)))
    changed = scene.call.with_side(side, runs=tuple(listed))
    return Faulty(changed, ELSEWHERE | REFUSED)


@kind("truncated list: a region's end")
def without_an_end(scene: Scene) -> Faulty | None:
    """A region within the list is some slots short, and the indices count on them."""
    side, random = scene.either(), scene.random
    own = scene.memory(side).slots
    region = random.randrange(len(own) - 1)
    counts = list(own)
    counts[region] -= random.randint(1, min(3, own[region] - 1))
    return _listed(scene, side, counts)
