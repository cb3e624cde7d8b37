"""A numbered descriptor list around the indices that somebody points at: which region's slot each
index is, where an index was meant to go, and where it goes."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final

from kvlint.runtime_checks.page.markup import Child, Element, clean, make

WIDTH: Final = 1104
_MOST_POINTED: Final = 3
_BESIDE: Final = 7
_SHORT: Final = 30
_WIDEST: Final = 38.0
_GAP: Final = 26.0
_HEIGHT: Final = 26
_LETTER: Final = 7.0


@dataclass(frozen=True, slots=True)
class Pointed:
    """An index of the list. `meant` or not: then it is the one that was taken."""

    index: int
    meant: bool
    says: str


@dataclass(frozen=True, slots=True)
class Cell:
    """Region and slot of an index; None beyond the list."""

    index: int
    region: int | None
    slot: int


def strip(slots: Sequence[int], pointed: Sequence[Pointed], label: str) -> Element | None:
    """`slots` of each region, in order; up to three places. None where there is nothing to point
    at."""
    pointed = [one for one in pointed if 0 <= one.index < 1 << 63][:_MOST_POINTED]
    if not slots or not pointed:
        return None
    windows = [
        [_cell(slots, index) for index in range(begin, end)]
        for begin, end in _windows(slots, [one.index for one in pointed])
    ]
    count = sum(map(len, windows))
    width = min(_WIDEST, (WIDTH - 2 - _GAP * (len(windows) - 1)) / count)
    by_index = {one.index: one for one in sorted(pointed, key=lambda one: one.meant)}
    parts: list[Child] = []
    x, places = 1.0, {}
    for number, cells in enumerate(windows):
        if number:
            parts.append(make("text", "⋯", x=x + _GAP / 2, y=46, text_anchor="middle"))
            x += _GAP
        parts += _regions(cells, slots, x, width)
        for at, cell in enumerate(cells):
            left = x + at * width
            parts += _drawn(cell, by_index.get(cell.index), left, width)
            places[cell.index] = left + width / 2
        x += len(cells) * width
    y = 90.0
    for one in sorted(pointed, key=lambda one: places[one.index], reverse=True):
        parts.append(_pointer(one, places[one.index], y))
        y += 18
    return make(
        "svg",
        *parts,
        class_="strip",
        viewBox=f"0 0 {WIDTH} {y + 2:g}",
        role="img",
        aria_label=label,
    )


def _windows(slots: Sequence[int], indices: Sequence[int]) -> list[tuple[int, int]]:
    """Stretches of the list, ascending: all of a short one, else what lies around."""
    total = sum(slots)
    if max(total - 1, *indices) < _SHORT:
        return [(0, max(total, *(index + 1 for index in indices)))]
    found: list[tuple[int, int]] = []
    for index in sorted(set(indices)):
        begin, end = max(0, index - _BESIDE), index + _BESIDE + 1
        # Up to where the list ends, or the index lies beyond it.
        end = max(index + 1, min(end, total))
        if found and begin <= found[-1][1] + 2:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found


def spoken(slots: Sequence[int], index: int) -> str:
    """`region 4 slot 86`"""
    cell = _cell(slots, index)
    if cell.region is None:
        return f"beyond the list of {sum(slots):,}"
    return f"region {cell.region} slot {cell.slot:,}"


def _cell(slots: Sequence[int], index: int) -> Cell:
    starts = list(accumulate(slots, initial=0))
    if index >= starts[-1]:
        return Cell(index, None, index - starts[-1])
    region = bisect_right(starts, index) - 1
    return Cell(index, region, index - starts[region])


def _regions(
    cells: Sequence[Cell], slots: Sequence[int], x: float, width: float
) -> Iterator[Element]:
    """A bracket over the cells of each region."""
    for region, group in groupby(cells, key=lambda cell: cell.region):
        members = list(group)
        room = len(members) * width
        name = "beyond the list" if region is None else f"region {region}"
        told = name if region is None else f"{name}, {slots[region]:,} slots"
        if len(told) * _LETTER > room:
            told = name if len(name) * _LETTER <= room else "" if region is None else f"{region}"
        yield make("path", d=f"M{x + 1:.1f} 24v-5h{room - 2:.1f}v5", class_="bracket")
        if len(told) * _LETTER <= room:
            yield make("text", told, x=x + room / 2, y=13, text_anchor="middle", class_="over")
        x += room


def _drawn(cell: Cell, pointed: Pointed | None, x: float, width: float) -> Iterator[Element]:
    kind = "beyond" if cell.region is None else "even" if cell.region % 2 == 0 else "odd"
    if pointed is not None:
        kind += " meant" if pointed.meant else " taken"
    yield make("rect", x=x + 0.5, y=28, width=width - 1, height=_HEIGHT, class_=f"cell {kind}")
    middle = x + width / 2
    if cell.region is not None and len(str(cell.slot)) * _LETTER <= width:
        yield make("text", cell.slot, x=middle, y=45, text_anchor="middle")
    # Numbers of two neighbours must not touch.
    every = 1 if len(str(cell.index)) * _LETTER + 4 <= width else 5
    if (pointed is None and cell.index % every == 0) or (pointed is not None and every == 1):
        yield make("text", cell.index, x=middle, y=67, text_anchor="middle", class_="index")


def _pointer(one: Pointed, x: float, y: float) -> Element:
    """A line from the cell down to what is said of it, which stands where there is room."""
    left = x + 12 + len(one.says) * _LETTER > WIDTH
    return make(
        "g",
        make("path", d=f"M{x:.1f} 72V{y - 4:.1f}h{-8 if left else 8}", class_="pointer"),
        make(
            "text",
            clean(one.says, 120),
            x=x - 12 if left else x + 12,
            y=y,
            text_anchor="end" if left else None,
        ),
        class_="pointed meant" if one.meant else "pointed taken",
    )
