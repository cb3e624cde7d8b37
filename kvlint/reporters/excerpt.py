"""A line of source with carets under the part that is meant."""

from collections.abc import Iterator

from kvlint.findings import Span
from kvlint.reporters.paint import Paint, printable
from kvlint.reporters.view import View

MARGIN = "  "


def excerpt(view: View, span: Span, label: str, paint: Paint) -> Iterator[str]:
    """Four lines, or none when the source cannot be read. A span of several lines is marked to
    the end of its first."""
    source = view.line(span.path, span.line)
    if source is None:
        return
    start = min(span.column - 1, len(source))
    end = span.end_column - 1 if span.end_line == span.line else len(source.rstrip())
    # Tabs are as wide under the line as in it only when both are spaces.
    indent = len(source[:start].expandtabs(4))
    width = max(1, len(source[:end].expandtabs(4)) - indent)
    number = str(span.line)
    gutter = MARGIN + " " * len(number) + paint(" |", "blue")
    yield gutter
    text = printable(source.expandtabs(4).rstrip())
    yield f"{MARGIN}{paint(f'{number} |', 'blue')} {text}"
    marked = f"{'^' * width} {printable(label)}".rstrip()
    yield f"{gutter} {' ' * indent}{paint(marked, 'bold red')}"
    yield gutter
