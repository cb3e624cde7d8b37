"""An index set as SVG: how its indices are made, the list they go into, what they reach."""

from xml.etree.ElementTree import Element

from kvlint.drawing import routes as told
from kvlint.drawing.places import Fate, List
from kvlint.drawing.shapes import MARGIN, shape, text
from kvlint.drawing.svg_boxes import boxes
from kvlint.drawing.svg_strips import strips
from kvlint.drawing.words import number, spans


def routes(root: Element, of: List, title: str, label: float, width: float, y: float) -> float:
    """Draws from y on, labels in the first `label` pixels, and gives back where it ends."""
    places = list(of.places())
    right = sum(place.fate is Fate.RIGHT for place in places)
    room = width - 2 * MARGIN
    shape(root, "line", "kvg-rule", x1=MARGIN, x2=width - MARGIN, y1=y, y2=y)
    slots = f"slots {spans(sorted(of.index_set.slots))} of list {of.name}"
    slots += "" if of.index_set.group is None else f", group {of.index_set.group}"
    head = f"{slots}{f', {title}' if title else ''}: {number(right)} of {number(len(places))}"
    text(root, "kvg-head", MARGIN, y + 20, f"{head} indices right", size=13, room=room)
    lines = (
        f"index of region i, slot p: {told.formula(of)}",
        f"descriptors for region i: {told.counts(of)}; {number(len(of))} in all",
    )
    for at, line in enumerate(lines):
        text(root, "kvg-quiet", MARGIN, y + 38 + 16 * at, line, size=11, room=room)
    y = strips(root, of, places, label, width, y + 78)
    return boxes(root, of, places, label, width, y + 10) if right < len(places) else y
