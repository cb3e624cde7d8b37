"""The rows of a scene as SVG: for each side one slot, to the scale of its list, and the region, to
the scale of the picture."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Final
from xml.etree.ElementTree import Element

from kvlint.drawing.scene import Band, Kind, Lane, Row, Scene
from kvlint.drawing.shapes import BAR, MARGIN, plain, shape, sign, text, tooltip, width_of
from kvlint.drawing.words import count, number, size, spans

ROW: Final = 50
# Room for the signs of marks above a bar.
SIGNS: Final = 12
# Two ticks, or two signs, are at least so far from each other, in pixels.
_NEAR: Final = 5.0
# From the end of a label to what stands beside it.
_NEXT: Final = 16.0


@dataclass(frozen=True, slots=True)
class Columns:
    """Where things stand, in pixels: labels, then for each side one slot and the region."""

    label: float
    slot: float
    region: float
    gap: float = 22

    @classmethod
    def of(cls, what: Scene, *, least: float = 0) -> "Columns":
        """What labels do not take, of at most so much, is the regions'.

        least  pixels for labels in any case
        """
        sides = len(what.titles)
        most, slot, region = (310.0, 110.0, 620.0) if sides == 1 else (290.0, 90.0, 400.0)
        needed = max((width for one in what.bands for width in _labels(one)), default=0.0) + _NEXT
        label = min(max(least, needed), most)
        return cls(label, slot, region + (most - label) / max(sides, 1))

    def side(self, number: int) -> tuple[float, float]:
        """The left edges of a side's two columns."""
        start = MARGIN + self.label + number * (self.slot + self.region + 2 * self.gap + 14)
        return start + self.gap / 2, start + self.slot + 1.5 * self.gap

    def width(self, sides: int) -> float:
        return self.side(sides - 1)[1] + self.region + MARGIN


def band(root: Element, what: Scene, one: Band, columns: Columns, y: float) -> float:
    """Draws a list from y on, and gives back where it ends."""
    right = columns.width(len(what.titles)) - MARGIN
    shape(root, "line", "kvg-rule", x1=MARGIN, x2=right, y1=y, y2=y)
    text(root, "kvg-head", MARGIN, y + 20, f"list {one.list}", size=13, room=columns.label)
    for side, (regions, descriptors) in enumerate(one.sizes):
        words = f"{count(regions, 'region')}, {count(descriptors, 'descriptor')}"
        room = columns.slot + columns.region
        text(root, "kvg-quiet", columns.side(side)[0], y + 20, words, size=11, room=room)
    y += 32
    widest = max(
        (max(slot_bytes(lane)) for row in one.rows for lane in row.lanes if lane), default=1
    )
    for at, row in enumerate(one.rows):
        if one.left_out and one.left_out[0] == at:
            words = f"… {count(one.left_out[1], 'region')} not drawn"
            text(root, "kvg-quiet", MARGIN, y + 14, words, size=11, room=right - MARGIN)
            y += 26
        y = _row(root, row, columns, widest, what.longest, y)
    return y + 6


def _labels(one: Band) -> Iterator[float]:
    """How wide they are."""
    yield width_of(f"list {one.list}", 13)
    for row in one.rows:
        yield width_of(row.first.label, 13)
        yield width_of(_numbers(row), 11)


def slot_bytes(lane: Lane) -> tuple[int, int]:
    return lane.region.stride, lane.region.transfer_length


def _row(root: Element, row: Row, columns: Columns, widest: int, longest: int, y: float) -> float:
    group = shape(root, "g")
    if any(lane.marks for lane in row.lanes if lane):
        y += SIGNS
    room = columns.label - 8
    text(group, "", MARGIN, y + 15, row.first.label, size=13, room=room)
    kind = "kvg-changed" if "dtype" in row.changed else "kvg-quiet"
    text(group, kind, MARGIN, y + 36, _numbers(row), size=11, room=room)
    for side, lane in enumerate(row.lanes):
        x, bar = columns.side(side)
        if lane is None:
            text(group, "kvg-quiet", x, y + 15, "not there", size=11, room=columns.slot)
            continue
        picture = shape(group, "g")
        tooltip(picture, tip(lane))
        changed = row.changed if side else ()
        _slot(picture, lane, x, y, columns.slot / widest, columns.slot, changed)
        per_byte = columns.region / longest if longest else 0.0
        _region(picture, lane, bar, y, per_byte, columns.region, changed)
        _marks(group, lane, bar, y, per_byte, columns.region)
    return y + ROW


def _slot(
    group: Element,
    lane: Lane,
    x: float,
    y: float,
    per_byte: float,
    room: float,
    changed: tuple[str, ...],
) -> None:
    """One slot: what lies between two, and what of it is moved."""
    stride, moved = slot_bytes(lane)
    shape(group, "rect", "kvg-slots", x=x, y=y + 3, width=stride * per_byte, height=BAR)
    if moved != stride:
        over = "kvg-both" if moved > stride else "kvg-moved"
        shape(group, "rect", over, x=x, y=y + 7, width=moved * per_byte, height=BAR - 8)
    shape(group, "line", "kvg-frame", x1=x, x2=x, y1=y + 2, y2=y + 4 + BAR)
    words = f"{number(stride)} B"
    if moved != stride:
        words = f"{number(moved)} {'of' if moved < stride else 'in'} {words}"
    kind = "kvg-changed" if {"stride", "transfer_length"} & set(changed) else "kvg-quiet"
    text(group, kind, x, y + 36, words, size=11, room=room + 8)


