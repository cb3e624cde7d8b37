"""A scene in a terminal: one line a region, bars to one scale, marks below them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kvlint.drawing.scene import SAYS, Band, Kind, Lane, Row, Scene
from kvlint.drawing.tables import Paint
from kvlint.drawing.words import columns, count, fit, number, size, spans

LEAST: Final = 60
_STYLES: Final = {Kind.MEANT: "bold", Kind.RIGHT: "green", Kind.WRONG: "bold red"}


@dataclass(frozen=True, slots=True)
class Signs:
    """What bars and marks are made of. `parts`: an eighth of a column up to a whole one, or whole
    ones alone."""

    parts: str
    tail: str
    meant: str
    right: str
    wrong: str
    gap: str

    def of(self, kind: Kind) -> str:
        return {Kind.MEANT: self.meant, Kind.RIGHT: self.right, Kind.WRONG: self.wrong}[kind]


UNICODE: Final = Signs("▏▎▍▌▋▊▉█", "░", "○", "●", "✕", "…")
ASCII: Final = Signs("#", ".", "o", "*", "x", "...")


def signs_for(encoding: str | None) -> Signs:
    """Plain ones where the encoding has no others."""
    try:
        "".join((UNICODE.parts, UNICODE.tail, "○●✕…")).encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return ASCII
    return UNICODE


def lines(what: Scene, width: int, signs: Signs, paint: Paint) -> Iterator[str]:
    """The whole scene in `width` columns, `LEAST` at least."""
    yield from _Drawing(what, max(width, LEAST), signs, paint).lines()


class _Drawing:
    def __init__(self, what: Scene, width: int, signs: Signs, paint: Paint) -> None:
        self.what, self.signs, self.paint = what, signs, paint
        self.lettered = len(what.titles) > 1
        rows = what.rows
        self.numbers = max((len(_numbers(row)) for row in rows), default=0)
        labels = [self._label(row) for row in rows]
        shapes = [shape(lane) for row in rows for lane in row.lanes if lane]
        left = 2 + (3 if self.lettered else 0)
        self.shape = max(map(columns, shapes), default=0)
        self.label = min(max(map(columns, labels), default=0), (width - self.shape) // 2)
        self.bar = max(width - left - self.label - self.shape - 4, 8)
        self.per_column = what.longest / self.bar or 1.0

    def lines(self) -> Iterator[str]:
        scale = (
            f"{count(self.bar, 'column')} for the longest region, {size(self.what.longest)}: "
            f"{size(round(self.per_column))} a column"
        )
        for letter, title in zip("AB", self.what.titles, strict=False):
            if self.lettered:
                yield f"{self.paint(letter, 'bold')}  {title}"
            elif title:
                yield self.paint(title, "bold")
        if self.what.longest:
            yield scale
        elif not self.what.bands:
            yield "no regions"
        for band in self.what.bands:
            yield ""
            yield from self._band(band)
        kinds = {
            mark.kind for row in self.what.rows for lane in row.lanes if lane for mark in lane.marks
        }
        if kinds:
            yield ""
            yield "   ".join(
                f"{self.paint(self.signs.of(kind), _STYLES[kind])} {SAYS[kind]}"
                for kind in Kind
                if kind in kinds
            )

    def _band(self, band: Band) -> Iterator[str]:
        sizes = [
            f"{count(regions, 'region')}, {count(descriptors, 'descriptor')}"
            for regions, descriptors in band.sizes
        ]
        if len(set(sizes)) > 1:
            sizes = [f"{letter}: {words}" for letter, words in zip("AB", sizes, strict=True)]
        yield f"{self.paint(f'list {band.list}', 'bold')}: {'; '.join(dict.fromkeys(sizes))}"
        for at, row in enumerate(band.rows):
            if band.left_out and band.left_out[0] == at:
                yield f"  {self.signs.gap} {count(band.left_out[1], 'region')} not drawn"
            yield from self._row(row)

    def _row(self, row: Row) -> Iterator[str]:
        label = fit(self._label(row), self.label, self.signs.gap)
        lanes = self._lanes(row)
        for letters, lane in lanes:
            left = f"  {letters}{label}{' ' * (self.label - columns(label))}  "
            bar, taken = self._bar(lane)
            only = f"  only in {letters.strip()}" if self.lettered and None in row.lanes else ""
            yield f"{left}{bar}{' ' * (self.bar - taken)}  {shape(lane):>{self.shape}}{only}"
            if lane.marks:
                yield " " * (4 + len(letters) + self.label) + self._marks(lane)
            label = ""

    def _lanes(self, row: Row) -> list[tuple[str, Lane]]:
        """Once what is the same on both sides."""
        if not self.lettered:
            return [("", row.first)]
        one, two = row.lanes
        if one and two and not row.changed and one.pointed == two.pointed:
            return [("AB ", one)]
        return [(f"{letter}  ", lane) for letter, lane in zip("AB", row.lanes, strict=True) if lane]

    def _label(self, row: Row) -> str:
        return f"{_numbers(row):<{self.numbers}} {row.first.label}"

    def _bar(self, lane: Lane) -> tuple[str, int]:
        """The bar, and how many columns it takes."""
        steps = len(self.signs.parts)
        filled = round(lane.used / self.per_column * steps)
        whole, part = divmod(filled, steps)
        text = self.signs.parts[-1] * whole + (self.signs.parts[part - 1] if part else "")
        if not text and lane.used:
            text = self.signs.parts[0]  # too little for the scale, but there
        tail = round(lane.region.length / self.per_column) - len(text)
        if lane.tail:
            text += self.signs.tail * max(tail, 1)
        return text[: self.bar], min(len(text), self.bar)

    def _marks(self, lane: Lane) -> str:
        """The strongest of a column: what goes wrong hides what is meant."""
        order = list(Kind)
        at: dict[int, Kind] = {}
        for mark in lane.marks:
            column = min(int(mark.slot * lane.region.stride / self.per_column), self.bar - 1)
            if column not in at or order.index(mark.kind) > order.index(at[column]):
                at[column] = mark.kind
        return "".join(
            self.paint(self.signs.of(at[n]), _STYLES[at[n]]) if n in at else " "
            for n in range(max(at) + 1)
        )


def _numbers(row: Row) -> str:
    """Of both sides, where they differ."""
    return " | ".join(dict.fromkeys(spans(lane.numbers) for lane in row.lanes if lane))


def shape(lane: Lane) -> str:
    region = lane.region
    if region.transfer_length == region.stride:
        return f"{number(region.slots)} x {number(region.stride)} B"
    return f"{number(region.slots)} x {number(region.transfer_length)}/{number(region.stride)} B"
