"""The channel of one agent of NIXL: it writes to its peers' mailboxes and reads this process's.

The binding's own methods are called, past the class that engines and hooks see: nothing is
notified, counted or noted there. All that an engine could find is one more registration in the
agent's metadata, by which peers know that this process is armed with the same key.

Call it only from inside the engine's own calls to the agent: whether two threads may use an agent
at a time is the engine's choice.
"""

import os
import secrets
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final
from weakref import ref

from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.digests.rows import Rows
from kvlint.runtime_checks.exchange.mailbox import Mailbox, mailbox_of
from kvlint.runtime_checks.exchange.messages import Announced, Digested, Message, Sender, Stage
from kvlint.runtime_checks.exchange.records import MOST_PARTS, RECORD, STAMP, encode, parts_of
from kvlint.runtime_checks.exchange.region import (
    CELLS,
    CELLS_AT,
    SIZE,
    STAGED_AT,
    STAGED_STAMPS_AT,
)
from kvlint.runtime_checks.locks import Lock

NETWORKS: Final = ("UCX", "LIBFABRIC")
"""NIXL's own back ends that write another agent's memory. The second is not tried by any test."""
_POLLED: Final = 8


@dataclass(slots=True)
class _Stream:
    """What goes to one peer. `number` is random: it tells this life of the stream from others."""

    number: int
    next: int = 0


@dataclass(frozen=True, slots=True)
class _Posted:
    """Records that the network may still read."""

    handle: int
    peer: str
    first: int
    count: int


