"""A kernel's arithmetic once more, on whole tensors and the device that they are on.

Nothing here waits for the device: no number is made into a tensor by a copy, and no tensor into a
number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kvlint.runtime_checks.launches.bounds import Values
from kvlint.runtime_checks.launches.terms import KINDS, Access, Term, apply


class Work:
    """In 64 bits; numbers that are the same everywhere stay numbers of Python's.

    points  of each variable, by its number, the values that are looked at
    sure    where every loaded number is known: its own mask holds, or there is one in its place
    """

    def __init__(
        self,
        torch: Any,
        values: Values,
        tensors: Mapping[str, Any],
        points: Mapping[int, Any],
        device: Any,
    ) -> None:
        self.torch = torch
        self.device = device
        self._values = values
        self._tensors = tensors
        self.points = points
        self.sure: Any = torch.ones((), dtype=torch.bool, device=device)

    def run(self, tape: Sequence[Term], *, narrow: bool) -> dict[int, Any] | None:
        """What each term is, by its number; None where one cannot be worked out.

        narrow  with the widths that the kernel has
        """
        found: dict[int, Any] = {}
        for term in tape:
            result = self._one(term, found)
            if result is None:
                return None
            its_own = term.op in ("variable", "loaded")
            if term.kind in KINDS and not its_own and (narrow or term.op == "cast"):
                result = _wrapped(result, term.kind)
            found[term.number] = result
        return found

    def _one(self, term: Term, found: Mapping[int, Any]) -> Any | None:
        match term.op:
            case "number":
                return term.value
            case "argument":
                return self._values.arguments.get(str(term.value))
            case "size":
                return self._values.grid[term.value]
            case "variable":
                return self.points.get(term.number)
            case "loaded":
                return self._loaded(term.value, found)
        operands = [found[operand.number] for operand in term.operands]
        if all(isinstance(operand, int) for operand in operands):
            return apply(term.op, operands, floor=term.kind == "")
        return _applied(self.torch, term, operands)

    def _loaded(self, access: Access, found: Mapping[int, Any]) -> Any | None:
        tensor = self._tensors[access.argument]
        size = tensor.untyped_storage().nbytes() // access.width
        flat = tensor.as_strided((size,), (1,), 0)
        at = found[access.offset.number] // access.width + tensor.storage_offset()
        made: Any = True
        for condition in access.when:
            made = made & (found[condition.number] != 0)
        fallback = None if access.fallback is None else found[access.fallback.number]
        if made is False:
            return fallback
        if isinstance(at, int):
            if not 0 <= at < size:
                return None
            there, picked = True, flat[at].long()
        else:
            there = (at >= 0) & (at < size)
            picked = flat[at.clamp(0, size - 1)].long()
        if made is True:
            self.sure = self.sure & there
            return picked
        if fallback is None:
            self.sure = self.sure & there & made
            return picked
        self.sure = self.sure & (there | ~made)
        return self.torch.where(made, picked, fallback)


def _applied(torch: Any, term: Term, operands: Sequence[Any]) -> Any | None:
    """At least one of the operands is a tensor."""
    match term.op:
        case "where":
            test, one, other = operands
            if isinstance(test, int):
                return one if test else other
            return torch.where(test != 0, one, other)
        case "not":
            return (operands[0] == 0).long()
        case "cast":
            return operands[0]
    one, two = operands
    match term.op:
        case "+":
            return one + two
        case "-":
            return one - two
        case "*":
            return one * two
        case "//" | "%":
            return _divided(torch, term, one, two)
        case "min" | "max":
            return _extreme(torch, term.op, one, two)
        case "<<":
            return one << two
        case ">>":
            return one >> two
        case "&":
            return one & two
        case "|":
            return one | two
        case "^":
            return one ^ two
        case "<":
            return (one < two).long()
        case "<=":
            return (one <= two).long()
        case "==":
            return (one == two).long()
        case "!=":
            return (one != two).long()
        case "and":
            return ((one != 0) & (two != 0)).long()
        case "or":
            return ((one != 0) | (two != 0)).long()
    return None


def _divided(torch: Any, term: Term, one: Any, two: Any) -> Any | None:
    if not isinstance(two, int) or two <= 0:
        return None
    floor = term.kind == ""
    if term.op == "//":
        return torch.div(one, two, rounding_mode="floor" if floor else "trunc")
    return torch.remainder(one, two) if floor else torch.fmod(one, two)


def _extreme(torch: Any, op: str, one: Any, two: Any) -> Any:
    if isinstance(one, int):
        one, two = two, one
    if isinstance(two, int):
        return one.clamp(max=two) if op == "min" else one.clamp(min=two)
    return torch.minimum(one, two) if op == "min" else torch.maximum(one, two)


def _wrapped(value: Any, kind: str) -> Any:
    bits, signed = KINDS[kind]
    if bits == 64:
        return value
    if kind == "i1":
        return int(value != 0) if isinstance(value, int) else (value != 0).long()
    low = value & ((1 << bits) - 1)
    return low - ((low >> (bits - 1)) << bits) if signed else low
