"""What a kernel loads decides where it goes on, as a block table or a slot mapping does.

Only their values say, and they are on the device. There the kernel's own arithmetic is done once
more for them, by a few small operations on the stream of the launch, and counted where it leaves
the storage; nobody waits for the count. Where the lanes of a row play no part in which row it is,
only the first and the last one are looked at, so what is found is what the launch does, and what
a mask of lanes cuts off may be missed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from kvlint.runtime_checks.launches.bounds import Bounds, Values
from kvlint.runtime_checks.launches.deciding import inside, place_of, where
from kvlint.runtime_checks.launches.launch import Launch, Memory
from kvlint.runtime_checks.launches.reading import Contract
from kvlint.runtime_checks.launches.terms import KINDS, Access, Term, below

# Points that are looked at in one launch; where there are more, none is.
MOST_POINTS: Final = 1 << 20
_ANSWERS: Final = 6


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

    def __init__(self, access: Access) -> None:
        self.access = access
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
        point, its offset, the number loaded, 1 for the last lanes). None where these arguments
        cannot be looked at."""
        values, memory = launch.values, launch.memory.get(self.access.argument)
        if memory is None or any(name not in tensors for name in self.reads):
            return None
        found = self._bounds.of(values)
        if inside(self.access, found[self.access.offset.number], memory):
            return None
        sizes = [self._size(term, found) for term in self._chosen]
        if None in sizes or math.prod(size or 1 for size in sizes) > MOST_POINTS:
            return None
        device = next((tensors[name].device for name in sorted(self.reads)), None)
        shape = tuple(size or 0 for size in sizes)
        if 0 in shape:
            return None
        best = None
        for last in (0, 1) if self._others else (0,):
            points = self._points(torch, shape, device)
            for term in self._others:
                size = self._size(term, found)
                if not size:
                    return None
                points[term.number] = (size - 1) * last
            answer = self._answer(torch, values, memory, tensors, points, shape, last, device)
            if answer is None:
                return None
            best = answer if best is None else torch.where(best[0] + best[1] > 0, best, answer)
        return best

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
        self,
        torch: Any,
        values: Values,
        memory: Memory,
        tensors: Mapping[str, Any],
        points: Mapping[int, Any],
        shape: tuple[int, ...],
        last: int,
        device: Any,
    ) -> Any | None:
        work = _Work(torch, values, tensors, points)
        found = work.run(self._tape, narrow=True)
        if found is None:
            return None
        active = work.sure
        for condition in self.access.when:
            active = active & (found[condition.number] != 0)
        for term in self._chosen:
            active = active & (points[term.number] < found[term.operands[0].number])
        offset = found[self.access.offset.number]
        wraps: Any = False
        if self._narrow:
            endless = _Work(torch, values, tensors, points).run(self._tape, narrow=False)
            if endless is None:
                return None
            wraps = active & (offset != endless[self.access.offset.number])
        outside = active & ((offset < memory.before) | (offset > memory.past - self.access.width))
        whole = [
            torch.as_tensor(part, device=device).expand(shape).reshape(-1)
            for part in (outside, wraps, offset, found[self._picks.number])
        ]
        outside, wraps, offset, value = whole
        chosen = torch.where(wraps.any(), wraps, outside)
        first = torch.argmax(chosen.to(torch.uint8))
        return torch.stack(
            [
                outside.sum(),
                wraps.sum(),
                first,
                offset[first],
                value[first].to(torch.int64),
                torch.full_like(first, last),
            ]
        )

    def told(
        self, answers: Sequence[int], launch: Launch, region_of: Callable[[int], Region | None]
    ) -> Breach | None:
        """What the numbers of `count` say."""
        outside, wraps, point, offset, value, last = answers
        if not outside and not wraps:
            return None
        memory, access = launch.memory[self.access.argument], self.access
        region = region_of(memory.address)
        found = self._bounds.of(launch.values)
        sizes = [self._size(term, found) or 1 for term in self._chosen]
        at = np.unravel_index(point, sizes) if sizes else ()
        variables = {t.value: int(n) for t, n in zip(self._chosen, at, strict=True)}
        for term in self._others:
            variables[term.value] = last * ((self._size(term, found) or 1) - 1)
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
        counted = f"; {outside} do" if outside > 1 else ""
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


