"""Records: what a message is cut into, each of one size, numbered and sealed with the run's key.

    header (112 bytes) | piece of the message (3968) | seal (16)

The seal is a keyed BLAKE2b of all that stands before it, so a record that was half written, or
that somebody without the key has made, is none. Nothing of a record is evaluated: its fields are
integers, and how much of it is used follows from the message's length.
"""

import hmac
import struct
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from kvlint.runtime_checks.exchange.messages import DETAILS, TRANSFER, Kind, Message, Sender

RECORD: Final = 4096
SEAL: Final = 16
STAMP: Final = 8
"""The first bytes of a seal: they change whenever the record does."""
MOST_PARTS: Final = 896

MAGIC: Final = 0x6B766C78
VERSION: Final = 1
NAME: Final = 48

# magic, version, kind, detail, sender, receiver, sequence, transfer, part, total, spare, name
_FIELDS: Final = struct.Struct(f"<IHBBQQQ{TRANSFER}sIIQ{NAME}s")
BODY: Final = RECORD - SEAL
ROOM: Final = BODY - _FIELDS.size
# hashlib lets go of the interpreter for 2,048 bytes and more, and may wait milliseconds for it
# in a process with other busy threads. Two halves take it 6 microseconds without.
_HALF: Final = BODY // 2


class Record(NamedTuple):
    """One part of a message, as its sender has sealed it.

    receiver  number of the agent's name under the key
    sequence  counts the records from this sender to this receiver, from 0
    detail    which operation or stage
    total     bytes of the whole message
    data      those of this part
    """

    sender: Sender
    receiver: int
    sequence: int
    transfer: bytes
    kind: Kind
    detail: int
    part: int
    total: int
    data: bytes


@lru_cache(maxsize=1024)
def number_of(name: str, key: bytes) -> int:
    """An agent's name as records have it: who has no key learns nothing of it."""
    return int.from_bytes(blake2b(name.encode(errors="replace"), key=key, digest_size=8).digest())


def parts_of(total: int) -> int:
    """Records that so many bytes take."""
    return max(1, -(-total // ROOM))


def encode(message: Message, data: bytes, sequence: int, key: bytes) -> Iterator[bytes]:
    """A message, of which `data` are the bytes, in sealed records, numbered from `sequence` on.
    Raises ValueError for what no receiver would take."""
    # One by one, so that their memory is the same: that of many is got and given back each time,
    # which takes longer than to seal them.
    total, parts = len(data), parts_of(len(data))
    if parts > MOST_PARTS:
        raise ValueError(f"{total} bytes are {parts} records, and a message has {MOST_PARTS}")
    if len(message.transfer) != TRANSFER:
        raise ValueError(f"a transfer's name is {TRANSFER} bytes, not {len(message.transfer)}")
    receiver = number_of(message.receiver, key)
    kind, detail = message.kind, message.detail
    name = message.sender.name.encode(errors="replace")
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
        body = (header + data[part * ROOM : (part + 1) * ROOM]).ljust(BODY, b"\0")
        yield body + _seal(memoryview(body), key)


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
    if kind not in DETAILS or detail >= DETAILS[kind]:
        return "kind"
    parts = parts_of(total)
    if parts > MOST_PARTS or part >= parts:
        return "part"
    begin = _FIELDS.size
    data = record[begin : begin + min(total - part * ROOM, ROOM)]
    who = Sender(name.rstrip(b"\0").decode(errors="replace"), sender)
    return Record(who, receiver, sequence, transfer, Kind(kind), detail, part, total, data)


def _seal(record: memoryview, key: bytes) -> bytes:
    state = blake2b(record[:_HALF], key=key, digest_size=SEAL, person=b"kvlint record")
    state.update(record[_HALF:BODY])
    return state.digest()
