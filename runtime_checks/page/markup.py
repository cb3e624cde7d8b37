"""Elements and texts of the page. Whatever a text holds, it stays a text, and on its line."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar
from xml.etree import ElementTree

from kvlint.runtime_checks.settings import one_line

Element = ElementTree.Element
Child = Element | str | int | None | Iterable["Child"]
T = TypeVar("T")

LONGEST: Final = 300


def make(tag: str, *children: Child, **attributes: str | float | None) -> Element:
    """`make("p", "text", class_="why", aria_label="...")`; what is None is left out."""
    element = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            element.set(name.rstrip("_").replace("_", "-"), _attribute(value))
    add(element, *children)
    return element


def add(element: Element, *children: Child) -> None:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Element):
            element.append(child)
        elif isinstance(child, str | int):
            _append(element, child if isinstance(child, Clean) else clean(child))
        else:
            add(element, *child)


class Clean(str):
    """A text that has passed `clean`."""

    __slots__ = ()


def clean(text: object, most: int = LONGEST) -> Clean:
    """As people can read it, in at most so many characters; what is left out is counted."""
    whole = str(text)
    if len(whole) <= most:
        return Clean(one_line(whole))
    return Clean(f"{one_line(whole[:most])} … ({len(whole) - most:,} more characters)")


def first(items: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """The first of them, and how many are left out."""
    return items[:most], max(0, len(items) - most)


def left_out(number: int, noun: str, plural: str | None = None) -> Element | None:
    """`... and 3 more violations are not shown.`; None for none."""
    if not number:
        return None
    verb = "is" if number == 1 else "are"
    more = noun if number == 1 else plural or f"{noun}s"
    return make("p", f"… and {number:,} more {more} {verb} not shown here.", class_="more")


def code(text: object, most: int = LONGEST) -> Element:
    return make("code", clean(text, most))


def rows(*pairs: tuple[str, Child]) -> Element:
    """Terms and what they are; a pair without content is left out."""
    made = make("dl")
    for term, content in pairs:
        inner = make("dd", content)
        if len(inner) or inner.text:
            add(made, make("div", make("dt", term), inner))
    return made


def table(
    caption: str, heads: Sequence[Child], body: Iterable[Sequence[Child]], class_: str = ""
) -> Element:
    """The first cell of a row is its head. It scrolls within itself, also by keyboard."""
    made = make(
        "table",
        make("caption", make("span", caption)),
        make("thead", make("tr", (make("th", head, scope="col") for head in heads))),
        make("tbody", (_row(cells) for cells in body)),
        class_=class_ or None,
    )
    return scrolling(made, caption)


def scrolling(element: Element, label: str) -> Element:
    return make("div", element, class_="scroll", tabindex="0", role="region", aria_label=label)


def folded(summary: Child, *content: Child, open_: bool = False) -> Element:
    return make("details", make("summary", summary), *content, open="open" if open_ else None)


def section(id_: str, title: str, *content: Child) -> Element:
    return make(
        "section",
        make("h2", title, id=f"{id_}-title"),
        *content,
        id=id_,
        aria_labelledby=f"{id_}-title",
    )


def document(root: Element) -> str:
    return f"<!doctype html>\n{ElementTree.tostring(root, encoding='unicode', method='html')}\n"


def _row(cells: Sequence[Child]) -> Element:
    head, *others = cells
    return make("tr", make("th", head, scope="row"), (make("td", cell) for cell in others))


def _attribute(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return clean(value)


def _append(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
