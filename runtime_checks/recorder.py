"""The flight recorder: the last transfers of a process, and the lists they used."""

from collections import deque
from collections.abc import Mapping
from typing import Final, Protocol

SIZE: Final = 2048


class Entry(Protocol):
    """What is kept is a live object; it is put into words when the ring is dumped."""

    def to_dict(self) -> Mapping[str, object]: ...


class Recorder:
    """A bounded ring. Appending takes no lock: a deque's own operations are enough, and an entry
    may come from a destructor or a signal handler at any point of another append."""

    def __init__(self, size: int = SIZE) -> None:
        self._ring: deque[Entry] = deque(maxlen=size)
        self.append = self._ring.append

    def __len__(self) -> int:
        return len(self._ring)

    def entries(self) -> list[Entry]:
        """Oldest first."""
        return list(self._ring)

    def clear(self) -> None:
        self._ring.clear()
