"""One process's mailbox: which cells have changed, and what stands in them.

A sender writes records to cells that follow one another, from a place of its own on round the
ring, and for each a stamp, which is the beginning of the record's seal. So one comparison of all
stamps tells whether anything came, whoever wrote it. A record that is written over before it is
read is lost; the numbers of its sender's next ones say so.
"""

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from kvlint.runtime_checks.exchange.assembly import Assembly
from kvlint.runtime_checks.exchange.messages import Message
from kvlint.runtime_checks.exchange.records import BODY, STAMP, Record, decode, number_of
from kvlint.runtime_checks.exchange.region import CELLS, Region, address_of, map_region
from kvlint.runtime_checks.exchange.staging import Staging

AT_ONCE: Final = 128
"""Records looked at in one call: a flood costs a call a millisecond."""
MOST_REFUSED: Final = 1 << 16
"""After so many the mailbox is closed: somebody writes it who should not."""
TRIES: Final = 6
FIRST_WAIT: Final = 0.001
"""Seconds until a record that is not whole is looked at again; each further wait is four times as
long, so after a third of a second it is refused."""


class Mailbox:
    """
    on_their_way  by agent of NIXL that has the region registered: what it has posted from there
    counts        what was sent and received, refused, lost and dropped
    live          False where nothing is to be touched: it was flooded, or this is a forked child
    """

    def __init__(
        self, region: Region, key: bytes, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.region = region
        self.key = key
        self.counts: Counter[str] = Counter()
        self.on_their_way: WeakKeyDictionary[Any, deque[Any]] = WeakKeyDictionary()
        self.staging = Staging(region)
        self._clock = clock
        self._assembly = Assembly(self.counts)
        self._busy = threading.Lock()
        # By cell: the stamp when it was read, or given up; the one when it was tried, how often
        # since, and when to try again.
        self._seen = region.stamps.copy()
        self._tried = self._seen.copy()
        self._tries = np.zeros(CELLS, np.int64)
        self._due = np.zeros(CELLS)
        self._start_over()

    def _start_over(self) -> None:
        """What stands there now is no news."""
        self.live = True
        self._most_refused = self.refused + MOST_REFUSED
        self._seen[:] = self._tried[:] = self.region.stamps
        self._known = self._seen.tobytes()
        self._wake = float("inf")
        self._next = 0

    def admit(self, name: str) -> None:
        """Records for the agent of this name are taken from here on."""
        if not self._assembly.receivers:
            self._start_over()
        self._assembly.receivers[number_of(name, self.key)] = name

    def dismiss(self, name: str) -> None:
        self._assembly.receivers.pop(number_of(name, self.key), None)

    def receive(self) -> list[Message]:
        """Messages that are whole by now, for any agent of this process; those of one sender in
        its order, though one may overtake another that came in pieces. Two microseconds where
        nothing came. A second call at the same time finds nothing."""
        if not self.live:
            return []
        if self.region.stamps.tobytes() == self._known and self._wake > self._clock():
            return []
        if not self._busy.acquire(blocking=False):
            return []
        try:
            found: list[tuple[int, int, Message]] = []
            for record in self._records():
                message = self._assembly.take(record)
                if message is not None:
                    found.append((record.sender.number, record.sequence, message))
            if self.refused > self._most_refused:
                self.counts["closed"] += 1
                self.live = False
            return [message for *_, message in sorted(found, key=lambda one: one[:2])]
        finally:
            self._busy.release()

    @property
    def refused(self) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith("refused."))

    def _records(self) -> Iterator[Record]:
        stamps, now = self.region.stamps.copy(), self._clock()
        fresh = (stamps != self._seen) & ((self._due <= now) | (stamps != self._tried))
        cells = np.flatnonzero(fresh)
        # From where the last call ended on, so that a flood of some cells hides no other.
        cells = np.roll(cells, -int(np.searchsorted(cells, self._next)))
        for cell in cells[:AT_ONCE].tolist():
            record = self._read(cell, int(stamps[cell]))
            if isinstance(record, Record):
                yield record
            elif not self._again(cell, stamps[cell], now):
                self.counts[f"refused.{record}"] += 1
                self._seen[cell] = stamps[cell]
            self._next = cell + 1
        waiting = stamps != self._seen
        self._known = stamps.tobytes()
        # What was left for the next call was due before.
        self._wake = float(self._due[waiting].min()) if waiting.any() else float("inf")

    def _read(self, cell: int, stamp: int) -> Record | str:
        # Whoever writes it may write it at any time: what is checked is a copy.
        raw = self.region.cells[cell].tobytes()
        record = decode(raw, self.key)
        if isinstance(record, Record):
            if int.from_bytes(raw[BODY : BODY + STAMP], "little") != stamp:
                return "torn"
            self._seen[cell] = self._tried[cell] = stamp
        return record

    def _again(self, cell: int, stamp: np.uint64, now: float) -> bool:
        """Whether to look at it once more: it may come in pieces."""
        if self._tried[cell] != stamp:
            if self._tried[cell] != self._seen[cell]:
                # It was written over, whatever it was.
                self.counts["refused.torn"] += 1
            self._tried[cell], self._tries[cell] = stamp, 0
        self._due[cell] = now + FIRST_WAIT * 4.0 ** self._tries[cell]
        self._tries[cell] += 1
        return bool(self._tries[cell] < TRIES)


_MAILBOXES: Final[dict[int, Mailbox]] = {}


def mailbox_of(key: bytes) -> Mailbox:
    """This process's mailbox of the key, made where there is none. Raises OSError, one line."""
    address = address_of(key)
    mailbox = _MAILBOXES.get(address)
    if mailbox is None or mailbox.key != key:
        # Of another key with the same address the memory is taken, and that is said.
        mailbox = _MAILBOXES[address] = Mailbox(map_region(address), key)
    return mailbox


def _forked() -> None:
    # The memory is the parent's alone: nothing here may touch it.
    for mailbox in _MAILBOXES.values():
        mailbox.live = False
    _MAILBOXES.clear()


os.register_at_fork(after_in_child=_forked)
