"""A launch of a kernel, as the checks see it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvlint.runtime_checks.launches.bounds import Values


@dataclass(frozen=True, slots=True)
class Memory:
    """What a pointer argument points into.

    address  bytes, that the kernel gets
    begin    of the storage that owns it
    end      address of the byte after the storage's last
    dtype    of the tensor, as torch has it, for people
    shape, strides  of the tensor, in elements, for people
    """

    address: int
    begin: int
    end: int
    element_size: int
    dtype: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    @property
    def before(self) -> int:
        """The least offset in bytes that is the storage's."""
        return self.begin - self.address

    @property
    def past(self) -> int:
        """The least offset in bytes past the storage."""
        return self.end - self.address


@dataclass(frozen=True)
class Launch:
    """
    kernel  its name
    memory  of each pointer argument whose storage is known
    """

    kernel: str
    memory: Mapping[str, Memory]
    values: Values

    def crosses(self, argument: str, names: Iterable[str]) -> bool:
        """Whether one of these integers is the way from the argument to another one, in bytes or
        elements: what is reached then is meant to be, by whose address whatsoever."""
        begun = self.memory[argument]
        ways = {self.values.arguments.get(name) for name in names}
        apart = [m.address - begun.address for m in self.memory.values() if m.begin != begun.begin]
        return any(way in ways or way // begun.element_size in ways for way in apart)
