"""One transfer, from the call that makes it to its end, and the name that both sides know it by."""

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kvlint.runtime_checks.checks import Place
from kvlint.runtime_checks.recent import keep
from kvlint.runtime_checks.selection import Selection
from kvlint.runtime_checks.stacks import Stack

MADE: Final = "made"
MOVING: Final = "moving"
DONE: Final = "done"
FAILED: Final = "failed"
RELEASED: Final = "released"

_SHOWN: Final = 8
_KNOWN: Final = 4096


class Names:
    """Names of transfers.

    A peer sees nothing of a transfer but its notification, so the name is made of that: both
    processes count the same messages. Only a digest is kept, a message may hold anything.
    """

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def next(self, agent: str, peer: str, notification: bytes, number: int) -> str:
        """The name of the next transfer from agent to peer with this notification."""
        if not notification:
            return f"{agent}>{peer}:{os.getpid()}-{number}"
        digest = hashlib.blake2b(notification, digest_size=8).hexdigest()
        stem = f"{agent}>{peer}:{digest}"
        times = self._times.get(stem, 0) + 1
        keep(self._times, stem, times, _KNOWN)
        return f"{stem}#{times}"


def parts_of_name(name: str) -> tuple[str, int]:
    """What transfers with one notification share, and which of them it is, from 1; 0 where it has
    no notification, and all of its name is its own."""
    stem, mark, number = name.rpartition("#")
    return (stem, int(number)) if mark and number.isdecimal() else (name, 0)


def now() -> int:
    """Nanoseconds since the epoch: two processes of one machine can compare them."""
    return time.time_ns()


def as_bytes(notification: object) -> bytes:
    """A notification as NIXL takes it: bytes, or text."""
    if isinstance(notification, str):
        return notification.encode(errors="backslashreplace")
    return bytes(notification) if isinstance(notification, (bytes, bytearray)) else b""


@dataclass(eq=False)
class Transfer:
    """A transfer that this process made.

    number  from 1, unique in the process
    call    of NIXL's that made it, called from `stack`
    local, remote  what is selected; None once the handle is gone
    raw     NIXL's own agent and handle, for questions to them while the engine holds the handle
    thread  that has posted it
    alone   whether no other with its notification was in flight when it was
    heard   whether its notification was read in this process
    """

    number: int
    agent: str
    peer: str
    operation: str
    local: Selection | None
    remote: Selection | None
    notification: bytes
    stack: Stack
    call: str = "make_prepped_xfer"
    name: str | None = None
    state: str = MADE
    polls: int = 0
    unpolled_told: bool = False
    made: int = field(default_factory=now)
    posted: int | None = None
    ended: int | None = None
    raw: tuple[Any, int] | None = None
    thread: int | None = None
    alone: bool = True
    heard: bool = False
    _told: Mapping[str, object] | None = None
    _first: Place | None = None

    @property
    def destination(self) -> Selection:
        """The side that is written. Only while the transfer is not over."""
        side = self.remote if self.operation == "WRITE" else self.local
        assert side is not None
        return side

    @property
    def source(self) -> Selection:
        side = self.local if self.operation == "WRITE" else self.remote
        assert side is not None
        return side

    @property
    def first_written(self) -> Place | None:
        """The first slot of the destination, also when all is over."""
        if self.local is None or self.remote is None:
            return self._first
        to = self.destination
        return to.place(0) if len(to.indices) else None

    def closes(self) -> None:
        """From here on only a summary is kept: index arrays are large and the ring is long."""
        if self._told is None:
            self._told, self._first = self._summary(), self.first_written
        self.local = self.remote = self.raw = None

    def _summary(self) -> Mapping[str, object]:
        # Another thread may close the transfer while this one puts it into words.
        local, remote = self.local, self.remote
        if local is None or remote is None:
            return self._told or {}
        return {"local": _side(local), "remote": _side(remote)}

    def to_dict(self) -> Mapping[str, object]:
        """Times in nanoseconds since the epoch, None for what has not happened."""
        return {
            "kind": "transfer",
            "id": self.name,
            "number": self.number,
            "agent": self.agent,
            "peer": self.peer,
            "operation": self.operation,
            "state": self.state,
            "polls": self.polls,
            "made": self.made,
            "posted": self.posted,
            "ended": self.ended,
            **(self._summary() if self._told is None else self._told),
        }


def _side(selection: Selection) -> Mapping[str, object]:
    told: dict[str, object] = {
        "list": selection.of.number,
        "descriptors": len(selection.indices),
    }
    groups = []
    for group, slots in selection.columns.items():
        shown = slots[:_SHOWN].tolist()
        groups.append({"group": group, "slots": len(slots), "first": shown})
    if groups:
        told["groups"] = groups
    return told


@dataclass(frozen=True, slots=True)
class Notified:
    """What the target of a transfer sees of it."""

    name: str
    agent: str
    peer: str
    time: int

    def to_dict(self) -> Mapping[str, object]:
        """`agent` saw it, `peer` moved the bytes."""
        return {
            "kind": "notified",
            "id": self.name,
            "agent": self.agent,
            "peer": self.peer,
            "time": self.time,
        }
