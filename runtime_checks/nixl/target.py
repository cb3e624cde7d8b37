"""The digests of a transfer at the side that did not post it, and the verdict on all of them.

NIXL tells a target nothing but the notification. What the initiator says of a transfer comes from
an agent of this process, or from another process through the mailbox, where anybody may have
written it: no memory is touched that this agent has not registered.
"""

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count
from typing import Any, Final

import numpy as np

from kvlint.runtime_checks.checks import ARRIVED_WRONG, SOURCE_CHANGED, Breach, Place
from kvlint.runtime_checks.declared import declared
from kvlint.runtime_checks.digests.pages import Pages, pages_at
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.digests.rows import DECLARED, Rows, counted, identity_of
from kvlint.runtime_checks.digests.service import Digesting
from kvlint.runtime_checks.digests.verdicts import (
    Three,
    arrived_wrong,
    sent_elsewhere,
    source_changed,
)
from kvlint.runtime_checks.known import NOTHING, Known
from kvlint.runtime_checks.locks import Lock
from kvlint.runtime_checks.nixl.agents import Agent
from kvlint.runtime_checks.nixl.initiator import Moment
from kvlint.runtime_checks.nixl.teller import Teller
from kvlint.runtime_checks.policy import Site
from kvlint.runtime_checks.regions import Flags, Integers, Regions
from kvlint.runtime_checks.transfers import parts_of_name
from kvlint.runtime_checks.violations import Violation

_OPEN: Final = 1024
_SEEN: Final = 4096
_SHARED: Final = 8
_WRITTEN: Final = 256
# Seconds.
_DOUBTED: Final = 0.02


def id_of(transfer: str) -> bytes:
    """A transfer's name in 16 bytes: the first 8 are those of all with its notification."""
    stem, number = parts_of_name(transfer)
    shared = blake2b(stem.encode(errors="backslashreplace"), digest_size=_SHARED).digest()
    return shared + (number % (1 << 64)).to_bytes(16 - _SHARED, "little")


@dataclass(eq=False)
class _Arriving:
    """One transfer that somebody else has posted.

    far     whether it is another process that tells of it
    over    whether its notification was seen
    turn    how many were announced before it
    doubted since when it is known that something else arrived, in seconds
    found   the digests that are known by now
    wanted  those that are still worked on here
    """

    number: bytes
    name: str
    far: bool
    initiator: str
    operation: str
    rows: Rows
    over: bool = False
    found: dict[Moment, Digests] = field(default_factory=dict)
    wanted: set[Moment] = field(default_factory=set)
    pages: Pages | None = None
    owners: Sequence[Any] = ()
    turn: int = 0
    doubted: float | None = None

    def overwritten(self, later: Iterable[Rows]) -> Flags:
        """(N,) which of its pages share a byte with one of these."""
        found = np.zeros(len(self.rows), np.bool_)
        for rows in later:
            found |= self.rows.touched(rows)
        return found


