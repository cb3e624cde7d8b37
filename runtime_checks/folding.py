"""Descriptor rows folded back into the regions they were made of.

NIXL gets a list of (address, length, device) rows and forgets what they were: slot p of region
i. Folding finds that again, so that an index has a name. Where a region ends shows in the rows,
by another distance, length or device; what only the memory shows is for `extents`.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.regions import Flags, Integers, Regions
from kvlint.runtime_checks.scratch import scratch

_NX3: Final = 3
_NX5: Final = 5
_PIECE: Final = 1 << 15
_NO_LENGTH: Final = "a descriptor has no bytes, or more than 2^63"
_MOST: Final = 1 << 40


class RowsError(ValueError):
    """Rows that are no descriptors: one line, why. NIXL refuses them by itself."""


def fold(rows: NDArray[np.generic]) -> Regions:
    """Regions of an Nx3 array of (address, length, device) or an Nx5 array of (address, length,
    device, stride, count), as NIXL takes them. Raises `RowsError`."""
    if rows.ndim != 2 or rows.shape[1] not in (_NX3, _NX5):
        raise RowsError(f"descriptors of shape {rows.shape} are neither Nx3 nor Nx5")
    if rows.dtype not in (np.dtype(np.uint64), np.dtype(np.int64)):
        raise RowsError(f"descriptors are {rows.dtype}, not uint64 or int64")
    if not len(rows):
        nothing = np.zeros(0, np.int64)
        return Regions(np.zeros(1, np.int64), nothing.view(np.uint64), *[nothing] * 3)
    whole = rows.view(np.int64)
    if rows.shape[1] == _NX3:
        return _fold_rows(*whole.T)
    addresses, lengths, devices, strides, counts = (column.copy() for column in whole.T)
    if bool((lengths < 1).any()):
        raise RowsError(_NO_LENGTH)
    if bool((strides.view(np.uint64) < lengths.view(np.uint64)).any()):
        raise RowsError("slots of a region overlap")
    if bool(((counts < 1) | (counts > _MOST)).any()):
        raise RowsError("a region has no slots, or more than there is memory")
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    return Regions(starts, addresses.view(np.uint64), lengths, strides, devices)


def _fold_rows(addresses: Integers, lengths: Integers, devices: Integers) -> Regions:
    """Lists are long, and most are of one length and one device, with few regions."""
    count = len(addresses)
    steps: Integers = scratch("steps", "q", count - 1)
    inside: Flags = scratch("inside", "?", count - 1)
    one_length, one_device = _look(addresses, lengths, devices, steps, inside)
    if one_length:
        if lengths[0] < 1:
            raise RowsError(_NO_LENGTH)
        if not inside.any():
            np.equal(steps, _usual(steps, int(lengths[0])), out=inside)
    else:
        if bool((lengths < 1).any()):
            raise RowsError(_NO_LENGTH)
        inside[:] = False
        alike = lengths[1:] == lengths[:-1]
        for length in np.unique(lengths):
            of_length = alike & (lengths[1:] == length)
            inside |= of_length & (steps == _usual(steps[of_length], int(length)))
    if not one_device:
        inside &= devices[1:] == devices[:-1]
    ends = _mark_overlapping(inside, steps, lengths, devices)
    firsts = np.concatenate((np.zeros(1, np.int64), ends + 1))
    starts = np.concatenate((firsts, [count]))
    has_step = np.diff(starts) > 1
    strides = lengths[firsts].copy()
    strides[has_step] = steps[firsts[has_step]]
    return Regions(
        starts, addresses[firsts].view(np.uint64), lengths[firsts], strides, devices[firsts]
    )


def _look(
    addresses: Integers, lengths: Integers, devices: Integers, steps: Integers, inside: Flags
) -> tuple[bool, bool]:
    """Fills in the distances from row to row, and which are the first row's length; says whether
    all rows have its length, and its device. In pieces, so that each row is fetched once."""
    equal = scratch("equal", "?", _PIECE)
    one_length = one_device = True
    for first in range(0, len(addresses), _PIECE):
        end = min(first + _PIECE, len(addresses))
        last = min(end, len(steps))
        np.subtract(addresses[first + 1 : last + 1], addresses[first:last], out=steps[first:last])
        np.equal(steps[first:last], lengths[0], out=inside[first:last])
        piece = equal[: end - first]
        one_length = one_length and bool(np.equal(lengths[first:end], lengths[0], out=piece).all())
        one_device = one_device and bool(np.equal(devices[first:end], devices[0], out=piece).all())
    return one_length, one_device


def _outside(inside: Flags) -> Integers:
    return np.flatnonzero(np.logical_not(inside, out=scratch("equal", "?", len(inside))))


def _mark_overlapping(
    inside: Flags, steps: Integers, lengths: Integers, devices: Integers
) -> Integers:
    """Positions where a region ends. Evenly spaced rows that share bytes are one region as well,
    with too small a stride: no two buffers lie like that."""
    rest = _outside(inside)
    shared = (steps[rest] > 0) & (steps[rest] < lengths[rest])
    shared &= (lengths[rest] == lengths[rest + 1]) & (devices[rest] == devices[rest + 1])
    for at in rest[shared].tolist():
        if at == 0 or not inside[at - 1] or steps[at - 1] == steps[at]:
            inside[at] = True
            if at + 1 < len(steps) and steps[at + 1] != steps[at]:
                inside[at + 1] = False
    return _outside(inside) if shared.any() else rest


def _usual(steps: Integers, length: int) -> int:
    """The distance from slot to slot: dense where any two rows are, else the commonest."""
    if bool((steps == length).any()):
        return length
    distances, times = np.unique(steps[steps > 0], return_counts=True)
    return int(distances[times.argmax()]) if len(distances) and times.max() > 1 else length
