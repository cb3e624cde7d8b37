"""The slots that an index set means and reaches, as SVG: a box each, with its number, and an arrow
from each slot that is missed to the one that is reached instead."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from xml.etree.ElementTree import Element

from kvlint.drawing.places import Fate, List, Place, says
from kvlint.drawing.routes import head
from kvlint.drawing.scene import Kind
from kvlint.drawing.shapes import MARGIN, plain, shape, sign, text, tooltip, width_of
from kvlint.drawing.words import count, number, spans

_ROW: Final = 62
_HEIGHT: Final = 22
_APART: Final = 16
_MORE: Final = 90  # room for how many are left out
# More would be no picture; the text has them.
MOST_ROWS: Final = 12
MOST_ARROWS: Final = 160


@dataclass(frozen=True, slots=True)
class _Boxes:
    """Those of one region: slot -> the left edge of its box; `left_out`: how many there was no
    room for."""

    region: int
    top: float
    edges: dict[int, float]
    width: float
    left_out: int = 0


def boxes(
    root: Element, of: List, places: Sequence[Place], label: float, width: float, y: float
) -> float:
    """A row for each region of which a slot is missed, or reached by an index of another slot.
    Draws from y on, and gives back where it ends."""
    wrong = [place for place in places if place.fate is not Fate.RIGHT]
    aimed = {(place.region, place.slot): place for place in places if place.exists}
    # Where two reach one slot, the one that was not meant to is told.
    hits = {place.hit[:2]: place for place in (*places, *wrong) if place.hit}
    concerned = {place.region for place in wrong} | {p.hit[0] for p in wrong if p.hit}
    right = [at for at in of.meant if at not in concerned]
    if right:
        words = f"{'region' if len(right) == 1 else 'regions'} {spans(right)}: every slot right"
        text(root, "kvg-quiet", MARGIN, y + 10, words, size=11, room=width - 2 * MARGIN)
        y += 22
    rows = {}
    x, room = MARGIN + label, width - 2 * MARGIN - label
    for region in sorted(concerned)[:MOST_ROWS]:
        slots = _slots(region, wrong, places)
        _labels(root, of, region, label - 8, y)
        if slots:
            rows[region] = _placed(region, slots, of.regions[region].slots, x, room, y + 20)
        else:
            has = count(of.regions[region].slots, "slot")
            words = f"none of these slots: it has {has}, and no index leads here"
            text(root, "kvg-quiet", x, y + 36, words, size=11, room=room)
        y += _ROW
    if len(concerned) > MOST_ROWS:
        words = f"… {count(len(concerned) - MOST_ROWS, 'region')} more, not drawn"
        text(root, "kvg-quiet", MARGIN, y + 12, words, size=11, room=width)
        y += 24
    for place in [p for p in wrong if p.exists and _drawn(p, rows)][:MOST_ARROWS]:
        _arrow(root, place, rows)
    for row in rows.values():
        _row(root, of, row, aimed, hits)
    return y


def _labels(root: Element, of: List, region: int, room: float, y: float) -> None:
    name = f"{region} {of.regions[region].name}"
    text(root, "", MARGIN, y + 32, name, size=12, room=room)
    where = head(of, region).rpartition(": ")[2]
    text(root, "kvg-quiet", MARGIN, y + 46, where, size=10, room=room)


def _slots(region: int, wrong: Sequence[Place], places: Sequence[Place]) -> list[int]:
    """Those of a region that are meant or reached, what goes wrong first, with its other end."""
    found: dict[int, None] = {}
    for place in (*wrong, *places):
        if place.region == region and place.exists:
            found[place.slot] = None
        if place.hit is not None and place.hit[0] == region:
            found[place.hit[1]] = None
    return list(found)


def _placed(
    region: int, slots: Sequence[int], has: int, x: float, room: float, top: float
) -> _Boxes:
    """Each slot, and its neighbours, where there is room; else as many as there is room for."""
    wide = max(width_of(str(max(slots) + 1), 11) + 6, _HEIGHT)
    beside = {at for slot in slots for at in (slot - 1, slot + 1) if 0 <= at < has}
    for wanted in ({*slots, *beside}, slots):
        edges = _edges(sorted(wanted), x, wide)
        if max(edges.values()) + wide <= x + room:
            return _Boxes(region, top, edges, wide)
    fitting = 0
    while True:
        edges = _edges(sorted(slots[: fitting + 1]), x, wide)
        if max(edges.values()) + wide > x + room - _MORE:
            break
        fitting += 1
    edges = _edges(sorted(slots[:fitting]), x, wide)
    return _Boxes(region, top, edges, wide, len(slots) - fitting)


def _edges(slots: Sequence[int], x: float, wide: float) -> dict[int, float]:
    edges = dict.fromkeys(slots[:1], x)
    for before, slot in pairwise(slots):
        edges[slot] = edges[before] + wide + (0 if slot == before + 1 else _APART)
    return edges


def _row(
    root: Element,
    of: List,
    row: _Boxes,
    aimed: dict[tuple[int, int], Place],
    hits: dict[tuple[int, int], Place],
) -> None:
    for slot, left in row.edges.items():
        key = (row.region, slot)
        _box(root, of, row, slot, left, aimed.get(key), hits.get(key))
    for before, slot in pairwise(row.edges):
        if slot != before + 1:
            middle = row.edges[slot] - _APART / 2
            text(
                root,
                "kvg-quiet",
                middle,
                row.top + 15,
                "⋯",
                size=11,
                room=_APART,
                middle=True,
            )
    if row.left_out:
        x = max(row.edges.values(), default=0.0) + row.width + 6
        words = f"… {number(row.left_out)} more"
        text(root, "kvg-quiet", x, row.top + 15, words, size=11, room=_MORE - 6)


def _box(
    root: Element,
    of: List,
    row: _Boxes,
    slot: int,
    left: float,
    aimed: Place | None,
    hit: Place | None,
) -> None:
    group = shape(root, "g")
    said = [says(of, place) for place in dict.fromkeys((aimed, hit)) if place]
    tooltip(group, "; ".join(said) or f"slot {number(slot)}")
    frame = {"x": left + 1, "y": row.top, "width": row.width - 2, "height": float(_HEIGHT)}
    middle = left + row.width / 2
    box, words = "kvg-box", "kvg-quiet"
    if hit is not None and slot >= of.regions[row.region].slots:
        box, words = "kvg-beyond", ""
    elif hit is not None:
        box, words = ("kvg-right" if hit.fate is Fate.RIGHT else "kvg-wrong"), "kvg-on"
    elif aimed is not None:
        box, words = "kvg-aimed", ""
    shape(group, "rect", box, **frame)
    if aimed is not None and hit not in (None, aimed):
        shape(group, "rect", "kvg-ring", **frame)
    text(group, words, middle, row.top + 15, str(slot), size=11, room=row.width, middle=True)
    if aimed is not None and aimed.hit is None:
        sign(group, Kind.WRONG, middle, row.top - 7, 3)


def _drawn(place: Place, rows: dict[int, _Boxes]) -> bool:
    """Whether both ends of its arrow are."""
    ends = [(place.region, place.slot), *([place.hit[:2]] if place.hit else [])]
    return len(ends) == 2 and all(at in rows and slot in rows[at].edges for at, slot in ends)


def _arrow(root: Element, place: Place, rows: dict[int, _Boxes]) -> None:
    """Within a row a bow above it; between rows the shorter way."""
    assert place.hit is not None
    here, there = rows[place.region], rows[place.hit[0]]
    x0 = here.edges[place.slot] + here.width / 2
    x1 = there.edges[place.hit[1]] + there.width / 2
    up = there.top < here.top
    y0 = here.top - 1 if up or here is there else here.top + _HEIGHT + 1
    y1 = there.top + _HEIGHT + 1 if up else there.top - 1
    bend = y0 - 16 if here is there else (y0 + y1) / 2
    tip = -1 if up else 1
    points = [(x0, y0), (x0, bend), (x1, bend), (x1, y1 - 5 * tip)]
    start, *curve = (f"{plain(x)} {plain(y)}" for x, y in points)
    shape(root, "path", "kvg-way", d=f"M{start}C{' '.join(curve)}")
    shape(root, "path", "kvg-wrong", d=f"M{plain(x1)} {plain(y1)}l-3 {plain(-6 * tip)}h6z")
