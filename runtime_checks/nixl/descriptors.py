"""What an engine gives NIXL, read: descriptor objects, and the tensors behind registrations."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.folding import RowsError, fold
from kvlint.runtime_checks.pools.tensors import storage_gone
from kvlint.runtime_checks.regions import Regions
from kvlint.runtime_checks.registrations import Collected

if TYPE_CHECKING:
    from collections.abc import Sequence

Value = TypeVar("Value")
Piece = tuple[int, int, int]

_ROW: Final = 24
_ODD_ENDS: Final = 8
_LOOKED_AT: Final = 64


class DescriptorObject(Protocol):
    """A `nixlXferDList` or a `nixlRegDList`."""

    def descCount(self) -> int: ...  # noqa: N802 (NIXL's name)

    def getType(self) -> Any: ...  # noqa: N802 (NIXL's name)

    def __getitem__(self, index: int, /) -> tuple[Any, ...]: ...


class Remembered(Generic[Value]):
    """Values of objects that can have no attribute and no hash, for as long as they live."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[object, Value]] = {}

    def __setitem__(self, about: object, value: Value) -> None:
        number = id(about)
        # The reference goes with the object; its going takes the value out.
        self._values[number] = (ref(about, lambda _: self._values.pop(number, None)), value)

    def get(self, about: object) -> Value | None:
        found = self._values.get(id(about))
        return found[1] if found else None


def kind_of(descriptors: DescriptorObject) -> str:
    """Memory kind as NIXL's Python interface spells it: "DRAM" of `DRAM_SEG`."""
    name = str(descriptors.getType().name).removesuffix("_SEG")
    return "BLOCK" if name == "BLK" else name


def pieces_of(descriptors: DescriptorObject) -> list[Piece]:
    """(address, length in bytes, device) of each entry, read one by one."""
    count = descriptors.descCount()
    entries = [descriptors[number] for number in range(count)]
    return [(int(entry[0]), int(entry[1]), int(entry[2])) for entry in entries]


def rows_of(descriptors: DescriptorObject) -> NDArray[np.uint64]:
    """The Nx3 array that a `nixlXferDList` holds.

    Its pickled state ends with the rows as they lie in memory; where that is not so, in another
    version, they are read one by one, which takes thirty times as long.
    """
    count = descriptors.descCount()
    state: object = None
    get_state = getattr(descriptors, "__getstate__", None)
    if count and get_state is not None:
        state = get_state()
    if isinstance(state, bytes):
        for odd in range(_ODD_ENDS):
            end = len(state) - odd
            if end < count * _ROW:
                break
            rows = np.frombuffer(state[end - count * _ROW : end], np.uint64).reshape(count, 3)
            ends = descriptors[0], descriptors[count - 1]
            if all(
                tuple(map(int, row)) == entry
                for row, entry in zip(rows[[0, -1]], ends, strict=True)
            ):
                return rows
    return np.array(pieces_of(descriptors), np.uint64).reshape(count, 3)


class ReadRows:
    """Descriptor objects folded, each once, from the array that they were made of if it is
    known: reading a large object back costs as much as preparing it."""

    def __init__(self) -> None:
        self._known: Remembered[tuple[int, Regions]] = Remembered()

    def made(self, descriptors: DescriptorObject, given: object) -> None:
        """`get_xfer_descs` has made the object of what was given."""
        if isinstance(given, np.ndarray):
            # NIXL makes objects of rows that it will not prepare, and of other integers as well.
            with suppress(RowsError):
                self._known[descriptors] = (descriptors.descCount(), fold(given))

    def regions(self, descriptors: DescriptorObject) -> Regions:
        """The regions of the object as it is now. Raises `RowsError`."""
        known = self._known.get(descriptors)
        if known is not None and known[0] == descriptors.descCount():
            if _unchanged(descriptors, known[1]):
                return known[1]
        regions = fold(rows_of(descriptors))
        self._known[descriptors] = (descriptors.descCount(), regions)
        return regions


def _unchanged(descriptors: DescriptorObject, regions: Regions) -> bool:
    """Whether the entries are still what they were, for an object can be changed: all of a short
    one, some of a long one."""
    count = descriptors.descCount()
    if not count:
        return True
    indices = np.unique(np.linspace(0, count - 1, _LOOKED_AT).astype(np.int64))
    numbers = regions.regions_of(indices)
    addresses = regions.addresses_of(numbers, indices - regions.starts[numbers])
    known = (
        addresses.tolist(),
        regions.lengths[numbers].tolist(),
        regions.devices[numbers].tolist(),
    )
    there = [tuple(descriptors[index][:3]) for index in indices.tolist()]
    return there == list(zip(*known, strict=True))


def collected_of(given: object) -> list[Collected] | None:
    """For a tensor, or a list of tensors, whether the storage of each is gone; None for anything
    else, and for memory that torch has not allocated itself: of a numpy array or a shared mapping
    it may outlive the storage. torch is asked only if it is there."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    tensors: Sequence[Any] = [given] if isinstance(given, torch.Tensor) else []
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], torch.Tensor):
        tensors = given
    if not all(tensor.untyped_storage().resizable() for tensor in tensors):
        return None
    return [storage_gone(tensor) for tensor in tensors] or None
