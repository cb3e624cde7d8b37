"""A scene as SVG: regions as bars, all to one scale, and one slot of each to another.

`layout` gives an element for a page, which needs `STYLE` once; `document` a file of its own. There
is no script in it, and no name that a page could have, too: classes begin with `kvg`, there are no
ids. Colours are those of Okabe and Ito, and never the only difference.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree.ElementTree import Element, tostring

from kvlint.drawing.places import List
from kvlint.drawing.places import marks as marks_of
from kvlint.drawing.scene import SAYS, UNFOLDED, Kind, Lane, Mark, Scene, scene
from kvlint.drawing.shapes import MARGIN, shape, sign, text, tooltip, width_of
from kvlint.drawing.svg_routes import routes
from kvlint.drawing.svg_rows import Columns, band
from kvlint.drawing.words import size
from kvlint.geometry import Geometry

STYLE: Final = """
.kvg { --ink:#1c2733; --quiet:#5b6876; --line:#d5dbe2; --slot:#c8d6e5; --other:#aabfd6;
  --edge:#6f87a1; --moved:#7f9dbd; --paper:#ffffff; --right:#0072b2; --wrong:#d55e00;
  --changed:#8a5a00;
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }
@media (prefers-color-scheme: dark) { .kvg { --ink:#e4eaf0; --quiet:#9aa7b5; --line:#36414d;
  --slot:#2f4358; --other:#405a75; --edge:#7f9ab8; --moved:#6688ac; --paper:#14191f;
  --right:#56b4e9; --wrong:#ff9a52; --changed:#f0c060 } }
.kvg text { fill: var(--ink); white-space: pre } .kvg .kvg-quiet { fill: var(--quiet) }
.kvg .kvg-head { font-weight: 600 } .kvg .kvg-changed { fill: var(--changed); font-weight: 600 }
.kvg .kvg-paper { fill: var(--paper) } .kvg .kvg-rule { stroke: var(--line); fill: none }
.kvg .kvg-slots { fill: var(--slot) } .kvg .kvg-moved { fill: var(--moved) }
.kvg .kvg-other { fill: var(--other) }
.kvg .kvg-tick { stroke: var(--edge); fill: none; opacity: .5 }
.kvg .kvg-frame { stroke: var(--edge); fill: none }
.kvg .kvg-tail { stroke: var(--edge); fill: none; stroke-dasharray: 3 2 }
.kvg .kvg-both { stroke: var(--wrong); fill: none; stroke-width: 1.5 }
.kvg .kvg-meant { stroke: var(--ink); fill: var(--paper) }
.kvg .kvg-right { stroke: var(--right); fill: var(--right) }
.kvg .kvg-wrong { stroke: var(--wrong); fill: var(--wrong) }
.kvg .kvg-cross, .kvg .kvg-way { stroke: var(--wrong); fill: none; stroke-width: 2 }
.kvg .kvg-way { stroke-width: 1.2 } .kvg .kvg-line { stroke: var(--right); fill: none }
.kvg .kvg-stray { stroke: var(--wrong); fill: none; stroke-width: 1.5; stroke-dasharray: 5 2 }
.kvg .kvg-box { stroke: var(--edge); fill: var(--paper) }
.kvg .kvg-aimed { stroke: var(--ink); fill: var(--paper); stroke-width: 1.8 }
.kvg .kvg-ring { stroke: var(--ink); fill: none; stroke-width: 1.8 }
.kvg .kvg-beyond { stroke: var(--wrong); fill: var(--paper); stroke-dasharray: 3 2 }
.kvg .kvg-on { fill: var(--paper); font-weight: 600 }
"""


def layout(
    geometry: Geometry,
    other: Geometry | None = None,
    *,
    titles: Sequence[str] = (),
    lists: Iterable[str] | None = None,
    marks: Iterable[Mark] = (),
    index_sets: Sequence[List] = (),
    each: bool = False,
) -> Element:
    """The regions of a geometry, or of two side by side, as an `svg` element for a page.

    titles      of the sides, instead of the labels of engine and process
    lists       to draw; all without them
    marks       slots to point at
    index_sets  one for each side: where it was meant to go, and where it goes
    each        a row for each region, also where some are alike
    """
    found = [*marks, *(m for side, one in enumerate(index_sets) for m in marks_of(one, side))]
    unfolded = 1 << 40 if each else UNFOLDED
    what = scene(geometry, other, titles=titles, lists=lists, marks=found, unfolded=unfolded)
    return _drawn(what, index_sets)


def document(picture: Element) -> str:
    """A file that stands for itself."""
    whole = Element("svg", picture.attrib)
    style = Element("style")
    style.text = STYLE
    whole.append(style)
    whole.append(Element("rect", {"class": "kvg-paper", "width": "100%", "height": "100%"}))
    whole.extend(picture)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(whole, encoding="unicode") + "\n"


def _drawn(what: Scene, index_sets: Sequence[List]) -> Element:
    # Beside what an index set does, longer labels stand.
    columns = Columns.of(what, least=math.inf if index_sets else 0)
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "kvg", "role": "img"})
    width = columns.width(len(what.titles))
    y = _heads(root, what, columns)
    for one in what.bands:
        y = band(root, what, one, columns, y)
    y = _legend(root, what, width, y)
    for side, of in enumerate(index_sets):
        title = what.titles[side] if len(index_sets) > 1 else ""
        y = routes(root, of, title, columns.side(0)[0] - MARGIN, width, y)
    if not what.bands:
        text(root, "kvg-quiet", MARGIN, y + 14, "no regions", size=13, room=width - 2 * MARGIN)
        y += 20
    height = f"{y + MARGIN:.0f}"
    root.attrib |= {"viewBox": f"0 0 {width:.0f} {height}", "width": f"{width:.0f}"}
    root.set("height", height)
    tooltip(root, "Regions to scale: " + (" | ".join(t for t in what.titles if t) or "geometry"))
    return root


def _heads(root: Element, what: Scene, columns: Columns) -> float:
    y = float(MARGIN)
    for side, title in enumerate(what.titles):
        x, bar = columns.side(side)
        if title:
            room = columns.slot + columns.gap + columns.region
            text(root, "kvg-head", x, y + 12, title, size=14, room=room)
        text(root, "kvg-quiet", x, y + 34, "one slot", size=11, room=columns.slot)
        label = f"region, to scale; the longest: {size(what.longest)}"
        text(root, "kvg-quiet", bar, y + 34, label, size=11, room=columns.region)
    return y + 46


def _legend(root: Element, what: Scene, width: float, y: float) -> float:
    """What is drawn and does not speak for itself."""
    lanes = [lane for row in what.rows for lane in row.lanes if lane]
    kinds = {mark.kind for lane in lanes for mark in lane.marks}
    said: list[tuple[Kind | str, str]] = [
        (kind, words) for kind, words in SAYS.items() if kind in kinds
    ]
    said += [
        (form, words)
        for form, words, found in (
            ("kvg-tail", "bytes that are no slot", any(lane.tail for lane in lanes)),
            ("kvg-moved", "what is moved of a slot", any(map(_padded, lanes))),
            (
                "kvg-both",
                "bytes that two slots, or two regions, have in common",
                any(map(_shared, lanes)),
            ),
        )
        if found
    ]
    x = float(MARGIN)
    for form, words in said:
        wide = width_of(words, 11) + 18
        if x + wide > width - MARGIN:
            x, y = float(MARGIN), y + 18
        if isinstance(form, Kind):
            sign(root, form, x + 6, y + 10)
        else:
            shape(root, "rect", form, x=x, y=y + 5, width=12, height=10)
        text(root, "kvg-quiet", x + 18, y + 14, words, size=11, room=wide)
        x += wide + 24
    return y + 26 if said else y


def _padded(lane: Lane) -> bool:
    return lane.region.transfer_length < lane.region.stride


def _shared(lane: Lane) -> bool:
    return lane.overlap > 0 or lane.region.transfer_length > lane.region.stride
