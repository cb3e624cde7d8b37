"""Records: what a message is cut into, each of one size, numbered and sealed with the run's key.

    header (112 bytes) | entries (3968) | seal (16)

The seal is a keyed BLAKE2b of all that stands before it, so a record that was half written, that
somebody without the key has made, or that was meant for another agent is none. Nothing of a
record is evaluated: fields are integers, entries are of fixed width, their number follows from
the message's total.
"""

import hmac
import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.digests.reference import Digests

RECORD: Final = 4096
SEAL: Final = 16
STAMP: Final = 8
"""The first bytes of a seal: they change whenever the record does."""

MAGIC: Final = 0x6B766C78
VERSION: Final = 1
MOST_PARTS: Final = 896

TRANSFER: Final = 16
NAME: Final = 48

ROW: Final = np.dtype([("address", "<u8"), ("length", "<u8"), ("identity", "<u8")])
"""One row of a transfer: bytes from an address at the receiver on, and whose they should be."""

Rows = NDArray[np.void]
Records = NDArray[np.uint8]
"""(n, RECORD)"""

# magic, version, kind, detail, sender, receiver, sequence, transfer, part, total, spare, name
_FIELDS: Final = struct.Struct(f"<IHBBQQQ{TRANSFER}sIIQ{NAME}s")

BODY: Final = RECORD - SEAL
ROOM: Final = BODY - _FIELDS.size
# hashlib lets go of the interpreter for 2,048 bytes and more, and may wait milliseconds for it
# in a process with other busy threads. Two halves take it 6 microseconds without.
_HALF: Final = BODY // 2
assert _HALF < 2048


class Kind(IntEnum):
    """What the entries of a message are."""

    ROWS = 1
    DIGESTS = 2


ENTRIES: Final[dict[Kind, np.dtype[Any]]] = {Kind.ROWS: ROW, Kind.DIGESTS: np.dtype("<u8")}
OPERATIONS: Final = ("READ", "WRITE")


class Stage(IntEnum):
    """When the source was digested."""

    POST = 0
    COMPLETION = 1


class Sender(NamedTuple):
    """
    name    of the agent, at most 48 bytes of it
    number  of this life of what it sends to one receiver
    """

    name: str
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Announced:
    """A transfer will move these rows.

    receiver   name of the agent that it is told to
    transfer   16 bytes, the sender's name for it
    operation  "READ" or "WRITE", as the sender posts it
    rows       (N,) of `ROW`, in the transfer's order. Nobody has checked the addresses
    """

    sender: Sender
    receiver: str
    transfer: bytes
    operation: str
    rows: Rows


@dataclass(frozen=True, slots=True, eq=False)
class Digested:
    """What the source of a transfer held: (N,) tags, in the transfer's order."""

    sender: Sender
    receiver: str
    transfer: bytes
    stage: Stage
    tags: Digests


Message = Announced | Digested


class Record(NamedTuple):
    """One part of a message, as its sender has sealed it.

    receiver  number of the agent's name under the key
    sequence  counts the records from this sender to this receiver, from 0
    detail    which operation or stage
    total     entries of the whole message
    entries   those of this part
    """

    sender: Sender
    receiver: int
    sequence: int
    transfer: bytes
    kind: Kind
    detail: int
    part: int
    total: int
    entries: NDArray[Any]

    @property
    def parts(self) -> int:
        return parts_of(self.kind, self.total)


@lru_cache(maxsize=1024)
def number_of(name: str, key: bytes) -> int:
    """An agent's name as records have it: who has no key learns nothing of it."""
    return int.from_bytes(blake2b(name.encode(errors="replace"), key=key, digest_size=8).digest())


def room_of(kind: Kind) -> int:
    """Entries that one record holds."""
    return ROOM // ENTRIES[kind].itemsize


def parts_of(kind: Kind, total: int) -> int:
    """Records that so many entries take."""
    return max(1, -(-total // room_of(kind)))


def rows_of(addresses: Digests, lengths: NDArray[Any], identities: Digests) -> Rows:
    """(N,) rows of (N,) addresses, lengths in bytes and identities."""
    rows = np.empty(len(addresses), ROW)
    rows["address"], rows["length"], rows["identity"] = addresses, lengths, identities
    return rows


def encode(message: Message, sequence: int, key: bytes) -> Records:
    """The message in sealed records, numbered from `sequence` on. Raises ValueError for what no
    receiver would take."""
    if isinstance(message, Announced):
        kind, detail = Kind.ROWS, OPERATIONS.index(message.operation)
        entries: NDArray[Any] = message.rows
    else:
        kind, detail, entries = Kind.DIGESTS, int(message.stage), message.tags
    total, room, width = len(entries), room_of(kind), ENTRIES[kind].itemsize
    parts = parts_of(kind, total)
    if parts > MOST_PARTS:
        raise ValueError(f"{total} entries are {parts} records, and a message has {MOST_PARTS}")
    if len(message.transfer) != TRANSFER:
        raise ValueError(f"a transfer's name is {TRANSFER} bytes, not {len(message.transfer)}")
    piece = room * width
    data = np.ascontiguousarray(entries, ENTRIES[kind]).tobytes()
    name, receiver = message.sender.name.encode(errors="replace"), number_of(message.receiver, key)
    sealed = bytearray()
    for part in range(parts):
        header = _FIELDS.pack(
            MAGIC,
            VERSION,
            kind,
            detail,
            message.sender.number,
            receiver,
            sequence + part,
            message.transfer,
            part,
            total,
            0,
            name,
        )
        body = (header + data[part * piece : (part + 1) * piece]).ljust(BODY, b"\0")
        sealed += body
        sealed += _seal(memoryview(body), key)
    return np.frombuffer(sealed, np.uint8).reshape(parts, RECORD)


def decode(record: bytes, key: bytes) -> Record | str:
    """What stands in RECORD bytes; a word that says why nothing does."""
    if len(record) != RECORD:
        return "size"
    magic, version, kind, detail, *fields = _FIELDS.unpack_from(record)
    if magic != MAGIC:
        return "magic"
    if version != VERSION:
        return "version"
    view = memoryview(record)
    if not hmac.compare_digest(_seal(view, key), view[BODY:]):
        return "seal"
    # From here on it is what somebody with the key has written, who may be mistaken.
    sender, receiver, sequence, transfer, part, total, _, name = fields
    if kind not in (Kind.ROWS, Kind.DIGESTS) or detail > 1:
        return "kind"
    kind = Kind(kind)
    parts = parts_of(kind, total)
    if parts > MOST_PARTS or part >= parts:
        return "part"
    room = room_of(kind)
    count = min(total - part * room, room)
    entries = np.frombuffer(record, ENTRIES[kind], count, _FIELDS.size)
    called = name.rstrip(b"\0").decode(errors="replace")
    return Record(
        Sender(called, sender), receiver, sequence, transfer, kind, detail, part, total, entries
    )


def _seal(record: memoryview, key: bytes) -> bytes:
    state = blake2b(record[:_HALF], key=key, digest_size=SEAL, person=b"kvlint record")
    state.update(record[_HALF:BODY])
    return state.digest()
