"""Digests of host memory, by numpy: plain, and slow beside a GPU's.

The bytes are read by `process_vm_readv`, which refuses memory that is not there where a pointer
would crash.
"""

import ctypes
import os
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.reference import WORD, Digests, digests_of_rows, seeds
from kvlint.runtime_checks.regions import Addresses

_PIECES: Final = 1024
# Bytes that are looked at together: calculating takes eight times as much memory.
_AT_ONCE: Final = 1 << 20


class UnreadableError(OSError):
    """Memory that this process cannot read, or a system without what reads it."""


def digests_of(pages: Pages, seed: int = 0, lanes: int = 1) -> Digests:
    """(N,) a digest for each page, or (N, 2) for two lanes; all in host memory of this
    process. Raises `UnreadableError`."""
    if lanes > 1:
        return np.stack([digests_of(pages, lane) for lane in seeds(seed, lanes)], axis=1)
    found = [_digests_of_block(*block, seed) for block in pages.blocks()]
    return pages.ordered(np.concatenate(found) if found else np.zeros(0, np.uint64))


def _digests_of_block(begins: Addresses, length: int, seed: int) -> Digests:
    found = np.zeros(len(begins), np.uint64)
    each = max(1, min(_PIECES, _AT_ONCE // max(1, length)))
    for first in range(0, len(begins), each):
        some = begins[first : first + each]
        found[first : first + each] = _digests_at(some, length, seed)
    return found


def _digests_at(begins: Addresses, length: int, seed: int) -> Digests:
    """(n,) of `length` bytes from each address, long ones piece by piece."""
    found = np.zeros(len(begins), np.uint64)
    for first in range(0, length, _AT_ONCE):
        rows = _read(begins + np.uint64(first), min(_AT_ONCE, length - first))
        found += digests_of_rows(rows, seed, first // WORD)
    return found


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
        raise UnreadableError(ctypes.get_errno(), "host memory of a page cannot be read")
    return rows
