"""Records back to messages: each taken once, whatever comes twice, late or never."""

from collections import Counter, OrderedDict
from typing import Final

from kvlint.runtime_checks.exchange.messages import Message, unpack
from kvlint.runtime_checks.exchange.records import ROOM, Record, parts_of

SENDERS: Final = 4096
WINDOW: Final = 4096
PARTIAL_OF_ONE: Final = 8
PARTIAL: Final = 512
PARTIAL_BYTES: Final = 64 << 20

_ALL: Final = (1 << WINDOW) - 1
_Stream = tuple[int, int]


class Sequence:
    """Which records of one sender came: the newest, and of the `WINDOW` up to it each."""

    def __init__(self) -> None:
        self._next = 0
        self._came = _ALL

    def take(self, number: int) -> int | None:
        """By how many more records are missing now, less than none where a missing one has come;
        None for one that came before, or so long ago that nobody knows."""
        ahead = number - self._next
        if ahead >= 0:
            self._came = 1 if ahead >= WINDOW else (self._came << (ahead + 1) | 1) & _ALL
            self._next = number + 1
            return ahead
        bit = 1 << (-ahead - 1)
        if -ahead > WINDOW or self._came & bit:
            return None
        self._came |= bit
        return -1


class _Partial:
    """A message of which parts are missing."""

    def __init__(self, record: Record) -> None:
        self.missing = parts_of(record.total)
        self.data = bytearray(record.total)
        self._came = bytearray(self.missing)

    def add(self, record: Record) -> bool:
        """False where the part is of no such message, or came before."""
        if record.total != len(self.data) or self._came[record.part]:
            return False
        self._came[record.part] = 1
        self.missing -= 1
        first = record.part * ROOM
        self.data[first : first + len(record.data)] = record.data
        return True


class Assembly:
    """Messages of all senders of one process. Not thread-safe: whoever owns it holds a lock.

    receivers  name of each agent that is here, by its number
    counts     refused, lost and dropped records, by reason
    """

    def __init__(self, counts: Counter[str]) -> None:
        self.receivers: dict[int, str] = {}
        self._counts = counts
        self._streams: OrderedDict[_Stream, Sequence] = OrderedDict()
        self._partial: OrderedDict[tuple[object, ...], _Partial] = OrderedDict()
        self._bytes = 0

    def take(self, record: Record) -> Message | None:
        """The message that is whole with this record."""
        receiver = self.receivers.get(record.receiver)
        if receiver is None:
            self._counts["refused.receiver"] += 1
            return None
        stream = (record.sender.number, record.receiver)
        missing = self._sequence(stream).take(record.sequence)
        if missing is None:
            self._counts["refused.replay"] += 1
            return None
        if missing:
            self._counts["lost"] += missing
        key = (*stream, record.transfer, record.kind, record.detail, record.sequence - record.part)
        partial = self._partial.get(key)
        if partial is None:
            partial = _Partial(record)
            self._keep(key, partial)
        if not partial.add(record):
            self._counts["refused.part"] += 1
            return None
        if partial.missing:
            return None
        self._drop(key)
        about = record.transfer, record.kind, record.detail
        message = unpack(record.sender, receiver, *about, memoryview(partial.data))
        self._counts["refused.message" if message is None else "received"] += 1
        return message

    def _sequence(self, stream: _Stream) -> Sequence:
        sequence = self._streams.get(stream)
        if sequence is None:
            sequence = self._streams[stream] = Sequence()
            if len(self._streams) > SENDERS:
                self._streams.popitem(last=False)
        else:
            self._streams.move_to_end(stream)
        return sequence

    def _keep(self, key: tuple[object, ...], partial: _Partial) -> None:
        """A message that lost a part is never whole: newer ones of its sender drive it out."""
        of_one = [other for other in self._partial if other[:2] == key[:2]]
        if len(of_one) >= PARTIAL_OF_ONE:
            self._drop(of_one[0], "dropped.incomplete")
        self._partial[key] = partial
        self._bytes += len(partial.data)
        while len(self._partial) > PARTIAL or self._bytes > PARTIAL_BYTES:
            self._drop(next(iter(self._partial)), "dropped.incomplete")

    def _drop(self, key: tuple[object, ...], why: str | None = None) -> None:
        self._bytes -= len(self._partial.pop(key).data)
        if why is not None:
            self._counts[why] += 1