class Channel:
    """
    agent     NIXL's; it lives as long as the engine wants it to
    bindings  the module `nixlBind` that it was made with
    key       of the run, any bytes: both sides have the same
    """

    def __init__(self, agent: Any, bindings: Any, key: bytes) -> None:
        self.name = str(agent.name)
        self._key = blake2b(key, digest_size=32, person=b"kvlint run").digest()
        self._bindings = bindings
        self._agent = ref(agent, self._gone)
        self._raw: Any = agent.agent
        self._pid = os.getpid()
        self._backends: list[int] = []
        self._whole: Any = None
        self._mailbox: Mailbox | None = None
        self._counts: Mapping[str, int] = {}
        self._streams: dict[str, _Stream] = {}
        self._lock = Lock()
        self._posted: deque[_Posted] = deque()

    def open(self) -> str | None:
        """Map and register the mailbox: after the engine has made a back end and before it gives
        out the agent's metadata. None where it is open, else a line that says why not; it may be
        asked again at any time. Never raises."""
        agent = self._agent()
        if self._mailbox is not None:
            return None
        if agent is None or self._pid != os.getpid():
            return f"{self.name}: the agent is gone"
        made = getattr(agent, "backends", {})
        backends = [made[name] for name in NETWORKS if name in made]
        if not backends:
            return f"{self.name}: no back end that writes to peers is there yet"
        try:
            mailbox = mailbox_of(self._key)
        except OSError as error:
            return f"{self.name}: {error.strerror}"
        memory, address = self._bindings.DRAM_SEG, mailbox.region.address
        if agent not in mailbox.on_their_way:
            piece = self._bindings.nixlRegDList(memory, [(address, SIZE, 0, "")])
            try:
                self._raw.registerMem(piece, backends)
            except Exception as error:
                return f"{self.name}: NIXL does not register the mailbox: {type(error).__name__}"
            mailbox.on_their_way[agent] = deque()
        # What an earlier channel of the agent has left there is still to be asked about.
        self._posted = mailbox.on_their_way[agent]
        self._backends = backends
        self._whole = self._bindings.nixlXferDList(memory, [(address, SIZE, 0)])
        mailbox.admit(self.name)
        self._mailbox, self._counts = mailbox, mailbox.counts
        return None

    def close(self) -> None:
        """Nothing is sent and nothing taken any more. The mailbox stays where it is, and peers may
        go on writing to it."""
        mailbox, self._mailbox = self._mailbox, None
        if mailbox is not None and mailbox.live:
            mailbox.dismiss(self.name)
            self._settle(mailbox)

    def _gone(self, _: object) -> None:
        """The engine has given the agent up: whatever holds NIXL's own would keep it alive."""
        mailbox = self._live
        self.close()
        while mailbox is not None and self._posted:
            posted = self._posted.popleft()
            with suppress(Exception):
                self._raw.releaseXferReq(posted.handle)
            mailbox.staging.give_back(posted.peer, posted.first, posted.count)
        self._raw = None

    @property
    def _live(self) -> Mailbox | None:
        """None where nothing is to be done, as in a forked child."""
        mailbox = self._mailbox
        return mailbox if mailbox is not None and mailbox.live else None

    @property
    def counts(self) -> Mapping[str, int]:
        """Of all channels of this process with this key: messages `sent` and `received`, and
        those for `plain` peers, which were not; `lost` records; `refused.*` records and `dropped.*`
        messages by reason; `closed`, where the mailbox was flooded."""
        return dict(self._counts)

    # Sending.

    def armed(self, peer: str) -> bool:
        """Whether the peer, as its metadata are known here, has a mailbox of the same key."""
        if self._live is None:
            return False
        found = self._raw.checkRemoteMD(peer, self._whole)
        return bool(found == self._bindings.NIXL_SUCCESS)

    def announce(self, peer: str, transfer: bytes, operation: str, rows: Rows) -> bool:
        """Tell the peer which rows a transfer will move: whether it is on its way.

        transfer   16 bytes
        operation  "READ" or "WRITE"
        rows       in the peer's memory
        """
        stream = self._stream(peer)
        sender = Sender(self.name, stream.number)
        return self._send(peer, stream, Announced(sender, peer, transfer, operation, rows))

    def digested(self, peer: str, transfer: bytes, stage: Stage, tags: Digests) -> bool:
        """Tell the peer what this side of a transfer held: (N,) tags, in the rows' order."""
        stream = self._stream(peer)
        sender = Sender(self.name, stream.number)
        return self._send(peer, stream, Digested(sender, peer, transfer, stage, tags))

    def forget(self, peer: str) -> None:
        """The peer's metadata were loaded anew or dropped: it may be another process by now."""
        self._streams.pop(peer, None)

    def _stream(self, peer: str) -> _Stream:
        stream = self._streams.get(peer)
        return stream or self._streams.setdefault(peer, _Stream(secrets.randbits(64)))

    def _send(self, peer: str, stream: _Stream, message: Message) -> bool:
        mailbox = self._live
        if mailbox is None:
            return False
        self._settle(mailbox)
        counts = mailbox.counts
        if not self.armed(peer):
            counts["plain"] += 1
            return False
        data = message.pack()
        parts = parts_of(len(data))
        if parts > MOST_PARTS:
            counts["dropped.too-large"] += 1
            return False
        first = None if self._lock.mine else mailbox.staging.take(peer, parts)
        if first is None:
            counts["dropped.full"] += 1
            return False
        posted = False
        try:
            with self._lock:
                sequence = stream.next
                stream.next += parts
            mailbox.staging.fill(first, encode(message, data, sequence, self._key))
            at = (stream.number + sequence) % CELLS
            posted = self._post(mailbox, peer, first, at, parts)
        finally:
            if not posted:
                mailbox.staging.give_back(peer, first, parts)
        return posted

    def _post(self, mailbox: Mailbox, peer: str, first: int, at: int, count: int) -> bool:
        """Write staged records to the peer's cells from `at` on, round the ring."""
        address = mailbox.region.address
        local, remote = [], []
        ahead = min(count, CELLS - at)
        for ours, theirs, length in (first, at, ahead), (first + ahead, 0, count - ahead):
            if length:
                local.append((address + STAGED_AT + ours * RECORD, length * RECORD, 0))
                remote.append((address + CELLS_AT + theirs * RECORD, length * RECORD, 0))
                local.append((address + STAGED_STAMPS_AT + ours * STAMP, length * STAMP, 0))
                remote.append((address + theirs * STAMP, length * STAMP, 0))
        make, memory = self._bindings.nixlXferDList, self._bindings.DRAM_SEG
        handle = None
        try:
            handle = self._raw.createXferReq(
                self._bindings.NIXL_WRITE,
                make(memory, local),
                make(memory, remote),
                peer,
                b"",
                self._backends,
            )
            self._raw.postXferReq(handle, b"")
        except Exception:
            # The peer has just gone. The engine finds out by itself.
            if handle is not None:
                with suppress(Exception):
                    self._raw.releaseXferReq(handle)
            mailbox.counts["dropped.unreachable"] += 1
            return False
        mailbox.counts["sent"] += 1
        self._posted.append(_Posted(handle, peer, first, count))
        self._settle(mailbox)
        return True

    def _settle(self, mailbox: Mailbox) -> None:
        """Places of what has arrived are free again."""
        for _ in range(min(len(self._posted), _POLLED)):
            try:
                posted = self._posted.popleft()
            except IndexError:
                return
            if self._in_progress(posted):
                self._posted.append(posted)
            else:
                mailbox.staging.give_back(posted.peer, posted.first, posted.count)

    def _in_progress(self, posted: _Posted) -> bool:
        with suppress(Exception):
            if self._raw.getXferStatus(posted.handle) == self._bindings.NIXL_IN_PROG:
                return True
        with suppress(Exception):
            self._raw.releaseXferReq(posted.handle)
        return False

    # Receiving.

    def receive(self) -> list[Message]:
        """What has come by now for any agent of this process."""
        mailbox = self._live
        if mailbox is None:
            return []
        if self._posted:
            self._settle(mailbox)
        return mailbox.receive()
