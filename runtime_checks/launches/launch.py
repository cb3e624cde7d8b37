"""A launch of a kernel, as the checks see it."""

from collections.abc import Mapping
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
