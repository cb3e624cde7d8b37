"""Elements of SVG. Text goes in as text and is escaped by whoever writes the tree out."""

from typing import Final
from xml.etree.ElementTree import Element, SubElement

from kvlint.drawing.words import columns, fit

# The widest that a column of text gets, in parts of the font's size: of the monospace fonts that
# browsers bring, none is wider, and of the others few characters are.
COLUMN: Final = 0.62


def shape(parent: Element, tag: str, kind: str = "", /, **given: float | str) -> Element:
    """An element; numbers are cut to what can be seen, an underscore is a hyphen."""
    attributes = {"class": kind} if kind else {}
    attributes |= {key.replace("_", "-"): plain(value) for key, value in given.items()}
    return SubElement(parent, tag, attributes)


def plain(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4f}".rstrip("0").rstrip(".")


def text(
    parent: Element, kind: str, x: float, y: float, words: str, *, size: int, room: float
) -> Element:
    """One line that begins at x, on the base line y, and is cut to `room`; whole as a tooltip
    where it is cut."""
    shown = fit(words, int(room / (size * COLUMN)))
    element = shape(parent, "text", kind, x=x, y=y, font_size=str(size))
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
