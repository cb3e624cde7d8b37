"""A lock for what runs inside an engine's calls."""

import threading
from typing import Final

_TRIES: Final = 50
_EACH: Final = 0.1


class Lock:
    """Reentrant, and it knows whether this thread has it: destructors run in the middle of
    anything, also between taking a lock and noting that it is taken.

    Nobody waits for it forever. While it is held, a destructor or a signal handler of the engine
    may wait for a lock of the engine's, which is held by a thread that waits for this one. That
    thread gives up with a TimeoutError, and from then on nobody waits any more.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = 0
        self._tries = _TRIES

    def __enter__(self) -> None:
        if not (self._lock.acquire(blocking=False) or self._waited()):
            raise TimeoutError("another thread does not give the lock back")
        self._owner = threading.get_ident()

    def _waited(self) -> bool:
        # In short pieces, so that a thread which keeps the interpreter for itself costs one only.
        for _ in range(self._tries):
            if self._lock.acquire(timeout=_EACH):
                return True
        self._tries = 0
        return False

    def __exit__(self, *_: object) -> None:
        self._owner = 0
        self._lock.release()

    @property
    def mine(self) -> bool:
        return self._owner == threading.get_ident()
