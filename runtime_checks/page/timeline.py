"""Transfers and violations of a run on a time line."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from kvlint.drawing.words import count
from kvlint.runtime_checks.page.lanes import Bar, Lane, Line, Mark, columns, line_of, stacked
from kvlint.runtime_checks.page.markup import (
    Child,
    Element,
    clean,
    first,
    folded,
    left_out,
    make,
    scrolling,
    table,
)
from kvlint.runtime_checks.reading import Seen, Story, Transfer

MOST_RUNS: Final = 6
MOST_BARS: Final = 240
MOST_ROWS: Final = 8
MOST_LISTED: Final = 200
COLUMNS: Final = 160

WIDTH: Final = 1104
LEFT: Final = 12
PLOT: Final = WIDTH - 2 * LEFT
_ROW: Final = 12
_BAR: Final = 8
_TALL: Final = 44
_MARKS: Final = 22
_NEAR: Final = 16
_LABEL: Final = 40
_STEPS: Final = (1, 2, 5)
_UNITS: Final = (("s", 1_000_000), ("ms", 1_000), ("µs", 1))


def timelines(story: Story, told: Collection[int]) -> Iterator[Child]:
    """A time line for each run, the last first. `told`: numbers of the violations that the page
    tells of, to which marks lead."""
    transfers: dict[str, list[Transfer]] = defaultdict(list)
    violations: dict[str, list[tuple[int, Seen]]] = defaultdict(list)
    for transfer in story.transfers:
        run = min((str(run) for run, _ in transfer.processes if run is not None), default="?")
        transfers[run].append(transfer)
    for number, seen in enumerate(story.violations, 1):
        violations[str(seen.record.get("run") or "?")].append((number, seen))
    lines = [
        (run, line_of(transfers[run], violations[run]))
        for run in dict.fromkeys([*transfers, *violations])
    ]
    lines.sort(key=lambda one: one[1].begin, reverse=True)
    shown, more = first(lines, MOST_RUNS)
    for run, line in shown:
        yield make("h3", f"Run {run}") if len(lines) > 1 else None
        yield from _timeline(line, told)
    yield left_out(more, "run")


def around(seen: Seen, number: int) -> Element | None:
    """The transfers around a violation, on a line of their own; None where there are none."""
    line = line_of(seen.around, [(number, seen)])
    if not seen.around or not line.begin:
        return None
    return _drawing(line, f"transfers around violation {number}", ())


def duration(microseconds: int) -> str:
    """`0.49 s`, `12.3 ms`, `2 h 5 min`"""
    if microseconds >= 60_000_000:
        minutes, seconds = divmod(microseconds // 1_000_000, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {seconds} s"
    for unit, size in _UNITS:
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return "0 s"


def _timeline(line: Line, told: Collection[int]) -> Iterator[Child]:
    if not line.begin:
        yield make("p", "Nothing that was recorded has a time.")
        return
    yield make(
        "p",
        f"From {line.begin.replace('T', ' ').replace('+00:00', '')} UTC on, "
        f"{duration(line.span) if line.span else 'one instant'}. ",
        _key(line),
        class_="lead",
    )
    yield scrolling(_drawing(line, "transfers and violations by time", told), "time line")
    yield from _not_drawn(line)
    listed = [bar for lane in line.lanes for bar in lane.bars]
    if listed:
        yield folded("The transfers as a table", *_listed(listed))


def _key(line: Line) -> str:
    parts = []
    rows = [_rows(lane, line.span) for lane in line.lanes]
    if any(rows):
        parts.append(
            "A bar is a transfer, from posted to ended; the line before it begins where it was "
            "made, the tick behind it is when the target was notified."
        )
    if None in rows:
        each = duration(line.span // COLUMNS)
        parts.append(f"A column is {each}: its height is how many transfers began in it.")
    if any(lane.marks for lane in line.lanes):
        parts.append("A diamond is a violation when it was first seen, by its number.")
    return " ".join(parts)


def _not_drawn(line: Line) -> Iterator[Child]:
    if line.others:
        bars, marks = (
            sum(len(getattr(lane, what)) for lane in line.others) for what in ("bars", "marks")
        )
        told = f"{count(bars, 'transfer')} and {count(marks, 'violation')}"
        pairs = count(len(line.others), "more pair")
        yield make("p", f"… and {told} between {pairs} of agents, not drawn.", class_="more")
    if line.untimed:
        yield make("p", f"{count(line.untimed, 'record')} without a time.", class_="more")


def _drawing(line: Line, label: str, told: Collection[int]) -> Element:
    parts: list[Child] = []
    y = 0.0
    for lane in line.lanes:
        inner, height = _lane(lane, line.span, told)
        parts.append(make("g", *inner, transform=f"translate(0 {y:g})"))
        y += height
    ticks = list(_ticks(line.span))
    return make(
        "svg",
        make(
            "g",
            (make("line", x1=x, x2=x, y1=0.0, y2=y, class_="grid") for x, _ in ticks),
        ),
        *parts,
        (make("text", text, x=x, y=y + 14, text_anchor=_anchor(x)) for x, text in ticks),
        class_="timeline",
        viewBox=f"0 0 {WIDTH} {y + 20:g}",
        role="group",
        aria_label=label,
    )


def _lane(lane: Lane, span: int, told: Collection[int]) -> tuple[list[Child], float]:
    between = (clean(name or "?", _LABEL) for name in (lane.mover, lane.peer))
    title = " → ".join(between) if lane.mover or lane.peer else "between no two agents"
    rows = _rows(lane, span)
    found = columns(lane.bars, span, COLUMNS) if rows is None else []
    inner: list[Child] = [make("text", title, _ended(lane, found), x=LEFT, y=14, class_="lane")]
    y = 22.0
    if lane.marks:
        inner.append(make("g", *_marks(lane.marks, span, told), transform=f"translate(0 {y:g})"))
        y += _MARKS
    if rows is None:
        inner.append(make("g", *_columns(found), transform=f"translate(0 {y:g})"))
        return inner, y + _TALL + 14
    for row in rows:
        inner.append(make("g", (_bar(b, span) for b in row), transform=f"translate(0 {y:g})"))
        y += _ROW
    return inner, y + 14


def _ended(lane: Lane, found: Sequence[tuple[int, int]]) -> Element | None:
    """How many, what became of them, and what the highest column stands for."""
    if not lane.bars:
        return None
    states: dict[str, int] = defaultdict(int)
    for bar in lane.bars:
        states[bar.state or "without an end"] += 1
    told = ", ".join(f"{count:,} {clean(state, _LABEL)}" for state, count in states.items())
    most = f", up to {max(begun for begun, _ in found):,} a column" if found else ""
    words = f"{count(len(lane.bars), 'transfer')}, {told}{most}"
    return make("tspan", words, dx=10, class_="count")


def _rows(lane: Lane, span: int) -> list[list[Bar]] | None:
    """The bars in rows; None where they are too many to be told apart."""
    if len(lane.bars) > MOST_BARS:
        return None
    rows = stacked(lane.bars, max(1, 3 * span // PLOT))
    return rows if len(rows) <= MOST_ROWS else None


def _bar(bar: Bar, span: int) -> Element:
    left, right = _x(bar.begin, span), _x(bar.end, span)
    begin = bar.posted if bar.posted is not None else bar.begin
    posted = _x(begin, span)
    ended = _x(bar.ended, span) if bar.ended is not None else right
    made: Child = None
    if posted > left:
        made = make("line", x1=left, x2=posted, y1=_BAR / 2, y2=_BAR / 2, class_="made")
    notified: Child = None
    if bar.notified is not None:
        at = _x(bar.notified, span)
        notified = make("line", x1=at, x2=at, y1=-1, y2=_BAR + 1, class_="notified")
    state = bar.state if bar.state in ("done", "failed", "released") else "open"
    return make(
        "g",
        make("title", _said(bar)),
        made,
        make("rect", x=posted, y=0, width=max(2.0, ended - posted), height=_BAR, rx=1),
        notified,
        class_=f"bar {state}",
    )


def _said(bar: Bar) -> str:
    parts = [bar.transfer.id]
    for what, time in (("made", bar.made), ("posted", bar.posted), (bar.state, bar.ended)):
        if time is not None:
            parts.append(f"{what} at {duration(time)}")
    if bar.notified is not None:
        parts.append(f"the target was notified at {duration(bar.notified)}")
    if not bar.state:
        parts.append("no end was noted")
    return ", ".join(parts)


def _columns(found: Sequence[tuple[int, int]]) -> Iterator[Element]:
    most = max(begun for begun, _ in found)
    width = PLOT / COLUMNS
    for number, (begun, wrong) in enumerate(found):
        if not begun:
            continue
        tall, bad = (max(1.0, _TALL * n / most) if n else 0.0 for n in (begun, wrong))
        x = LEFT + number * width
        also = f", {wrong:,} did not end as done" if wrong else ""
        yield make(
            "g",
            make("title", f"{count(begun, 'transfer')} began here{also}"),
            make("rect", x=x, y=_TALL - tall, width=width - 1, height=tall),
            make("rect", x=x, y=_TALL - bad, width=width - 1, height=bad, class_="wrong")
            if wrong
            else None,
            class_="column",
        )


def _marks(marks: Sequence[Mark], span: int, told: Collection[int]) -> Iterator[Element]:
    """Those that would touch are one mark."""
    near: list[list[Mark]] = []
    for mark in marks:
        last = near[-1][0] if near else None
        if last is not None and _x(mark.time, span) - _x(last.time, span) < _apart(near[-1]):
            near[-1].append(mark)
        else:
            near.append([mark])
    for group in near:
        yield _mark(group, span, told)


def _apart(group: Sequence[Mark]) -> float:
    return _NEAR + 8.0 * len(_numbers(group))


def _numbers(group: Sequence[Mark]) -> str:
    """`3`, `1, 2`, `4 and 2 more`"""
    begin, end = group[0].number, group[-1].number
    if len(group) == 1:
        return f"{begin}"
    return f"{begin}, {end}" if len(group) == 2 else f"{begin} and {len(group) - 1:,} more"


def _mark(group: Sequence[Mark], span: int, told: Collection[int]) -> Element:
    x = _x(group[0].time, span)
    record = group[0].seen.record
    text = _numbers(group)
    # What stands at the right end is told to the left of it.
    left = x > WIDTH - LEFT - 10 - 8 * len(text)
    drawn = make(
        "g",
        make("title", f"violation {text}: {clean(record.get('message'))}"),
        make("path", d=f"M{x:.1f} 2l6 6l-6 6l-6 -6z"),
        make(
            "text", text, x=x - 10 if left else x + 10, y=12, text_anchor=(left and "end") or None
        ),
        class_="mark",
    )
    reached = next((mark.number for mark in group if mark.number in told), None)
    if reached is None:
        return drawn
    return make("a", drawn, href=f"#violation-{reached}")


def _listed(bars: Sequence[Bar]) -> Iterator[Child]:
    shown, more = first(sorted(bars, key=lambda bar: bar.begin), MOST_LISTED)
    yield table(
        "transfers by time; times since the first of the run",
        ("transfer", "made", "posted", "ended", "notified", "became"),
        [
            (
                make("code", bar.transfer.id),
                *(
                    "" if time is None else duration(time)
                    for time in (bar.made, bar.posted, bar.ended, bar.notified)
                ),
                bar.state or "no end noted",
            )
            for bar in shown
        ],
        class_="numbers",
    )
    yield left_out(more, "transfer")


def _ticks(span: int) -> Iterator[tuple[float, str]]:
    """Where, and what stands there; at most seven."""
    step = next(
        s * 10**power for power in range(20) for s in _STEPS if s * 10**power * 6 >= max(span, 1)
    )
    for number in range(span // step + 1 if span else 1):
        yield _x(number * step, span), duration(number * step) if number else "0"


def _anchor(x: float) -> str:
    return "start" if x < LEFT + 20 else "end" if x > WIDTH - LEFT - 30 else "middle"


def _x(time: int, span: int) -> float:
    return LEFT + PLOT * time / max(span, 1)
