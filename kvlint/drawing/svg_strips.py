"""A numbered list as SVG, twice and to scale: above as indices take it, below as it is made."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final
from xml.etree.ElementTree import Element

from kvlint.drawing.places import Fate, List, Place, says
from kvlint.drawing.shapes import MARGIN, plain, shape, text, tooltip, width_of
from kvlint.drawing.words import number

_HEIGHT: Final = 18
_BETWEEN: Final = 44


def strips(
    root: Element, of: List, places: Sequence[Place], label: float, width: float, y: float
) -> float:
    """Draws from y on, and gives back where it ends. An index is a line from one to the other."""
    x, room = MARGIN + label, width - 2 * MARGIN - label
    whole = max(of.starts[-1], of.taken[-1], *(place.index + 1 for place in places), 1)
    per = room / whole
    low = y + _HEIGHT + _BETWEEN
    for words, top, starts in (("list as indexed", y, of.taken), ("list as made", low, of.starts)):
        text(root, "", MARGIN, top + 13, words, size=12, room=label - 8)
        _strip(root, of, starts, x, per, top)
    for above, below in _seen(list(zip(of.taken, of.starts, strict=True)), per):
        line = f"M{plain(x + above * per)} {plain(y + _HEIGHT)}"
        shape(root, "path", "kvg-tick", d=f"{line}L{plain(x + below * per)} {plain(low)}")
    drawn: set[tuple[bool, int]] = set()
    for place in places:
        right, down = place.fate is Fate.RIGHT, x + (place.index + 0.5) * per
        if (right, round(down)) not in drawn:
            drawn.add((right, round(down)))
            kind = "kvg-line" if right else "kvg-stray"
            index = shape(root, "line", kind, x1=down, x2=down, y1=y + _HEIGHT, y2=low)
            tooltip(index, says(of, place))
    _ruler(root, of.taken, x, per, width, y - 5)
    _ruler(root, of.starts, x, per, width, low + _HEIGHT + 13)
    return low + _HEIGHT + 24


def _strip(
    root: Element, of: List, starts: Sequence[int], x: float, per: float, top: float
) -> None:
    """A block for each region, or for several that make a pixel together."""
    for odd, (first, last) in enumerate(_blocks(starts, per)):
        begin, end = starts[first], starts[last + 1]
        left, wide = x + begin * per, (end - begin) * per
        kind = "kvg-other" if odd % 2 else "kvg-slots"
        block = shape(root, "rect", kind, x=left, y=top, width=wide, height=_HEIGHT)
        which = f"region {first} {of.regions[first].name!r}"
        if last > first:
            which = f"regions {first}-{last}"
        tooltip(block, f"{which}: descriptors {number(begin)} to {number(end)}")
        if first == last and wide > width_of(str(first), 11) + 4:
            middle = left + wide / 2
            text(
                root,
                "kvg-quiet",
                middle,
                top + 13,
                str(first),
                size=11,
                room=wide,
                middle=True,
            )


def _blocks(starts: Sequence[int], per: float) -> Iterator[tuple[int, int]]:
    """First and last region of each."""
    first = 0
    for at, (_, end) in enumerate(pairwise(starts)):
        if (end - starts[first]) * per >= 1 or at == len(starts) - 2:
            yield first, at
            first = at + 1


def _seen(lines: Sequence[tuple[int, int]], per: float) -> Iterator[tuple[int, int]]:
    """Those that begin or end a pixel from the one before."""
    before = (-1.0, -1.0)
    for above, below in lines:
        here = (above * per, below * per)
        if max(abs(here[0] - before[0]), abs(here[1] - before[1])) >= 1:
            before = here
            yield above, below


def _ruler(
    root: Element, starts: Sequence[int], x: float, per: float, width: float, y: float
) -> None:
    """Where regions begin, as far as there is room; the end of the list comes first."""
    words = number(starts[-1])
    half = width_of(words, 10) / 2
    last = min(x + starts[-1] * per, width - half - 2)
    text(root, "kvg-quiet", last, y, words, size=10, room=2 * half + 1, middle=True)
    end, free = last - half - 6, x - half
    for start in starts[:-1]:
        words = number(start)
        half = width_of(words, 10) / 2
        middle = x + start * per
        if free <= middle - half and middle + half <= end:
            free = middle + half + 6
            text(root, "kvg-quiet", middle, y, words, size=10, room=2 * half + 1, middle=True)