def _region(
    group: Element,
    lane: Lane,
    x: float,
    y: float,
    per_byte: float,
    room: float,
    changed: tuple[str, ...],
) -> None:
    region = lane.region
    width = lane.used * per_byte
    for behind in range(min(len(lane.members) - 1, 2), 0, -1):
        # Several that are alike lie behind each other.
        off = 2.0 * behind
        end = region.length * per_byte
        shape(
            group,
            "path",
            "kvg-frame",
            d=f"M{plain(x + end)} {plain(y + 3 + off)}m{plain(off)} 0v{BAR}h{plain(-end)}",
        )
    shape(group, "rect", "kvg-slots", x=x, y=y + 3, width=width, height=BAR)
    if lane.tail:
        end = region.length * per_byte - width
        shape(group, "rect", "kvg-tail", x=x + width, y=y + 3, width=end, height=BAR)
    if lane.overlap:
        shape(group, "rect", "kvg-both", x=x, y=y + 3, width=width, height=BAR)
    if region.transfer_length < region.stride and region.stride * per_byte >= _NEAR:
        # Slots so wide are a few hundred at most.
        moved = region.transfer_length * per_byte
        lefts = [x + slot * region.stride * per_byte for slot in range(region.slots)]
        path = "".join(f"M{left:.2f} {plain(y + 7)}h{moved:.2f}v8h{-moved:.2f}z" for left in lefts)
        shape(group, "path", "kvg-moved", d=path)
    step = tick(region.stride * per_byte)
    if step and region.slots > step:
        at = range(step, region.slots, step)
        path = "".join(f"M{x + n * region.stride * per_byte:.2f} {plain(y + 3)}v{BAR}" for n in at)
        shape(group, "path", "kvg-tick", d=path)
    shape(group, "line", "kvg-frame", x1=x, x2=x, y1=y + 2, y2=y + 4 + BAR)
    kind = "kvg-changed" if {"slots", "length"} & set(changed) else "kvg-quiet"
    text(group, kind, x, y + 36, _words(lane, step), size=11, room=room)


def _marks(group: Element, lane: Lane, x: float, y: float, per_byte: float, room: float) -> None:
    """A slot that is pointed at, to scale but never thinner than can be seen, and above it a sign
    where there is room for one, for what goes wrong first. What lies farther than the longest
    region stands at the edge."""
    drawn: set[tuple[Kind, int]] = set()
    signs: list[float] = []
    for kind in (Kind.WRONG, Kind.MEANT, Kind.RIGHT):
        for mark in lane.marks:
            left = min(mark.slot * lane.region.stride * per_byte, room)
            width = max(min(lane.region.transfer_length * per_byte, room - left), 2.0)
            middle = left + width / 2
            if mark.kind is not kind or (kind, round(middle)) in drawn:
                continue
            drawn.add((kind, round(middle)))
            one = shape(group, "g")
            tooltip(one, mark.says or f"slot {number(mark.slot)}: {kind}")
            shape(one, "rect", f"kvg-{kind}", x=x + left, y=y + 3, width=width, height=BAR)
            if all(abs(middle - other) > 2 * _NEAR for other in signs):
                signs.append(middle)
                sign(one, kind, x + middle, y - 5)


def tick(slot: float) -> int:
    """How many slots of this width, in pixels, stand between two ticks: 1, 2, 5, 10, ...; 0 where
    there is none to be seen."""
    if slot * 1e12 < _NEAR:
        return 0
    step, further = 1, cycle((2.0, 2.5, 2.0))
    while step * slot < _NEAR:
        step = int(step * next(further))
    return step


def _numbers(row: Row) -> str:
    """Numbers on both sides, where they differ, and what else the first is known by."""
    lane = row.first
    numbers = list(dict.fromkeys(spans(one.numbers) for one in row.lanes if one))
    parts = [f"{'region' if len(lane.members) == 1 else 'regions'} {' | '.join(numbers)}"]
    if parts[0] == lane.label:  # it has no other name
        parts.clear()
    region = lane.region
    dtypes = dict.fromkeys(one.region.dtype or "" for one in row.lanes if one)
    parts += [" → ".join(dtypes)] if any(dtypes) else []
    parts += [f"group {region.group}"] if region.group else []
    return " · ".join(parts)


def _words(lane: Lane, step: int) -> str:
    parts = [count(lane.region.slots, "slot"), size(lane.region.length)]
    if len(lane.members) > 1:
        parts[-1] = f"{len(lane.members)} × {parts[-1]}"
    if step > 1 and lane.region.slots > step:
        parts.append(f"tick = {number(step)} slots")
    if lane.tail:
        parts.append(f"tail {size(lane.tail)}")
    if lane.overlap:
        parts.append(f"shares {size(lane.overlap)}")
    return " · ".join(parts)


def tip(lane: Lane) -> str:
    region = lane.region
    words = f"{region.name}: {count(region.slots, 'slot')} of {count(region.stride, 'byte')}"
    if region.transfer_length != region.stride:
        words += f", {number(region.transfer_length)} of each moved"
    if lane.tail:
        words += f", {count(lane.tail, 'byte')} after the last"
    if lane.overlap:
        words += f", {count(lane.overlap, 'byte')} in common with a region that begins before it"
    return f"{words}; {count(region.length, 'byte')} in all"
