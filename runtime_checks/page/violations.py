"""One violation in full: what was seen, from where it was called, and what went on around it."""

from collections.abc import Iterator
from typing import Final

from kvlint.runtime_checks.page.markup import (
    Child,
    Element,
    clean,
    code,
    first,
    folded,
    left_out,
    make,
    rows,
    scrolling,
)
from kvlint.runtime_checks.page.timeline import around
from kvlint.runtime_checks.reading import Seen
from kvlint.runtime_checks.recorded import Record
from kvlint.runtime_checks.telling import earlier, facts, headline, sites

MOST_FRAMES: Final = 24
MOST_LINES: Final = 12


def told(number: int, seen: Seen, heading: str = "h3") -> Element:
    """Everything but the layout."""
    record = seen.record
    return make(
        "article",
        make(heading, f"Violation {number}: {headline(record)}"),
        make("p", clean(record.get("message"), 1000), class_="message"),
        rows(*facts(seen)),
        calls(record),
        near(number, seen),
        class_="violation",
        id=f"violation-{number}",
    )


def calls(record: Record) -> list[Element]:
    """The stack of each call, the engine's own line first."""
    shown, _ = first(list(sites(record)), 4)
    return [
        folded(
            [make("code", call), " called in ", code(stack[-1] if stack else "?")], _stack(stack)
        )
        for call, stack in shown
    ]


def near(number: int, seen: Seen) -> Iterator[Child]:
    drawing = around(seen, number)
    if drawing is not None:
        yield folded("transfers around it", scrolling(drawing, "transfers around it"))
    lines, more = first(earlier(seen.record), MOST_LINES)
    if lines:
        listed = make("ul", (make("li", code(line)) for line in lines), class_="plain")
        yield folded("earlier on these lists", listed, left_out(more, "transfer"))


def _stack(stack: list[str]) -> Element:
    shown, more = first(stack[::-1], MOST_FRAMES)
    frames = [make("li", code(frame)) for frame in shown]
    return make("div", make("ol", frames, class_="stack"), left_out(more, "frame"))
