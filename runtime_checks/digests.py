"""Digests of host memory, one per descriptor, by numpy: slow and plain.

The digest of a row is the sum of its 32-bit words, each times an odd 64-bit number of its
position, mod 2^64: one changed word, or two words exchanged, always change it. The bytes are read
by `process_vm_readv`, which refuses memory that is not there where a pointer would crash.
"""

import ctypes
import os
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.regions import Addresses, Integers
from kvlint.runtime_checks.selection import Selection

Digests = NDArray[np.uint64]

_WORD: Final = 4
_PIECES: Final = 1024
# Bytes that are looked at together: calculating takes eight times as much memory.
_AT_ONCE: Final = 1 << 20
_ROUND: Final = 0x9E3779B97F4A7C15


class UnreadableError(OSError):
    """Memory that this process cannot read, or a system without `process_vm_readv`."""


def digests_of(selection: Selection) -> Digests:
    """(N,) a digest for each selected descriptor, in order; all in host memory of this process.
    Raises `UnreadableError`."""
    begins, lengths = selection.addresses, selection.lengths
    found = np.zeros(len(begins), np.uint64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        each = max(1, min(_PIECES, _AT_ONCE // max(1, int(length))))
        for first in range(0, len(rows), each):
            some = rows[first : first + each]
            found[some] = _digests_at(begins[some], int(length))
    return found


def _digests_at(begins: Addresses, length: int) -> Digests:
    """(n,) of `length` bytes from each address, long ones piece by piece."""
    found = np.zeros(len(begins), np.uint64)
    for first in range(0, length, _AT_ONCE):
        rows = _read(begins + np.uint64(first), min(_AT_ONCE, length - first))
        found += _digests(rows, first // _WORD)
    return found


def _digests(rows: NDArray[np.uint8], first_word: int) -> Digests:
    spare = -rows.shape[1] % _WORD
    words = np.pad(rows, ((0, 0), (0, spare))).view(np.uint32).astype(np.uint64)
    products = words * _weights(first_word, words.shape[1])
    summed: Digests = products.sum(axis=1, dtype=np.uint64)
    return summed


def _weights(first: int, count: int) -> Digests:
    position = np.arange(first, first + count, dtype=np.uint64)
    mixed = (position * np.uint64(_ROUND)) >> np.uint64(33)
    return (mixed << np.uint64(33)) | (position * np.uint64(2) + np.uint64(1))


def _read(begins: Addresses, length: int) -> NDArray[np.uint8]:
    """(n, length) bytes from each address; n is at most 1,024."""
    rows = np.empty((len(begins), length), np.uint8)
    if not rows.size:
        return rows
    function = getattr(ctypes.CDLL(None, use_errno=True), "process_vm_readv", None)
    if function is None:
        raise UnreadableError("this system has no process_vm_readv")
    pieces = np.stack((begins, np.full(len(begins), length, np.uint64)), axis=1)
    whole = np.array([[rows.ctypes.data, rows.nbytes]], np.uint64)
    function.restype = ctypes.c_ssize_t
    copied = function(
        os.getpid(),
        ctypes.c_void_p(whole.ctypes.data),
        ctypes.c_ulong(1),
        ctypes.c_void_p(pieces.ctypes.data),
        ctypes.c_ulong(len(pieces)),
        ctypes.c_ulong(0),
    )
    if copied != rows.nbytes:
        raise UnreadableError(ctypes.get_errno(), "host memory of a source cannot be read")
    return rows


def first_difference(before: Digests, after: Digests) -> int | None:
    """The first position whose digest changed."""
    changed: Integers = np.flatnonzero(before != after)
    return int(changed[0]) if len(changed) else None
