"""A scene as SVG: regions as bars, all to one scale, and one slot of each to another.

`layout` gives an element for a page, which needs `STYLE` once; `document` a file of its own. There
is no script in it, and no name that a page could have, too: classes begin with `kvg`, there are no
ids. Colours are those of Okabe and Ito, and never the only difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final
from xml.etree.ElementTree import Element, tostring

from kvlint.drawing.scene import Band, Lane, Mark, Row, Scene, scene
from kvlint.drawing.shapes import shape, text, tooltip
from kvlint.drawing.words import count, number, size, spans
from kvlint.geometry import Geometry

STYLE: Final = """
.kvg { --ink:#1c2733; --quiet:#5b6876; --line:#d5dbe2; --slot:#c3d3e4; --edge:#6f87a1;
  --moved:#8fabc9; --paper:#ffffff; --right:#0072b2; --wrong:#d55e00; --changed:#8a5a00;
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }
@media (prefers-color-scheme: dark) { .kvg { --ink:#e4eaf0; --quiet:#9aa7b5; --line:#36414d;
  --slot:#2f4358; --edge:#7f9ab8; --moved:#56789b; --paper:#14191f; --right:#56b4e9;
  --wrong:#ff9a52; --changed:#f0c060 } }
.kvg text { fill: var(--ink); white-space: pre } .kvg .kvg-quiet { fill: var(--quiet) }
.kvg .kvg-head { font-weight: 600 } .kvg .kvg-changed { fill: var(--changed); font-weight: 600 }
.kvg .kvg-paper { fill: var(--paper) } .kvg .kvg-rule { stroke: var(--line); fill: none }
.kvg .kvg-slots { fill: var(--slot) } .kvg .kvg-moved { fill: var(--moved) }
.kvg .kvg-tick { stroke: var(--edge); fill: none; opacity: .55 }
.kvg .kvg-frame { stroke: var(--edge); fill: none }
.kvg .kvg-tail { stroke: var(--edge); fill: none; stroke-dasharray: 3 2 }
.kvg .kvg-both { stroke: var(--wrong); fill: none; stroke-width: 2 }
.kvg .kvg-meant { stroke: var(--ink); fill: var(--paper) }
.kvg .kvg-right { stroke: var(--right); fill: var(--right) }
.kvg .kvg-wrong { stroke: var(--wrong); fill: var(--wrong) }
"""

MARGIN: Final = 24
ROW: Final = 46
BAR: Final = 16


@dataclass(frozen=True, slots=True)
class Columns:
    """Where things stand, in pixels: labels, then for each side one slot and the region."""

    label: float
    slot: float
    region: float
    gap: float = 22

    @classmethod
    def of(cls, sides: int) -> "Columns":
        return cls(310, 110, 600) if sides == 1 else cls(280, 90, 400)

    def side(self, number: int) -> tuple[float, float]:
        """The left edges of a side's two columns."""
        start = MARGIN + self.label + number * (self.slot + self.region + 2 * self.gap + 12)
        return start + self.gap / 2, start + self.slot + 1.5 * self.gap

    def width(self, sides: int) -> float:
        return self.side(sides - 1)[1] + self.region + MARGIN


def layout(
    geometry: Geometry,
    other: Geometry | None = None,
    *,
    titles: Sequence[str] = (),
    lists: Iterable[str] | None = None,
    marks: Iterable[Mark] = (),
) -> Element:
    """The regions of a geometry, or of two side by side, as an `svg` element for a page."""
    return drawn(scene(geometry, other, titles=titles, lists=lists, marks=marks))


def document(picture: Element) -> str:
    """A file that stands for itself."""
    whole = Element("svg", picture.attrib)
    style = Element("style")
    style.text = STYLE
    whole.append(style)
    paper = Element("rect", {"class": "kvg-paper", "width": "100%", "height": "100%"})
    whole.append(paper)
    whole.extend(picture)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(whole, encoding="unicode") + "\n"


def drawn(what: Scene) -> Element:
    sides = len(what.titles)
    columns = Columns.of(sides)
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "kvg", "role": "img"})
    width = columns.width(sides)
    y = _heads(root, what, columns)
    for band in what.bands:
        y = _band(root, what, band, columns, y)
    root.attrib |= {"viewBox": f"0 0 {width:.0f} {y + MARGIN:.0f}", "width": f"{width:.0f}"}
    root.set("height", f"{y + MARGIN:.0f}")
    tooltip(root, "Regions to scale: " + (" | ".join(what.titles) or "geometry"))
    return root


def _heads(root: Element, what: Scene, columns: Columns) -> float:
    y = float(MARGIN)
    for side, title in enumerate(what.titles):
        x, bar = columns.side(side)
        if title:
            room = columns.slot + columns.gap + columns.region
            text(root, "kvg-head", x, y + 12, title, size=14, room=room)
        text(root, "kvg-quiet", x, y + 34, "one slot", size=11, room=columns.slot)
        label = f"region, whole width {size(what.longest)}"
        text(root, "kvg-quiet", bar, y + 34, label, size=11, room=columns.region)
    return y + 46


