"""Digests that are read when they are there, by whichever call comes by then."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kvlint.runtime_checks.digests.digester import Pending
from kvlint.runtime_checks.digests.host import UnreadableError
from kvlint.runtime_checks.digests.reference import Digests

MOST: Final = 1024


@dataclass(frozen=True, eq=False)
class _Waiting:
    pendings: Sequence[Pending]
    then: Callable[[list[Digests]], None]


class Late:
    """In the order in which they were begun: what is said of one page is said in its order."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._lock = threading.Lock()
        self.dropped = 0

    @property
    def empty(self) -> bool:
        return not self._waiting

    def add(self, pendings: Sequence[Pending], then: Callable[[list[Digests]], None]) -> bool:
        """`then` is called with the digests of each, in some later `drain`. It must not raise.
        False where too many wait already."""
        if len(self._waiting) >= MOST:
            self.dropped += 1
            return False
        self._waiting.append(_Waiting(pendings, then))
        return True

    def drain(self, *, wait: bool = False) -> None:
        """Hand over what is there by now; with `wait`, all. A second call at the same time, from
        another thread or from what this one interrupts, does nothing."""
        if not self._waiting or not self._lock.acquire(blocking=False):
            return
        try:
            while self._waiting:
                first = self._waiting[0]
                if not wait and not all(pending.ready() for pending in first.pendings):
                    return
                self._waiting.popleft()
                try:
                    found = [pending.digests() for pending in first.pendings]
                except UnreadableError:
                    self.dropped += 1
                    continue
                first.then(found)
        finally:
            self._lock.release()
