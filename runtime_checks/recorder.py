"""The flight recorder: the last transfers of a process, and the lists they used."""

from collections import deque
from collections.abc import Mapping
from typing import Final, Protocol

SIZE: Final = 2048
KEPT: Final = 256


class Entry(Protocol):
    """What is kept is a live object; it is put into words when the ring is dumped."""

    def to_dict(self) -> Mapping[str, object]: ...


class Recorder:
    """A bounded ring. Appending takes no lock: a deque's own operations are enough, and an entry
    may come from a destructor or a signal handler at any point of another append.

    append  adds what passes by
    keep    adds what later entries speak of, in a ring of its own: a prepared list is used long
            after it was made
    """

    def __init__(self, size: int = SIZE, kept: int = KEPT) -> None:
        self._ring: deque[Entry] = deque(maxlen=size)
        self._kept: deque[Entry] = deque(maxlen=kept)
        self.append = self._ring.append
        self.keep = self._kept.append

    def __len__(self) -> int:
        return len(self._ring)

    def entries(self) -> list[Entry]:
        """What is kept, then the ring; oldest first."""
        return [*self._kept.copy(), *self._ring.copy()]

    def clear(self) -> None:
        self._ring.clear()
        self._kept.clear()
