"""What one side tells the other of a transfer, and the bytes that say it."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.digests.rows import Rows

Bytes = bytes | memoryview
TRANSFER: Final = 16
"""Bytes of a transfer's name."""
OPERATIONS: Final = ("READ", "WRITE")

# Rows of one region follow each other, so what is the same of all is said once.
_RUN: Final = np.dtype([("identity", "<u8"), ("length", "<i8"), ("count", "<i8")])
_NUMBER: Final = np.dtype("<u8")


class Kind(IntEnum):
    ROWS = 1
    DIGESTS = 2


class Stage(IntEnum):
    """When the sender's side was digested: of a source the first two, of a destination the last."""

    POST = 0
    COMPLETION = 1
    COMMIT = 2


class Sender(NamedTuple):
    """
    name    of the agent, at most 48 bytes of it
    number  of this life of what it sends to one receiver
    """

    name: str
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Announced:
    """A transfer moves these rows.

    receiver   name of the agent that it is told to
    transfer   16 bytes, the sender's name for it
    operation  "READ" or "WRITE", as the sender posts it
    rows       in the receiver's memory. Nobody has compared them with what is registered there
    """

    sender: Sender
    receiver: str
    transfer: bytes
    operation: str
    rows: Rows

    @property
    def kind(self) -> Kind:
        return Kind.ROWS

    @property
    def detail(self) -> int:
        return OPERATIONS.index(self.operation)

    def pack(self) -> bytes:
        """How many runs, the runs, and an address for each row."""
        rows = self.rows
        other = np.diff(rows.identities).astype(bool) | np.diff(rows.lengths).astype(bool)
        firsts = np.flatnonzero(np.r_[len(rows) > 0, other])
        runs = np.empty(len(firsts), _RUN)
        runs["identity"], runs["length"] = rows.identities[firsts], rows.lengths[firsts]
        runs["count"] = np.diff(np.r_[firsts, len(rows)])
        number = len(runs).to_bytes(_NUMBER.itemsize, "little")
        return number + runs.tobytes() + rows.addresses.astype(_NUMBER).tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class Digested:
    """What the sender's side of a transfer held: (N,) tags, in the order of its rows."""

    sender: Sender
    receiver: str
    transfer: bytes
    stage: Stage
    tags: Digests

    @property
    def kind(self) -> Kind:
        return Kind.DIGESTS

    @property
    def detail(self) -> int:
        return int(self.stage)

    def pack(self) -> bytes:
        return self.tags.astype(_NUMBER).tobytes()


Message = Announced | Digested
DETAILS: Final = {Kind.ROWS: len(OPERATIONS), Kind.DIGESTS: len(Stage)}
"""How many operations, or stages, there are."""


def unpack(
    sender: Sender, receiver: str, transfer: bytes, kind: Kind, detail: int, data: Bytes
) -> Message | None:
    """The message of these bytes; None where they are none."""
    if kind is Kind.DIGESTS:
        tags = _numbers(data)
        return tags if tags is None else Digested(sender, receiver, transfer, Stage(detail), tags)
    rows = _rows(data)
    if rows is None:
        return None
    return Announced(sender, receiver, transfer, OPERATIONS[detail], rows)


def _rows(data: Bytes) -> Rows | None:
    begin = _NUMBER.itemsize
    number = int.from_bytes(data[:begin], "little")
    end = begin + number * _RUN.itemsize
    if end > len(data) or len(data) < begin:
        return None
    runs = np.frombuffer(data[begin:end], _RUN)
    addresses = _numbers(data[end:])
    if addresses is None:
        return None
    counts, most = runs["count"], len(addresses)
    if ((counts < 1) | (counts > most)).any() or int(counts.sum()) != most:
        return None
    lengths = np.repeat(runs["length"], counts).astype(np.int64)
    return Rows(addresses, lengths, np.repeat(runs["identity"], counts).astype(np.uint64))


def _numbers(data: Bytes) -> Digests | None:
    if len(data) % _NUMBER.itemsize:
        return None
    return np.frombuffer(data, _NUMBER).astype(np.uint64)
