"""Elements of SVG. Text goes in as text and is escaped by whoever writes the tree out."""

from typing import Final
from xml.etree.ElementTree import Element, SubElement

from kvlint.drawing.scene import Kind
from kvlint.drawing.words import columns, fit

# The widest that a column of text gets, in parts of the font's size: of the monospace fonts that
# browsers bring none is wider, and of the others few characters are.
COLUMN: Final = 0.62
MARGIN: Final = 24
BAR: Final = 16


def shape(parent: Element, tag: str, kind: str = "", /, **given: float | str) -> Element:
    """An element; numbers are cut to what can be seen, an underscore is a hyphen."""
    attributes = {"class": kind} if kind else {}
    attributes |= {key.replace("_", "-"): plain(value) for key, value in given.items()}
    return SubElement(parent, tag, attributes)


def plain(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3f}".rstrip("0").rstrip(".")


def text(
    parent: Element,
    kind: str,
    x: float,
    y: float,
    words: str,
    *,
    size: int,
    room: float,
    middle: bool = False,
) -> Element:
    """One line that begins at x, or has its middle there, on the base line y, and is cut to `room`;
    whole as a tooltip where it is cut."""
    shown = fit(words, int(room / (size * COLUMN)))
    element = shape(parent, "text", kind, x=x, y=y, font_size=str(size))
    if middle:
        element.set("text-anchor", "middle")
    element.text = shown
    if shown != words:
        tooltip(element, words)
    return element


def tooltip(element: Element, words: str) -> None:
    """First in the element, where browsers look for it."""
    title = Element("title")
    title.text = words
    title.tail, element.text = element.text, None
    element.insert(0, title)


def width_of(words: str, size: int) -> float:
    """At most so much of the picture."""
    return columns(words) * size * COLUMN


def sign(parent: Element, kind: Kind, x: float, y: float, radius: float = 3.5) -> Element:
    """What stands for a kind of mark, its middle at (x, y): three forms, for colour may be lost."""
    r = radius
    if kind is Kind.RIGHT:
        return shape(parent, "circle", "kvg-right", cx=x, cy=y, r=r)
    if kind is Kind.MEANT:
        path = f"M{plain(x - r)} {plain(y - r)}h{plain(2 * r)}l{plain(-r)} {plain(2 * r)}z"
        return shape(parent, "path", "kvg-meant", d=path)
    arms = f"M{plain(x - r)} {plain(y - r)}l{plain(2 * r)} {plain(2 * r)}m0 {plain(-2 * r)}"
    return shape(parent, "path", "kvg-cross", d=f"{arms}l{plain(-2 * r)} {plain(2 * r)}")
