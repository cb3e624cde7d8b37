"""Messages for tests of the exchange, and a mailbox in memory of its own with one who writes it."""

import numpy as np

from kvlint.runtime_checks.exchange.mailbox import Mailbox
from kvlint.runtime_checks.exchange.records import (
    BODY,
    RECORD,
    STAMP,
    Announced,
    Digested,
    Message,
    Sender,
    Stage,
    encode,
    rows_of,
)
from kvlint.runtime_checks.exchange.region import CELLS, SIZE, Region

KEY = b"k" * 32
SENDER = Sender("prefill", 7)


def announced(count: int, *, sender: Sender = SENDER, transfer: int = 1, to: str = "decode"):
    random = np.random.default_rng(transfer)
    columns = random.integers(0, 1 << 63, (3, count), np.uint64)
    return Announced(sender, to, transfer.to_bytes(16), "WRITE", rows_of(*columns))


def digested(count: int, *, sender: Sender = SENDER, transfer: int = 1, to: str = "decode"):
    random = np.random.default_rng(transfer)
    tags = random.integers(0, 1 << 63, count, np.uint64)
    return Digested(sender, to, transfer.to_bytes(16), Stage.POST, tags)


def told(message: Message) -> tuple:
    """All that a message says, comparable."""
    if isinstance(message, Announced):
        return (*_about(message), message.operation, message.rows.tolist())
    return (*_about(message), message.stage, message.tags.tolist())


def _about(message: Message) -> tuple:
    return type(message), message.sender, message.receiver, message.transfer


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Box:
    """A mailbox in plain memory, and a peer that writes it as it likes."""

    def __init__(self, *names: str) -> None:
        self.clock = Clock()
        self.region = Region(np.zeros(SIZE, np.uint8))
        self.mailbox = Mailbox(self.region, KEY, self.clock)
        for name in names or ("decode",):
            self.mailbox.admit(name)

    def write(self, record: bytes, cell: int, stamp: bytes | None = None) -> None:
        stamp = record[BODY : BODY + STAMP] if stamp is None else stamp
        self.region.cells[cell % CELLS] = np.frombuffer(record, np.uint8)
        self.region.stamps[cell % CELLS] = int.from_bytes(stamp, "little")

    def send(self, message: Message, sequence: int = 0, cell: int = 0) -> int:
        """As a channel does; the number and cell of the next record, less those of the first."""
        records = [record.tobytes() for record in encode(message, sequence, KEY)]
        for at, record in enumerate(records):
            self.write(record, cell + at)
        return len(records)

    def receive(self) -> list[tuple]:
        return [told(message) for message in self.mailbox.receive()]

    def wait(self) -> list[tuple]:
        """Receive until nothing is tried again."""
        found = []
        for _ in range(8):
            self.clock.now += 1
            found += self.receive()
        return found

    @property
    def counts(self) -> dict[str, int]:
        return {name: count for name, count in self.mailbox.counts.items() if count}


def sealed_again(record: bytes) -> bytes:
    """The record with the seal that belongs to it, as somebody with the key would make it."""
    from kvlint.runtime_checks.exchange import records

    return record[:BODY] + records._seal(memoryview(record), KEY)


assert BODY + 16 == RECORD
