"""Transfers of a run by the agents they are between, on one clock. Pure numbers: nothing is drawn.

Times are microseconds since the first thing that any process has noted.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from kvlint.runtime_checks.reading import Event, Seen, Transfer

# A server may have had a thousand peers, each with the same things to say.
MOST_LANES: Final = 24
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LATEST: Final = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICROSECOND


@dataclass(frozen=True, slots=True)
class Bar:
    """A transfer. What has not happened, or was not noted, is None.

    state  what became of it: "done", "failed", ...; "" where nobody has noted its end
    """

    transfer: Transfer
    made: int | None
    posted: int | None
    ended: int | None
    notified: int | None
    state: str

    @property
    def begin(self) -> int:
        return min(self._times)

    @property
    def end(self) -> int:
        return max(self._times)

    @property
    def known(self) -> bool:
        return bool(self._times)

    @property
    def _times(self) -> list[int]:
        times = (self.made, self.posted, self.ended, self.notified)
        return [time for time in times if time is not None]


@dataclass(frozen=True, slots=True)
class Mark:
    """A violation, known by its number in the report, when it was first seen."""

    number: int
    seen: Seen
    time: int


@dataclass(frozen=True, slots=True)
class Lane:
    """What went from one agent to another, by time. `mover` is the one that made the transfers."""

    mover: str
    peer: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]

    def count(self, *states: str) -> int:
        return sum(bar.state in states for bar in self.bars)


@dataclass(frozen=True, slots=True)
class Line:
    """
    begin   of the whole, as ISO 8601 tells it; "" where nothing has a time
    span    until the last thing that was noted
    lanes   those with violations first, then those with most transfers
    others  lanes that are left out
    untimed transfers and violations without a time
    """

    begin: str
    span: int
    lanes: tuple[Lane, ...]
    others: tuple[Lane, ...] = ()
    untimed: int = 0


def line_of(transfers: Sequence[Transfer], violations: Iterable[tuple[int, Seen]]) -> Line:
    """All on one line; `violations` come with their numbers."""
    noted = [(transfer, _times(transfer.events)) for transfer in transfers]
    marks = [(number, seen, _instant(seen.record.get("time"))) for number, seen in violations]
    instants = [time for _, times in noted for time in times.values()]
    instants += [time for _, _, time in marks if time is not None]
    if not instants:
        return Line("", 0, (), untimed=len(noted) + len(marks))
    zero = min(instants)
    bars: dict[tuple[str, str], list[Bar]] = defaultdict(list)
    for transfer, times in noted:
        if times:
            bars[_between(transfer)].append(_bar(transfer, times, zero))
    marked: dict[tuple[str, str], list[Mark]] = defaultdict(list)
    for number, seen, time in marks:
        if time is not None:
            agent, peer = (str(seen.record.get(name) or "") for name in ("agent", "peer"))
            marked[_lane_of(agent, peer, bars)].append(Mark(number, seen, time - zero))
    lanes = [
        Lane(
            *key,
            tuple(sorted(bars.get(key, ()), key=lambda bar: bar.begin)),
            tuple(sorted(marked.get(key, ()), key=lambda mark: mark.time)),
        )
        for key in dict.fromkeys([*marked, *bars])
    ]
    lanes.sort(key=lambda lane: (not lane.marks, -len(lane.bars), lane.mover, lane.peer))
    timed = sum(len(lane.bars) + len(lane.marks) for lane in lanes)
    return Line(
        (_EPOCH + zero * _MICROSECOND).isoformat(timespec="microseconds"),
        max(instants) - zero,
        tuple(lanes[:MOST_LANES]),
        tuple(lanes[MOST_LANES:]),
        len(noted) + len(marks) - timed,
    )


def stacked(bars: Sequence[Bar], apart: int) -> list[list[Bar]]:
    """In as few rows as the greedy way takes, so that none is nearer than that to the next."""
    rows: list[list[Bar]] = []
    free: list[int] = []
    for bar in bars:
        for row, at in enumerate(free):
            if at <= bar.begin:
                rows[row].append(bar)
                free[row] = bar.end + apart
                break
        else:
            rows.append([bar])
            free.append(bar.end + apart)
    return rows


def columns(bars: Iterable[Bar], span: int, count: int) -> list[tuple[int, int]]:
    """In how many transfers each of `count` equal parts of the span began, and how many of these
    did not end as they should."""
    begun, wrong = [0] * count, [0] * count
    for bar in bars:
        at = min(count - 1, bar.begin * count // max(span, 1))
        begun[at] += 1
        wrong[at] += bar.state != "done"
    return list(zip(begun, wrong, strict=True))


def _lane_of(agent: str, peer: str, bars: Mapping[tuple[str, str], object]) -> tuple[str, str]:
    """The lane that a violation is drawn in: its own, or the other way round where only that has
    transfers."""
    if (agent, peer) not in bars and (peer, agent) in bars:
        return peer, agent
    return agent, peer


def _between(transfer: Transfer) -> tuple[str, str]:
    for event in transfer.events:
        if event.what != "notified" and "peer" in event.detail:
            return event.agent, str(event.detail["peer"])
    one = transfer.events[0]
    peer = str(one.detail.get("peer", "?"))
    return (peer, one.agent) if one.what == "notified" else (one.agent, peer)


def _times(events: Iterable[Event]) -> dict[str, int]:
    """When each step first was, as far as that can be told."""
    found: dict[str, int] = {}
    for event in events:
        time = _instant(event.time)
        if time is not None:
            found.setdefault(event.what, time)
    return found


def _bar(transfer: Transfer, times: Mapping[str, int], zero: int) -> Bar:
    made, posted, notified = (
        None if (time := times.get(step)) is None else time - zero
        for step in ("made", "posted", "notified")
    )
    ends = [step for step in times if step not in ("made", "posted", "notified")]
    state = ends[0] if ends else ""
    ended = times[state] - zero if ends else None
    return Bar(transfer, made, posted, ended, notified, state)


def _instant(time: object) -> int | None:
    """Microseconds since 1970, up to the year 9999; None for what is no time."""
    if not isinstance(time, str):
        return None
    try:
        parsed = datetime.fromisoformat(time)
        since = (parsed.replace(tzinfo=parsed.tzinfo or UTC) - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None
    return since if 0 <= since < _LATEST else None