class Target:
    """What others post to, or from, the memory of one agent of this process."""

    def __init__(self, agent: Agent, digesting: Digesting, teller: Teller) -> None:
        self._agent = agent
        self._digesting = digesting
        self._teller = teller
        self._open: OrderedDict[bytes, _Arriving] = OrderedDict()
        # Of those whose notification was not read yet, by what is the same of its likes.
        self._awaited: dict[bytes, set[bytes]] = {}
        # Of those that nobody had announced by the time that they were over.
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        # What was announced to be written last, each with its turn.
        self._turns = count(1)
        self._written: deque[tuple[int, Rows]] = deque(maxlen=_WRITTEN)
        self._doubted: deque[_Arriving] = deque()
        self._known: Known = NOTHING
        self._lock = Lock()

    def of(self, initiator: str) -> "FromInitiator":
        return FromInitiator(self, initiator)

    def announced(
        self, transfer: bytes, name: str | None, initiator: str, operation: str, rows: Rows
    ) -> None:
        """What a transfer will move.

        transfer  `id_of` its name, which another process does not tell
        """
        with self._lock:
            self._announced(transfer, name, initiator, operation, rows)

    def _announced(
        self, transfer: bytes, name: str | None, initiator: str, operation: str, rows: Rows
    ) -> None:
        counts = self._digesting.counts
        if not len(rows) or transfer in self._open:
            counts["announcements refused: empty, or made before"] += 1
            return
        if transfer in self._seen:
            counts["not compared: announced after the end"] += 1
            return
        arriving = _Arriving(
            transfer, name or transfer.hex(), name is None, initiator, operation, rows
        )
        self._open[transfer] = arriving
        self._awaited.setdefault(transfer[:_SHARED], set()).add(transfer)
        if len(self._open) > _OPEN:
            self._close(next(iter(self._open)))
            counts["not compared: too many transfers at a time"] += 1
        arriving.turn = next(self._turns)
        if operation == "READ":
            self._begin(arriving, Moment.POST)
        else:
            self._written.append((arriving.turn, rows))

    def notified(self, name: str) -> None:
        """The notification of a transfer was read: what it writes has arrived."""
        with self._lock:
            self._notified(name)

    def _notified(self, name: str) -> None:
        transfer = id_of(name)
        alike = self._awaited.get(transfer[:_SHARED], set())
        if alike != {transfer}:
            # Of several with this notification it is not known whose it is, nor where the two
            # sides do not count alike, as after a transfer that failed or a restart.
            for other in list(alike):
                self._close(other)
                self._digesting.counts["not compared: others have its notification"] += 1
            self._seen[transfer] = None
            if len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
            return
        arriving = self._open[transfer]
        self._heard(transfer)
        arriving.over, arriving.name = True, name
        if arriving.operation == "WRITE":
            self._begin(arriving, Moment.COMMIT)
        elif self._digesting.thrice:
            self._begin(arriving, Moment.COMPLETION)
        else:
            self._digesting.keep(self._judge(arriving))

    def rows(self, transfer: bytes) -> Rows | None:
        """What was announced, and is not judged yet."""
        arriving = self._open.get(transfer)
        return arriving.rows if arriving is not None else None

    def digested(
        self, transfer: bytes, moment: Moment, digests: Digests, owners: Sequence[Any] = ()
    ) -> None:
        """What the initiator's side held."""
        with self._lock:
            arriving = self._open.get(transfer)
            if arriving is None or len(digests) != len(arriving.rows):
                self._digesting.counts["not compared: not announced so"] += 1
                return
            arriving.found[moment] = digests
            arriving.owners = owners or arriving.owners
            self._digesting.keep(self._judge(arriving))

    def _begin(self, arriving: _Arriving, moment: Moment) -> None:
        pages = self._pages(arriving.rows)
        pending = self._digesting.begin(pages) if pages is not None else None
        if pending is None:
            self._close(arriving.number)
            return
        arriving.wanted.add(moment)
        arriving.pages = pages

        def keep(found: list[Digests]) -> Violation | None:
            with self._lock:
                arriving.wanted.discard(moment)
                arriving.found[moment] = found[0]
                return self._judge(arriving)

        # Raised when something is next asked for: a notification that was read is not lost.
        self._digesting.keep(self._digesting.later([pending], keep))

    def _pages(self, rows: Rows) -> Pages | None:
        """What this agent has registered of them: all, or nothing is touched."""
        registrations = self._agent.registrations
        room: Counter[tuple[str, int]] = Counter()
        for one in list(registrations.live.values()):
            room[one.kind, one.device] += one.length
        for (kind, device), length in sorted(room.items()):
            if kind not in ("DRAM", "VRAM") or not rows.within(length):
                continue
            if bool((registrations.holding(kind, _each(rows, device)) >= 0).all()):
                return pages_at(rows.addresses, rows.lengths, kind, device)
        self._digesting.counts["announcements refused: memory that is not registered"] += 1
        return None

    def settle(self, *, wait: bool = True) -> None:
        """All was taken that has come from other processes. Somebody may have announced there, and
        then written, what was found in the place of what was sent: it takes its time to come.

        wait  whether there is a later
        """
        if not self._doubted:
            return
        with self._lock:
            while self._doubted:
                since = self._doubted[0].doubted or 0.0
                if wait and time.monotonic() - since < _DOUBTED:
                    return
                self._digesting.keep(self._judge(self._doubted.popleft(), sure=True))

    def _judge(self, arriving: _Arriving, *, sure: bool = False) -> Violation | None:
        """Once all is there that is to come.

        sure  whether nothing is still on its way that would excuse it
        """
        post, commit = (arriving.found.get(m) for m in (Moment.POST, Moment.COMMIT))
        if post is None or commit is None or not arriving.over or arriving.wanted:
            return None
        three = Three(post, commit, arriving.found.get(Moment.COMPLETION))
        again = 0
        if arriving.operation == "WRITE" and three.wrong.any():
            if arriving.far and arriving.doubted is None:
                arriving.doubted = time.monotonic()
                self._doubted.append(arriving)
            if arriving.far and not sure:
                return None
            overwritten = arriving.overwritten(
                rows for turn, rows in self._written if turn > arriving.turn
            )
            again = int((overwritten & three.wrong).sum())
            commit = np.where(overwritten, post, commit)
            three = Three(post, commit, three.completion)
            self._digesting.counts["pages not compared: written again meanwhile"] += again
        self._close(arriving.number)
        self._digesting.counts["transfers compared"] += 1
        named = _Named(arriving, self._declared_for(arriving.rows))
        raises, wrong = None, False
        for check, look in (
            (ARRIVED_WRONG, lambda: arrived_wrong(three, named.called, named.place)),
            (ARRIVED_WRONG, lambda: named.elsewhere()),
            # A source of this process; the initiator tells of its own.
            (SOURCE_CHANGED, lambda: named.changed(three)),
        ):
            breach = self._teller.run(check.name, look)
            if breach is not None:
                wrong = True
                raises = raises or self._tell(breach, arriving)
        stages = self._digesting.stages
        if stages is not None and arriving.owners and arriving.pages is not None and not again:
            # Also what is wrong: a later stage then finds what has arrived, and nothing new.
            stages.arrived(arriving.pages, commit, arriving.owners, told=wrong)
        return raises

    def _heard(self, transfer: bytes) -> None:
        alike = self._awaited.get(transfer[:_SHARED], set())
        alike.discard(transfer)
        if not alike:
            self._awaited.pop(transfer[:_SHARED], None)

    def _close(self, transfer: bytes) -> None:
        if self._open.pop(transfer, None) is not None:
            self._heard(transfer)

    def _tell(self, breach: Breach, arriving: _Arriving) -> Violation | None:
        # It is raised in some later call, of another transfer maybe.
        message = f"{breach.message}; transfer {arriving.name}"
        return self._teller.policy.judge(
            replace(breach, message=message),
            list[Site](),
            agent=self._agent.name,
            peer=arriving.initiator,
            transfer=arriving.name,
        )

    def _declared_for(self, rows: Rows) -> "tuple[Known, Integers]":
        """What is declared of this memory, and (N,) which region of that holds each row."""
        regions = declared(self._agent.name, here=True)
        if not self._known.are(regions):
            self._known = Known(regions) if regions else NOTHING
        if not self._known:
            return NOTHING, np.full(len(rows), -1)
        numbers = np.full(len(rows), -1)
        for device in sorted({region.device for region in regions}):
            held = self._known.extents.holding_all(_each(rows, device))
            numbers = np.where(numbers < 0, held, numbers)
        return self._known, numbers