def _band(root: Element, what: Scene, band: Band, columns: Columns, y: float) -> float:
    right = columns.width(len(what.titles)) - MARGIN
    shape(root, "line", "kvg-rule", x1=MARGIN, x2=right, y1=y, y2=y)
    text(root, "kvg-head", MARGIN, y + 20, f"list {band.list}", size=13, room=columns.label)
    for side, (regions, descriptors) in enumerate(band.sizes):
        words = f"{count(regions, 'region')}, {count(descriptors, 'descriptor')}"
        x, _ = columns.side(side)
        text(root, "kvg-quiet", x, y + 20, words, size=11, room=columns.slot + columns.region)
    y += 32
    for at, row in enumerate(band.rows):
        if band.left_out and band.left_out[0] == at:
            words = f"... {count(band.left_out[1], 'region')} not drawn"
            text(root, "kvg-quiet", MARGIN, y + 14, words, size=11, room=right - MARGIN)
            y += 26
        _row(root, what, row, columns, y)
        y += ROW
    return y + 6


def _row(root: Element, what: Scene, row: Row, columns: Columns, y: float) -> None:
    group = shape(root, "g")
    room = columns.label - 8
    text(group, "", MARGIN, y + 14, names(row.first), size=13, room=room)
    text(group, "kvg-quiet", MARGIN, y + 31, numbers(row.first), size=11, room=room)
    for side, lane in enumerate(row.lanes):
        if lane is not None:
            _lane(group, what, lane, columns, side, y)
        else:
            x, _ = columns.side(side)
            text(group, "kvg-quiet", x, y + 14, "not there", size=11, room=columns.slot)


def _lane(root: Element, what: Scene, lane: Lane, columns: Columns, side: int, y: float) -> None:
    group = shape(root, "g")
    tooltip(group, tip(lane))
    slot_x, x = columns.side(side)
    region = lane.at.region
    per_byte = columns.slot / what.widest
    moved = region.transfer_length * per_byte
    shape(group, "rect", "kvg-slots", x=slot_x, y=y + 2, width=region.stride * per_byte, height=BAR)
    shape(group, "rect", "kvg-moved", x=slot_x, y=y + 6, width=moved, height=BAR - 8)
    per_byte = columns.region / what.longest if what.longest else 0
    shape(group, "rect", "kvg-slots", x=x, y=y + 2, width=lane.used * per_byte, height=BAR)
    if lane.tail:
        start, end = x + lane.used * per_byte, x + region.length * per_byte
        shape(group, "rect", "kvg-tail", x=start, y=y + 2, width=end - start, height=BAR)
    _ticks(group, lane, x, y, per_byte)
    shape(group, "line", "kvg-frame", x1=x, x2=x, y1=y + 1, y2=y + 3 + BAR)
    text(group, "kvg-quiet", slot_x, y + 31, slot_words(lane), size=11, room=columns.slot)
    text(group, "kvg-quiet", x, y + 31, region_words(lane), size=11, room=columns.region)


def _ticks(group: Element, lane: Lane, x: float, y: float, per_byte: float) -> None:
    region = lane.at.region
    step = tick(region.stride * per_byte)
    if step and region.slots > step:
        far = range(step, region.slots, step)
        path = " ".join(f"M{x + n * region.stride * per_byte:.2f} {y + 2}v{BAR}" for n in far)
        shape(group, "path", "kvg-tick", d=path)


def tick(slot: float) -> int:
    """How many slots of this width stand between two ticks: 1, 2, 5, 10 ...; 0 for none."""
    if slot <= 0:
        return 0
    step, further = 1, cycle((2, 2.5, 2))
    while step * slot < 5:
        step = int(step * next(further))
    return step


def names(lane: Lane) -> str:
    """What the row shows: a region's name, or what several have in common."""
    if len(lane.numbers) == 1:
        return lane.at.region.name
    role = lane.at.region.role or "regions"
    if not lane.layers:
        return f"{len(lane.numbers)} {role} alike"
    return f"layers {spans(lane.layers)} {role}"


def numbers(lane: Lane) -> str:
    one = len(lane.numbers) == 1
    parts = [f"{'region' if one else 'regions'} {spans(lane.numbers)}"]
    region = lane.at.region
    parts += [part for part in (region.dtype, region.group and f"group {region.group}") if part]
    return " · ".join(parts)


def slot_words(lane: Lane) -> str:
    return f"{number(lane.at.region.stride)} B"


def region_words(lane: Lane) -> str:
    region = lane.at.region
    words = f"{count(region.slots, 'slot')} · {size(region.length)}"
    if lane.tail:
        words += f" · tail {size(lane.tail)}"
    return words


def tip(lane: Lane) -> str:
    region = lane.at.region
    moved = (
        ""
        if region.transfer_length == region.stride
        else (f", of each {count(region.transfer_length, 'byte')} moved")
    )
    tail = f", {count(lane.tail, 'byte')} after the last" if lane.tail else ""
    return (
        f"{region.name}: {count(region.slots, 'slot')} of {count(region.stride, 'byte')}"
        f"{moved}{tail}; {count(region.length, 'byte')}"
    )
