"""The whole page."""

from collections.abc import Iterable

import kvlint
from kvlint.runtime_checks.page import hypotheses, layouts, others
from kvlint.runtime_checks.page.given import Given
from kvlint.runtime_checks.page.markup import Child, Element, clean, document, make, section
from kvlint.runtime_checks.page.style import STYLE
from kvlint.runtime_checks.page.summary import facts, sentence
from kvlint.runtime_checks.page.timeline import timelines

# Nothing is ever asked of anybody, whatever a record may hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(given: Given) -> str:
    """A document for a file. It has no script and asks for nothing else."""
    sections = _sections(given)
    begun, ended = sentence(given)
    head = make(
        "head",
        make("meta", charset="utf-8"),
        make("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        make("meta", name="viewport", content="width=device-width, initial-scale=1"),
        make("meta", name="color-scheme", content="light dark"),
        make("title", f"kvlint report: {clean(given.name, 120)}"),
        _style(),
    )
    body = make(
        "body",
        make(
            "header",
            make("p", "kvlint ", make("span", "hypothesis report"), class_="kind"),
            make("h1", begun, make("span", ended)),
            facts(given),
        ),
        make("nav", make("ul", (_entry(part) for part in sections)), aria_label="sections"),
        make("main", sections),
        make("footer", make("p", f"kvlint {kvlint.__version__} · {clean(given.name, 200)}")),
    )
    return document(make("html", head, body, lang="en"))


def _sections(given: Given) -> list[Element]:
    answers = [
        hypotheses.without_assumptions() if given.judged is None else None,
        hypotheses.refuted(given),
        hypotheses.confirmed(given),
        hypotheses.not_exercised(given),
    ]
    rest = [others.violations(given), others.changes(given), others.unread(given)]
    told = _violations([*answers, *rest])
    drawn: list[Child] = list(timelines(given.story, told))
    line = section("timeline", "Time line", drawn) if drawn else None
    found = [*answers, line, layouts.captured(given), *rest]
    return [part for part in found if part is not None]


def _violations(parts: Iterable[Element | None]) -> set[int]:
    """Numbers of those that the page tells of."""
    found = (
        element.get("id") or "" for part in parts if part is not None for element in part.iter()
    )
    names = (name.partition("violation-") for name in found)
    return {int(number) for before, mark, number in names if mark and not before}


def _entry(part: Element) -> Element:
    title = part.find("h2")
    assert title is not None
    return make("li", make("a", title.text, href=f"#{part.get('id')}"))


def _style() -> Element:
    # As it is: it is not from anybody.
    made = Element("style")
    made.text = STYLE
    return made
