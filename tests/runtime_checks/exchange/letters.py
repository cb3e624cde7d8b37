"""Messages for tests of the exchange, and a mailbox in memory of its own with one who writes it."""

import numpy as np
from hypothesis import settings

from kvlint.runtime_checks.digests.rows import Rows
from kvlint.runtime_checks.exchange import records
from kvlint.runtime_checks.exchange.mailbox import Mailbox
from kvlint.runtime_checks.exchange.messages import Announced, Digested, Message, Sender, Stage
from kvlint.runtime_checks.exchange.records import BODY, STAMP, encode
from kvlint.runtime_checks.exchange.region import CELLS, SIZE, Region

KEY = b"k" * 32
UNHURRIED = settings(deadline=None)
SENDER = Sender("prefill", 7)


def rows(count: int, seed: int = 0, regions: int = 61) -> Rows:
    """Rows as a transfer has them: region after region, anywhere in it."""
    random = np.random.default_rng(seed)
    which = np.sort(random.integers(0, regions, count))
    identities = random.integers(0, 1 << 63, regions, np.uint64) * np.uint64(2)
    lengths = random.integers(1, 1 << 20, regions)
    addresses = random.integers(0, 1 << 47, count).astype(np.uint64)
    return Rows(addresses, lengths[which], identities[which])


def tags(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 63, count, np.uint64) * np.uint64(2)


def announced(count: int, *, sender: Sender = SENDER, transfer: int = 1, to: str = "decode"):
    return Announced(sender, to, transfer.to_bytes(16), "WRITE", rows(count, transfer))


def digested(count: int, *, sender: Sender = SENDER, transfer: int = 1, to: str = "decode"):
    return Digested(sender, to, transfer.to_bytes(16), Stage.POST, tags(count, transfer))


def in_records(message: Message, sequence: int = 0, key: bytes = KEY) -> list[bytes]:
    return list(encode(message, message.pack(), sequence, key))


def told(message: Message) -> tuple:
    """All that a message says, comparable."""
    about = type(message), message.sender, message.receiver, message.transfer
    if isinstance(message, Announced):
        return (*about, message.operation, told_rows(message.rows))
    return (*about, message.stage, message.tags.tolist())


def told_rows(given: Rows) -> tuple:
    return given.addresses.tolist(), given.lengths.tolist(), given.identities.tolist()


def sealed_again(record: bytes) -> bytes:
    """The record with the seal that belongs to it, as somebody with the key would make it."""
    return record[:BODY] + records._seal(memoryview(record), KEY)


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
        for name in names:
            self.mailbox.admit(name)

    def write(self, record: bytes, cell: int, stamp: bytes | None = None) -> None:
        stamp = record[BODY : BODY + STAMP] if stamp is None else stamp
        self.region.cells[cell % CELLS] = np.frombuffer(record, np.uint8)
        self.region.stamps[cell % CELLS] = int.from_bytes(stamp, "little")

    def send(self, message: Message, sequence: int = 0, cell: int = 0) -> int:
        """As a channel does; how many records it took."""
        written = in_records(message, sequence)
        for at, record in enumerate(written):
            self.write(record, cell + at)
        return len(written)

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