class _Work:
    """The kernel's arithmetic on whole tensors of 64 bits.

    sure  where every loaded number is known: its own mask holds, or there is one to take its place
    """

    def __init__(
        self, torch: Any, values: Values, tensors: Mapping[str, Any], points: Mapping[int, Any]
    ) -> None:
        self._torch = torch
        self._values = values
        self._tensors = tensors
        self._points = points
        self.sure: Any = torch.ones((), dtype=torch.bool)

    def run(self, tape: Sequence[Term], *, narrow: bool) -> dict[int, Any] | None:
        torch = self._torch
        found: dict[int, Any] = {}
        for term in tape:
            operands = [found[operand.number] for operand in term.operands]
            match term.op:
                case "number":
                    result: Any = term.value
                case "argument":
                    result = self._values.arguments.get(str(term.value))
                case "size":
                    result = self._values.grid[term.value]
                case "variable":
                    result = self._points.get(term.number)
                case "loaded":
                    result = self._loaded(term, found)
                case _:
                    result = _applied(torch, term, operands)
            if result is None:
                return None
            if narrow and term.kind in KINDS and term.op not in ("variable", "loaded"):
                result = _wrapped(result, term.kind)
            found[term.number] = result
        return found

    def _loaded(self, term: Term, found: Mapping[int, Any]) -> Any | None:
        access = term.value
        assert isinstance(access, Access)
        tensor = self._tensors[access.argument]
        flat = tensor.as_strided((tensor.untyped_storage().nbytes() // access.width,), (1,), 0)
        at = found[access.offset.number] // access.width + tensor.storage_offset()
        at = self._torch.as_tensor(at, device=tensor.device)
        there = (at >= 0) & (at < flat.numel())
        made: Any = True
        for condition in access.when:
            made = made & (self._torch.as_tensor(found[condition.number]) != 0)
        picked = flat[at.clamp(0, flat.numel() - 1)].to(self._torch.int64)
        if made is True:
            self.sure = self.sure.to(tensor.device) & there
            return picked
        made = made.to(tensor.device)
        if access.fallback is None or access.fallback.number not in found:
            self.sure = self.sure.to(tensor.device) & there & made
            return picked
        self.sure = self.sure.to(tensor.device) & (there | ~made)
        return self._torch.where(made, picked, found[access.fallback.number])


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


def _applied(torch: Any, term: Term, operands: list[Any]) -> Any | None:
    match term.op, *operands:
        case "+", a, b:
            return a + b
        case "-", a, b:
            return a - b
        case "*", a, b:
            return a * b
        case (("//" | "%"), a, b):
            return _divided(torch, term, a, b)
        case "min", a, b:
            return _both(torch, torch.minimum, a, b)
        case "max", a, b:
            return _both(torch, torch.maximum, a, b)
        case "<<", a, b:
            return a << b
        case ">>", a, b:
            return a >> b
        case "&", a, b:
            return a & b
        case "|", a, b:
            return a | b
        case "^", a, b:
            return a ^ b
        case "<", a, b:
            return _flag(a < b)
        case "<=", a, b:
            return _flag(a <= b)
        case "==", a, b:
            return _flag(a == b)
        case "!=", a, b:
            return _flag(a != b)
        case "and", a, b:
            return _flag((a != 0) & (b != 0))
        case "or", a, b:
            return _flag((a != 0) | (b != 0))
        case "not", a:
            return _flag(a == 0)
        case "where", test, a, b:
            if isinstance(test, int):
                return a if test else b
            tensors = [torch.as_tensor(part, device=test.device) for part in (a, b)]
            return torch.where(test != 0, *tensors)
        case "cast", a:
            return a
    return None


def _flag(result: Any) -> Any:
    return int(result) if isinstance(result, bool) else result.long()


def _both(torch: Any, how: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return int(how(torch.tensor(a), torch.tensor(b)))
    device = a.device if not isinstance(a, int) else b.device
    return how(torch.as_tensor(a, device=device), torch.as_tensor(b, device=device))


def _divided(torch: Any, term: Term, a: Any, b: Any) -> Any | None:
    if not isinstance(b, int) or b <= 0:
        return None
    floor = term.kind == ""
    if isinstance(a, int):
        from kvlint.runtime_checks.launches.terms import apply

        return apply(term.op, [a, b], floor=floor)
    if term.op == "//":
        return torch.div(a, b, rounding_mode="floor" if floor else "trunc")
    return torch.remainder(a, b) if floor else torch.fmod(a, b)


def _wrapped(value: Any, kind: str) -> Any:
    bits, signed = KINDS[kind]
    if bits == 64:
        return value
    if kind == "i1":
        return int(value != 0) if isinstance(value, int) else value
    low = value & ((1 << bits) - 1)
    return low - ((low >> (bits - 1)) << bits) if signed else low


def tables_of(contract: Contract) -> list[Table]:
    """One for each place that a loaded number has a say in."""
    made = [Table(access) for access in contract.accesses if not access.settled]
    seen: dict[object, Table] = {}
    for table in made:
        if table.readable:
            access = table.access
            seen.setdefault((access.argument, access.offset, access.when), table)
    return list(seen.values())
