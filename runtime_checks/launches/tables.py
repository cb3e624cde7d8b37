"""What a kernel loads decides where it goes on, as a block table or a slot mapping does.

Only their values say, and they are on the device. There the kernel's own arithmetic is done once
more for them, by a few small operations on the stream of the launch, and counted where it leaves
the storage; nobody waits for the count. Where the lanes of a row play no part in which row it is,
only the first and the last one are looked at, so what is found is what the launch does, and what
a mask of lanes cuts off may be missed.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.checks import (
    LAUNCH_EXTENT,
    LAUNCH_INDEX_RANGE,
    LAUNCH_OVERFLOW,
    Breach,
)
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.launches.bounds import Bounds
from kvlint.runtime_checks.launches.deciding import inside, integers_in, place_of, where
from kvlint.runtime_checks.launches.launch import Launch, Memory
from kvlint.runtime_checks.launches.reading import Contract
from kvlint.runtime_checks.launches.repeating import Work
from kvlint.runtime_checks.launches.terms import Access, Term, below

# Points that are looked at in one launch; where there are more, none is.
MOST_POINTS: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class Counted:
    """Numbers that a device may still be working on; as `digests.late` has it."""

    answers: Any
    event: Any

    def ready(self) -> bool:
        return self.event is None or bool(self.event.query())

    def digests(self) -> Digests:
        found: Digests = np.asarray(self.answers.tolist(), np.int64).view(np.uint64)
        return found


class Table:
    """One access whose place depends on what is loaded."""

    def __init__(self, access: Access, written: Collection[str]) -> None:
        self.access = access
        self._written = written
        self._integers = integers_in(access.offset)
        roots = [access.offset, *access.when]
        self._bounds = Bounds(roots)
        self._tape = self._bounds.tape
        self._loaded = [term for term in self._tape if term.op == "loaded"]
        picks = [t for t in below([access.offset]) if t.op == "loaded"] or self._loaded
        self._picks = picks[-1] if picks else access.offset
        deciding = below([*self._loaded, *_unsettled(access)])
        self._chosen = [term for term in deciding if term.op == "variable"]
        chosen = {term.number for term in self._chosen}
        self._others = [t for t in self._tape if t.op == "variable" and t.number not in chosen]
        self._narrow = [term for term in below([access.offset]) if term.narrow]
        self.reads = {t.value.argument for t in self._loaded if isinstance(t.value, Access)}

    @property
    def readable(self) -> bool:
        """Whether everything it depends on can be worked out again."""
        return all(
            term.op != "unknown" and (term.op != "variable" or term.settled) for term in self._tape
        ) and bool(self._loaded)

    def count(self, torch: Any, launch: Launch, tensors: Mapping[str, Any]) -> Any | None:
        """A tensor of (how many leave the storage, how many wrap, then of the first one: its
        point, its offset, the number loaded). None where these arguments cannot be looked at."""
        values, memory = launch.values, launch.memory.get(self.access.argument)
        if memory is None or any(name not in tensors for name in self.reads):
            return None
        if self.changes(launch) or launch.crosses(self.access.argument, self._integers):
            return None
        found = self._bounds.of(values)
        if inside(self.access, found[self.access.offset.number], memory):
            return None
        sizes = [self._size(term, found) for term in self._chosen]
        if None in sizes or math.prod(size or 1 for size in sizes) > MOST_POINTS:
            return None
        shape = tuple(size or 0 for size in sizes)
        if 0 in shape:
            return None
        device = tensors[min(self.reads)].device
        points = self._points(torch, shape, device)
        if self._others:
            ends = torch.arange(2, device=device).view(*[1] * len(shape), 2)
            shape = (*shape, 2)
            points = {number: values.unsqueeze(-1) for number, values in points.items()}
        for term in self._others:
            size = self._size(term, found)
            if not size:
                return None
            points[term.number] = ends * (size - 1)
        work = partial(Work, torch, values, tensors, points, device)
        return self._answer(work, memory, shape)

    def changes(self, launch: Launch) -> bool:
        """Whether the kernel writes where it reads from: then nobody knows which comes first."""
        at = {m.begin for name in self._written if (m := launch.memory.get(name)) is not None}
        read = {m.begin for name in self.reads if (m := launch.memory.get(name)) is not None}
        return bool(at & read) or not self.reads.isdisjoint(self._written)

    def _size(self, term: Term, found: Mapping[int, Any]) -> int | None:
        count = found[term.operands[0].number]
        return None if count is None else int(count[1])

    def _points(self, torch: Any, shape: tuple[int, ...], device: Any) -> dict[int, Any]:
        points: dict[int, Any] = {}
        for axis, term in enumerate(self._chosen):
            view = [1] * len(shape)
            view[axis] = shape[axis]
            points[term.number] = torch.arange(shape[axis], device=device).view(view)
        return points

    def _answer(
        self, make: Callable[[], Work], memory: Memory, shape: tuple[int, ...]
    ) -> Any | None:
        work = make()
        torch, found = work.torch, work.run(self._tape, narrow=True)
        if found is None:
            return None
        active = work.sure
        for condition in self.access.when:
            active = active & (found[condition.number] != 0)
        for term in self._chosen:
            active = active & (work.points[term.number] < found[term.operands[0].number])
        offset, wraps = found[self.access.offset.number], False
        if self._narrow:
            endless = make().run(self._tape, narrow=False)
            if endless is None:
                return None
            wraps = active & (offset != endless[self.access.offset.number])
        outside = active & ((offset < memory.before) | (offset > memory.past - self.access.width))
        zeros = torch.zeros(shape, dtype=torch.int64, device=work.device)
        parts = (outside, wraps, offset, found[self._picks.number])
        outside, wraps, offset, value = ((zeros + part).reshape(-1) for part in parts)
        ends = shape[-1] if self._others else 1
        counts = [part.view(-1, ends).amax(1).sum().view(1) for part in (outside, wraps)]
        # By a tensor of no dimension an entry is picked on the host, which waits for it.
        first = torch.argmax(torch.where(counts[1] > 0, wraps, outside)).view(1)
        picked = [part.gather(0, first) for part in (offset, value)]
        return torch.cat([*counts, first, *picked])

    def told(
        self, answers: Sequence[int], launch: Launch, region_of: Callable[[int], Region | None]
    ) -> Breach | None:
        """What the numbers of `count` say."""
        outside, wraps, point, offset, value = answers
        if not outside and not wraps:
            return None
        memory, access = launch.memory[self.access.argument], self.access
        region = region_of(memory.address)
        found = self._bounds.of(launch.values)
        sizes = [self._size(term, found) or 1 for term in self._chosen]
        *at, last = np.unravel_index(point, (*sizes, 2 if self._others else 1))
        variables = {t.value: int(n) for t, n in zip(self._chosen, at, strict=True)}
        for term in self._others:
            variables[term.value] = int(last) * ((self._size(term, found) or 1) - 1)
        byte, size = offset - memory.before, memory.end - memory.begin
        within = "" if region is None else f" (region {region.name!r})"
        source = self._picks.value
        picked = (
            f"{launch.kernel} at {access.place}: {value}, loaded from {source.argument} in "
            f"{where(variables)}, leads {access.call} to byte {byte} of the storage of "
            f"{access.argument}{within}, which has {size} bytes"
        )
        place = place_of(region, memory.address + offset)
        if wraps:
            places = f"; {_times(wraps)} an index does not fit its integers"
            return Breach(
                LAUNCH_OVERFLOW, picked + places, {"index": value, "byte touched": byte}, place
            )
        counted = f"; that is so in {outside} places" if outside > 1 else ""
        if access.offset.settled:
            return Breach(
                LAUNCH_EXTENT,
                f"{launch.kernel} at {access.place}: {access.call} touches byte {byte} of the "
                f"storage of {access.argument}{within} in {where(variables)}, which has {size} "
                f"bytes{counted}",
                {"byte touched": byte + access.width - 1, "bytes of the storage": size},
                place,
            )
        values = {"index": value, "bytes of the storage": size}
        return Breach(LAUNCH_INDEX_RANGE, picked + counted, values, place)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _unsettled(access: Access) -> list[Term]:
    """What decides which row it is, and whether it is accessed at all."""
    found: list[Term] = [term for term in access.when if not term.settled]
    left = [access.offset]
    while left:
        term = left.pop()
        if term.settled:
            continue
        if term.op in ("+", "-", "cast"):
            left.extend(term.operands)
        else:
            found.append(term)
    return found


def tables_of(contract: Contract) -> list[Table]:
    """One for each place that a loaded number has a say in."""
    written = {access.argument for access in contract.accesses if access.call != "load"}
    made = [Table(access, written) for access in contract.accesses if not access.settled]
    seen: dict[object, Table] = {}
    for table in made:
        if table.readable:
            access = table.access
            seen.setdefault((access.argument, access.offset, access.when), table)
    return list(seen.values())