@dataclass(frozen=True, eq=False)
class FromInitiator:
    """A target of this process, as one initiator of this process tells it things."""

    target: Target
    initiator: str

    def announced(self, transfer: str, operation: str, rows: Rows) -> None:
        self.target.announced(id_of(transfer), transfer, self.initiator, operation, rows)

    def digested(
        self,
        transfer: str,
        moment: Moment,
        digests: Digests,
        rows: Rows,
        owners: Sequence[Any] = (),
    ) -> None:
        self.target.digested(id_of(transfer), moment, digests, owners)


class _Named:
    """Rows of a transfer in words."""

    def __init__(self, arriving: _Arriving, held: tuple[Known, Integers]) -> None:
        self._arriving = arriving
        self._rows = arriving.rows
        self._known, self._numbers = held
        # As they are declared here, else as the initiator has put them in order.
        declared_all = bool((self._numbers >= 0).all())
        self._regions = self._numbers if declared_all else self._rows.regions
        self._ordinals = counted(self._numbers) if declared_all else self._rows.ordinals

    def place(self, row: int) -> Place:
        region, number = int(self._regions[row]), int(self._numbers[row])
        if number < 0:
            return Place("local", region)
        one = self._known.regions[number]
        byte = int(self._rows.addresses[row]) - one.address
        return Place("local", region, one.name, one.layer, byte // one.stride, byte)

    def called(self, row: int) -> str:
        place = self.place(row)
        words = f"page {int(self._ordinals[row])} of region {place.region}"
        if place.name is not None:
            words += f" {place.name!r}"
        if place.layer is not None:
            words += f" (layer {place.layer})"
        return words + (f", slot {place.slot}" if place.slot is not None else "")

    def elsewhere(self) -> Breach | None:
        announced = self._rows.identities
        said = np.where(announced >= np.uint64(DECLARED), announced, np.uint64(0))
        own = np.zeros(len(announced), np.uint64)
        for number in np.unique(self._numbers[self._numbers >= 0]).tolist():
            rows = self._numbers == number
            for length in np.unique(self._rows.lengths[rows]).tolist():
                found = identity_of(self._known.regions[number], 0, int(length))
                if found >= DECLARED:
                    own[rows & (self._rows.lengths == length)] = found
        return sent_elsewhere(said, own, self.called, self.place)

    def changed(self, three: Three) -> Breach | None:
        if self._arriving.operation != "READ":
            return None
        return source_changed(three, self.called, self.place)


def _each(rows: Rows, device: int) -> Regions:
    """Each row as a region of one slot."""
    count = len(rows)
    return Regions(
        np.arange(count + 1),
        rows.addresses,
        rows.lengths,
        rows.lengths,
        np.full(count, device, np.int64),
    )
