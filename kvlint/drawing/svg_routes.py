"""An index set as SVG: the numbered list as the indices take it and as it is, to scale, and below
it the slots that are meant and reached, each as a box with its number."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from xml.etree.ElementTree import Element

from kvlint.drawing import routes as told
from kvlint.drawing.places import Fate, List, Place
from kvlint.drawing.scene import Kind
from kvlint.drawing.shapes import MARGIN, plain, shape, sign, text, tooltip, width_of
from kvlint.drawing.words import count, number, spans

_STRIP: Final = 18
_BETWEEN: Final = 44
_ROW: Final = 62
_BOX: Final = 22
_APART: Final = 16
# More would be no picture; the text has them.
MOST_ROWS: Final = 16
MOST_WAYS: Final = 160


def routes(root: Element, of: List, title: str, label: float, width: float, y: float) -> float:
    """Draws from y on, and gives back where it ends."""
    places = list(of.places())
    wrong = sum(place.fate is not Fate.RIGHT for place in places)
    shape(root, "line", "kvg-rule", x1=MARGIN, x2=width - MARGIN, y1=y, y2=y)
    slots = spans(sorted(of.index_set.slots))
    head = f"slots {slots} of list {of.name}{f', {title}' if title else ''}: "
    head += f"{number(len(places) - wrong)} of {number(len(places))} indices right"
    text(root, "kvg-head", MARGIN, y + 20, head, size=13, room=width - 2 * MARGIN)
    lines = (
        f"index of region i, slot p: {told.formula(of)}",
        f"descriptors for region i: {told.counts(of)}; {number(len(of))} in all",
    )
    for at, line in enumerate(lines):
        text(root, "kvg-quiet", MARGIN, y + 38 + 16 * at, line, size=11, room=width - 2 * MARGIN)
    y = _strips(root, of, places, label, width, y + 78)
    return _boxes(root, of, places, label, width, y + 10) if wrong else y


def _strips(
    root: Element, of: List, places: Sequence[Place], label: float, width: float, y: float
) -> float:
    """The list twice: above as the indices take it, below as it is. An index is a line down."""
    x, room = MARGIN + label, width - 2 * MARGIN - label
    whole = max(of.starts[-1], of.taken[-1], max((p.index for p in places), default=0) + 1)
    per = room / whole
    low = y + _STRIP + _BETWEEN
    for words, top, starts in (("list as indexed", y, of.taken), ("list as made", low, of.starts)):
        text(root, "", MARGIN, top + 13, words, size=12, room=label - 8)
        for at, (start, end) in enumerate(pairwise(starts)):
            kind = "kvg-other" if at % 2 else "kvg-slots"
            block = shape(
                root,
                "rect",
                kind,
                x=x + start * per,
                y=top,
                height=_STRIP,
                width=(end - start) * per,
            )
            region = of.regions[at]
            tooltip(block, f"region {at} {region.name!r}: {number(start)} to {number(end)}")
            if (end - start) * per > width_of(str(at), 11) + 4:
                middle = x + (start + end) / 2 * per
                text(
                    root,
                    "kvg-quiet",
                    middle,
                    top + 13,
                    str(at),
                    size=11,
                    room=(end - start) * per,
                    middle=True,
                )
    for above, below in zip(of.taken, of.starts, strict=True):
        line = (
            f"M{plain(x + above * per)} {plain(y + _STRIP)}L{plain(x + below * per)} {plain(low)}"
        )
        shape(root, "path", "kvg-tick", d=line)
    drawn: set[tuple[bool, int]] = set()
    for place in sorted(places, key=lambda place: place.fate is not Fate.RIGHT):
        down = x + (place.index + 0.5) * per
        right = place.fate is Fate.RIGHT
        if (right, round(down)) in drawn:
            continue
        drawn.add((right, round(down)))
        kind = "kvg-line" if right else "kvg-stray"
        index = shape(root, "line", kind, x1=down, x2=down, y1=y + _STRIP, y2=low)
        tooltip(index, _says(of, place))
    _ruler(root, of.taken, x, per, width, y - 5)
    _ruler(root, of.starts, x, per, width, low + _STRIP + 13)
    return low + _STRIP + 24


def _ruler(
    root: Element, starts: Sequence[int], x: float, per: float, width: float, y: float
) -> None:
    """Where regions begin, as far as there is room; the end of the list comes first."""
    taken: list[tuple[float, float]] = []
    for start in (starts[-1], *starts[:-1]):
        words = number(start)
        half = width_of(words, 10) / 2
        middle = min(x + start * per, width - half - 2)
        if all(right + 6 < middle - half or middle + half < left - 6 for left, right in taken):
            taken.append((middle - half, middle + half))
            text(root, "kvg-quiet", middle, y, words, size=10, room=2 * half + 1, middle=True)


@dataclass(frozen=True, slots=True)
class _Boxed:
    """The boxes of one region: slot -> the left edge of its box."""

    region: int
    top: float
    edges: dict[int, float]
    width: float


def _boxes(
    root: Element, of: List, places: Sequence[Place], label: float, width: float, y: float
) -> float:
    """A row for each region of which a slot is missed or wrongly reached."""
    aimed = {(p.region, p.slot): p for p in places if p.exists}
    hits = {p.hit[:2]: p for p in places if p.hit}
    for place in places:  # what goes wrong is shown where two reach one slot
        if place.hit and place.fate is not Fate.RIGHT:
            hits[place.hit[:2]] = place
    concerned = {p.region for p in places if p.fate is not Fate.RIGHT}
    concerned |= {p.hit[0] for p in places if p.hit and p.fate is not Fate.RIGHT}
    right = [at for at in range(len(of.regions)) if at not in concerned]
    if right:
        words = f"{'region' if len(right) == 1 else 'regions'} {spans(right)}: every slot right"
        text(root, "kvg-quiet", MARGIN, y + 10, words, size=11, room=width - 2 * MARGIN)
        y += 22
    rows = []
    shown = sorted(concerned)[:MOST_ROWS]
    for region in shown:
        slots = sorted({slot for at, slot in (*aimed, *hits) if at == region})
        x, room = MARGIN + label, width - 2 * MARGIN - label
        rows.append(_placed(region, slots, of.regions[region].slots, x, room, y + 20))
        text(root, "", MARGIN, y + 32, of.regions[region].name, size=12, room=label - 8)
        sub = told.head(of, region).rpartition(": ")[2]
        text(root, "kvg-quiet", MARGIN, y + 46, f"region {region} {sub}", size=10, room=label - 8)
        if not slots:
            has = count(of.regions[region].slots, "slot")
            words = f"none of these slots: it has {has}, and no index leads here"
            text(root, "kvg-quiet", x, y + 36, words, size=11, room=room)
        y += _ROW
    if len(concerned) > len(shown):
        words = f"… {count(len(concerned) - len(shown), 'region')} more, not drawn"
        text(root, "kvg-quiet", MARGIN, y + 12, words, size=11, room=width)
        y += 24
    by_region = {row.region: row for row in rows}
    _ways(root, places, by_region)
    for row in rows:
        for slot, left in row.edges.items():
            key = (row.region, slot)
            _box(root, of, row, slot, left, aimed.get(key), hits.get(key))
        _gaps(root, row)
    return y


def _placed(
    region: int, slots: Sequence[int], has: int, x: float, room: float, top: float
) -> _Boxed:
    """Each slot, and its neighbours where there is room."""
    if not slots:
        return _Boxed(region, top, {}, _BOX)
    wide = max(width_of(str(slots[-1] + 1), 11) + 6, _BOX)
    near = sorted(
        {s for slot in slots for s in (slot - 1, slot, slot + 1) if 0 <= s < has} | {*slots}
    )
    for wanted in (near, slots):
        edges, at = {}, x
        for before, slot in zip([None, *wanted], wanted, strict=False):
            at += 0 if before is None else wide if slot == before + 1 else wide + _APART
            edges[slot] = at
        if at + wide <= x + room:
            break
    kept = {slot: left for slot, left in edges.items() if left + wide <= x + room - _APART}
    return _Boxed(region, top, kept, wide)


def _box(
    root: Element,
    of: List,
    row: _Boxed,
    slot: int,
    left: float,
    aimed: Place | None,
    hit: Place | None,
) -> None:
    beyond = slot >= of.regions[row.region].slots
    kind = "kvg-aimed" if aimed else "kvg-box"
    words = ""
    if hit is not None:
        kind = "kvg-right" if hit.fate is Fate.RIGHT else "kvg-beyond" if beyond else "kvg-wrong"
        words = "kvg-on" if not beyond else ""
    group = shape(root, "g")
    said = [_says(of, place) for place in dict.fromkeys((aimed, hit)) if place]
    tooltip(group, "; ".join(said) or f"slot {number(slot)}")
    shape(group, "rect", kind, x=left + 1, y=row.top, width=row.width - 2, height=_BOX)
    if hit is not None and aimed is not None and hit is not aimed:
        shape(
            group,
            "rect",
            "kvg-aimed",
            x=left + 1,
            y=row.top,
            width=row.width - 2,
            height=_BOX,
            style="fill:none",
        )
    text(
        group,
        words or ("" if aimed else "kvg-quiet"),
        left + row.width / 2,
        row.top + 15,
        str(slot),
        size=11,
        room=row.width,
        middle=True,
    )
    if aimed is not None and aimed.hit is None:
        sign(group, Kind.WRONG, left + row.width / 2, row.top - 7, 3)


def _gaps(root: Element, row: _Boxed) -> None:
    for before, slot in pairwise(row.edges):
        if slot != before + 1:
            x = row.edges[slot] - _APART / 2
            text(root, "kvg-quiet", x, row.top + 15, "⋯", size=11, room=_APART, middle=True)


def _ways(root: Element, places: Sequence[Place], rows: dict[int, _Boxed]) -> None:
    """An arrow from each slot that is meant to the one that is reached instead."""
    wrong = [p for p in places if p.fate is not Fate.RIGHT and p.hit and p.exists]
    for place in wrong[:MOST_WAYS]:
        assert place.hit is not None
        here, there = rows.get(place.region), rows.get(place.hit[0])
        if here is None or there is None:
            continue
        start, end = here.edges.get(place.slot), there.edges.get(place.hit[1])
        if start is None or end is None:
            continue
        x0, x1 = start + here.width / 2, end + there.width / 2
        if here is there:
            y0 = y1 = here.top - 1
            bend = f"C{plain(x0)} {plain(y0 - 16)} {plain(x1)} {plain(y1 - 16)}"
            tip = 1.0
        else:
            up = there.top < here.top
            y0 = here.top - 1 if up else here.top + _BOX + 1
            y1 = there.top + _BOX + 1 if up else there.top - 1
            bend = f"C{plain(x0)} {plain((y0 + y1) / 2)} {plain(x1)} {plain((y0 + y1) / 2)}"
            tip = -1.0 if up else 1.0
        shape(
            root,
            "path",
            "kvg-way",
            d=f"M{plain(x0)} {plain(y0)}{bend} {plain(x1)} {plain(y1 - 5 * tip)}",
        )
        head = f"M{plain(x1)} {plain(y1)}l-3 {plain(-6 * tip)}h6z"
        shape(root, "path", "kvg-wrong", d=head)


def _says(of: List, place: Place) -> str:
    index = f"region {place.region} slot {number(place.slot)}: index {number(place.index)}"
    return f"{index} goes {'right' if place.fate is Fate.RIGHT else f'to {of.says(place)}'}"
