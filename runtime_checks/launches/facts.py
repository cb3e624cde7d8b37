"""What is known of a launch from the outside: the types of its arguments, and where they lie.

torch is never imported here: its tensors are asked, and what is none says nothing of its memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kvlint.runtime_checks.launches.bounds import Values
from kvlint.runtime_checks.launches.launch import Memory
from kvlint.runtime_checks.launches.sources import known
from kvlint.runtime_checks.launches.terms import KINDS, OTHER, Terms
from kvlint.runtime_checks.launches.values import (
    NOTHING,
    Element,
    Function,
    Known,
    Number,
    Pointer,
    Value,
)

CONSTANT: Final = "constexpr"


@dataclass(frozen=True)
class Signature:
    """Of a kernel with the types of one specialisation.

    names      of all parameters, in order
    types      as Triton writes them: "i32", "*bf16", "constexpr"; a parameter of any other is not
               followed
    constants  of parameters of type "constexpr"
    """

    names: Sequence[str]
    types: Mapping[str, object]
    constants: Mapping[str, object] = field(default_factory=dict)

    def given(self, terms: Terms) -> dict[str, Value]:
        """What each parameter is to whoever reads the kernel."""
        return {name: self._value(name, terms) for name in self.names}

    def pointers(self) -> list[tuple[int, str]]:
        """Place and name."""
        return [(at, name) for at, name in self._places() if self._type(name).startswith("*")]

    def integers(self) -> list[tuple[int, str]]:
        return [(at, name) for at, name in self._places() if self._type(name) in KINDS]

    def element(self, name: str) -> Element | None:
        return Element.named(self._type(name))

    def _places(self) -> Sequence[tuple[int, str]]:
        return list(enumerate(self.names))

    def _type(self, name: str) -> str:
        type_ = self.types.get(name)
        return type_ if isinstance(type_, str) else ""

    def _value(self, name: str, terms: Terms) -> Value:
        type_ = self._type(name)
        if type_ == CONSTANT:
            return constant(self.constants.get(name), terms)
        if type_.startswith("*"):
            element = Element.named(type_)
            return Pointer(name, terms.number(0, "i64"), element) if element else NOTHING
        if type_ in KINDS:
            return Number(terms.argument(name, type_))
        return Number(terms.unknown(OTHER)) if type_[:2] in ("fp", "bf") else NOTHING


def constant(value: object, terms: Terms) -> Value:
    """Of a parameter that is part of the kernel: a number, a type, a function, a tuple of them."""
    if isinstance(value, tuple):
        return tuple(constant(part, terms) for part in value)
    match known(value):
        case bool() | int() as number:
            return Number(terms.number(int(number)))
        case Element() | Function() as found:
            return found
        case None | str() | float() as found:
            return Known(found)
    return NOTHING


def memory_of(argument: Any, element_size: int) -> Memory | None:
    """Where a tensor's storage lies; None for what does not tell, as numbers and other packages'
    arrays do not."""
    tensor = getattr(argument, "base", None) if not hasattr(argument, "untyped_storage") else None
    tensor = argument if tensor is None else tensor
    try:
        storage = tensor.untyped_storage()
        begin = storage.data_ptr()
        return Memory(
            address=tensor.data_ptr(),
            begin=begin,
            end=begin + storage.nbytes(),
            element_size=element_size,
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
        )
    except (AttributeError, TypeError, NotImplementedError, RuntimeError):
        return None


def values_of(integers: Mapping[str, object], grid: Sequence[int]) -> Values:
    """Arguments that are no integers, symbols say, are left out."""
    sizes = [int(size) for size in grid][:3]
    sizes += [1] * (3 - len(sizes))
    found = {name: int(value) for name, value in integers.items() if isinstance(value, int)}
    return Values(found, (sizes[0], sizes[1], sizes[2]))
