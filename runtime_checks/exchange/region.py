"""The memory that peers write records to: at an address that the run's key says.

A peer asks NIXL whether memory at that address is registered here: it is where this process is
armed with the same key, and only there. The region is never given back while the process lives.
A peer may write it as long as it has the metadata, and a write to memory that is gone breaks its
connection, the engine's transfers with it, or ends this process.
"""

import ctypes
import errno
import mmap
import os
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.exchange.records import RECORD, STAMP

SIZE: Final = 16 << 20
CELLS: Final = 3064
"""Records that peers may have written and nobody has read."""
STAGED: Final = 1024
"""Records on their way out."""

# stamps of the cells | stamps on their way out | cells | records on their way out
STAGED_STAMPS_AT: Final = 6 * RECORD
CELLS_AT: Final = 8 * RECORD
STAGED_AT: Final = CELLS_AT + CELLS * RECORD
assert CELLS * STAMP <= STAGED_STAMPS_AT
assert STAGED_STAMPS_AT + STAGED * STAMP <= CELLS_AT
assert STAGED_AT + STAGED * RECORD == SIZE

# Linux puts programs and their heaps above 0x5555_5555_4000 and all else below 0x7fff_ffff_ffff;
# sanitizers and Java have theirs below 0x4000_0000_0000. A region of another layout gets another
# place, so that peers of two versions do not meet.
_FIRST: Final = 0x4B76_0000_0000
_PLACES: Final = 1 << 16

_PRIVATE_ANONYMOUS: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_FIXED_NOREPLACE: Final = 0x100000


class TakenError(OSError):
    """The address is another's; the message is one line."""


def address_of(key: bytes) -> int:
    """Where the region of this key lies in each process that has one."""
    place = blake2b(b"region", key=key, digest_size=2, person=b"kvlint region 1").digest()
    return _FIRST + int.from_bytes(place) % _PLACES * SIZE


class Region:
    """What lies where.

    memory         (SIZE,) bytes
    stamps         (CELLS,) of the records in the cells
    cells          (CELLS, RECORD) bytes that peers write
    staged_stamps  (STAGED, STAMP) bytes, of the records on their way out
    staged         (STAGED, RECORD) bytes
    """

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        assert memory.nbytes == SIZE
        self.address = int(memory.ctypes.data)
        self.stamps: NDArray[np.uint64] = memory[: CELLS * STAMP].view("<u8")
        self.staged_stamps = _table(memory, STAGED_STAMPS_AT, STAGED, STAMP)
        self.cells = _table(memory, CELLS_AT, CELLS, RECORD)
        self.staged = _table(memory, STAGED_AT, STAGED, RECORD)


def _table(memory: NDArray[np.uint8], at: int, rows: int, width: int) -> NDArray[np.uint8]:
    return memory[at : at + rows * width].reshape(rows, width)


def map_region(address: int) -> Region:
    """Zeroed memory at the address, of this process alone: a forked child does not have it, so it
    neither reads its parent's nor moves what a network card writes to. Raises TakenError where
    something else is there, OSError where the system has none."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    flags = _PRIVATE_ANONYMOUS | _FIXED_NOREPLACE
    found = libc.mmap(address, SIZE, protection, flags, -1, 0)
    if found == ctypes.c_void_p(-1).value:
        code = ctypes.get_errno()
        if code == errno.EEXIST:
            raise TakenError(code, f"memory at {address:#x} is taken")
        raise OSError(code, f"no memory at {address:#x}: {os.strerror(code)}")
    if found != address:
        # A kernel older than the flag takes the address for a wish.
        libc.munmap(found, SIZE)
        raise TakenError(errno.EEXIST, f"memory at {address:#x} is taken")
    if libc.madvise(address, SIZE, mmap.MADV_DONTFORK):
        code = ctypes.get_errno()
        libc.munmap(address, SIZE)
        raise OSError(code, f"memory at {address:#x} cannot be kept from forks")
    return Region(np.ctypeslib.as_array((ctypes.c_uint8 * SIZE).from_address(address)))
