"""Records on their way out: where they stand until the network has read them."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from kvlint.runtime_checks.exchange.records import BODY, MOST_PARTS, RECORD, STAMP
from kvlint.runtime_checks.exchange.region import STAGED, Region
from kvlint.runtime_checks.locks import Lock

_FREE: Final = b"\0"
_USED: Final = b"\1"


class Staging:
    """Shared by all agents of a process. A peer that takes nothing any more keeps at most
    `MOST_PARTS` places from the others."""

    def __init__(self, region: Region) -> None:
        self._records = region.staged.reshape(-1).data
        self._stamps = region.staged_stamps.reshape(-1).data
        self._places = bytearray(STAGED)
        self._of_peer: Counter[str] = Counter()
        # Destructors give back in the middle of anything, so that needs no lock.
        self._returned: deque[tuple[str, int, int]] = deque()
        self._lock = Lock()

    def take(self, peer: str, count: int) -> int | None:
        """The first of so many places, which follow one another; None where there are none."""
        if self._lock.mine:
            # A destructor in the middle of this thread's own work.
            return None
        with self._lock:
            self._free()
            first = self._places.find(_FREE * count)
            if first < 0 or self._of_peer[peer] + count > MOST_PARTS:
                return None
            self._places[first : first + count] = _USED * count
            self._of_peer[peer] += count
        return first

    def _free(self) -> None:
        while self._returned:
            peer, first, count = self._returned.popleft()
            self._places[first : first + count] = _FREE * count
            self._of_peer[peer] -= count
            if not self._of_peer[peer]:
                del self._of_peer[peer]

    def fill(self, first: int, records: Iterable[bytes]) -> None:
        for place, record in enumerate(records, first):
            self._records[place * RECORD : (place + 1) * RECORD] = record
            self._stamps[place * STAMP : (place + 1) * STAMP] = record[BODY : BODY + STAMP]

    def give_back(self, peer: str, first: int, count: int) -> None:
        """The network has read them."""
        self._returned.append((peer, first, count))
