"""What belongs to no hypothesis: other violations, pages that changed, and what was not read."""

from typing import Final

from kvlint.runtime_checks.page.given import Given
from kvlint.runtime_checks.page.markup import (
    Element,
    clean,
    code,
    first,
    folded,
    left_out,
    make,
    section,
)
from kvlint.runtime_checks.page.violations import told
from kvlint.runtime_checks.stages import telling as stages

MOST_VIOLATIONS: Final = 30
MOST_CHANGES: Final = 40
MOST_UNREAD: Final = 40


def violations(given: Given) -> Element | None:
    found, more = first(given.unclaimed, MOST_VIOLATIONS)
    if not found:
        return None
    title = "Violations" if given.judged is None else "Violations of no hypothesis"
    articles = [told(number, seen) for number, seen in found]
    return section("violations", title, articles, left_out(more, "violation"))


def changes(given: Given) -> Element | None:
    found, more = first(given.story.changes.found, MOST_CHANGES)
    if not found:
        return None
    parts = []
    for change in found:
        headline, *lines = stages.tell(change)
        steps = (make("li", code(line.removeprefix("  "))) for line in lines)
        listed = make("ul", steps, class_="plain steps")
        parts.append(folded(headline, listed, open_=len(found) <= 4))
    return section("changes", "Pages that changed", parts, left_out(more, "change"))


def unread(given: Given) -> Element | None:
    found, more = first(given.story.unread, MOST_UNREAD)
    if not found:
        return None
    listed = make("ul", (make("li", clean(line)) for line in found), class_="plain")
    return section("unread", "What could not be read", listed, left_out(more, "file"))
