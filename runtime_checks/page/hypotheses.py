"""Every hypothesis with what decided it: refuted ones as cards, the others as tables."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kvlint.drawing.words import count
from kvlint.runtime_checks.captured import spoken
from kvlint.runtime_checks.judgements import place_of
from kvlint.runtime_checks.page.compared import beside, cases, strips
from kvlint.runtime_checks.page.given import Given
from kvlint.runtime_checks.page.layouts import around_violation, captured_around
from kvlint.runtime_checks.page.markup import (
    Child,
    Element,
    clean,
    code,
    first,
    folded,
    left_out,
    make,
    rows,
    section,
    table,
)
from kvlint.runtime_checks.page.violations import calls, near
from kvlint.runtime_checks.telling import facts, headline, sites, times
from kvlint.verdicts import Outcome

if TYPE_CHECKING:
    from kvlint.hypotheses import Hypothesis, Place
    from kvlint.runtime_checks.bridge import Judged

MOST_CARDS: Final = 24
MOST_ROWS: Final = 200
MOST_PLACES: Final = 6
MOST_VIOLATIONS: Final = 4
MOST_GEOMETRIES: Final = 6
_FEW: Final = 8
_MANY: Final = "captured geometries"


def refuted(given: Given) -> Element | None:
    found, more = first(given.answered("refuted"), MOST_CARDS)
    if not found:
        return None
    told: set[int] = set()
    cards = [_card(one, number, given, told) for number, one in enumerate(found, 1)]
    links = make("ul", (_link(one, n) for n, one in enumerate(found, 1)), class_="plain index")
    return section(
        "refuted",
        "Refuted",
        links if len(found) > 2 else None,
        cards,
        left_out(more, "refuted hypothesis", "refuted hypotheses"),
    )


def confirmed(given: Given) -> Element | None:
    found, more = first(given.answered("confirmed"), MOST_ROWS)
    if not found:
        return None
    body = [(_short(one.hypothesis), _evidence(one)) for one in found]
    caption = "hypotheses that held wherever they were met"
    return section(
        "confirmed",
        "Confirmed",
        table(caption, ("hypothesis", "evidence"), body, "hypotheses"),
        left_out(more, "confirmed hypothesis", "confirmed hypotheses"),
    )


def not_exercised(given: Given) -> Element | None:
    """By reason: there may be many, and what is to say of most is the same."""
    found, more = first(given.answered("not exercised"), MOST_ROWS)
    if not found:
        return None
    reasons: dict[str, list[Judged]] = {}
    for one in found:
        reasons.setdefault(one.why, []).append(one)
    return section(
        "not-exercised",
        "Not exercised",
        (_reason(why, of) for why, of in reasons.items()),
        left_out(more, "hypothesis", "hypotheses"),
    )


def _reason(why: str, of: "Sequence[Judged]") -> list[Child]:
    body = [
        (
            make("code", one.hypothesis.formula),
            f"{clean(one.hypothesis.code, 40)} {clean(one.hypothesis.name, 80)}",
            make("code", clean(place_of(one.hypothesis), 300)),
        )
        for one in of
    ]
    number = count(len(of), "hypothesis", "hypotheses")
    listed = table(number, ("formula", "assumption", "made at"), body, "reason")
    # A long list is not what one reads first.
    return [make("h3", clean(why, 600)), folded(number, listed, open_=len(of) <= _FEW)]


def without_assumptions() -> Element:
    """How to get hypotheses."""
    return section(
        "refuted",
        "No hypotheses",
        make(
            "p",
            "What the code assumes is not known here, so no violation says which assumption it "
            "refutes. These two lines let the linter say it, and the run decide:",
        ),
        make(
            "pre",
            make(
                "code",
                make("span", "kvlint check --emit-assumptions assumptions.json PATHS"),
                make("br"),
                make("span", "kvlint report RUN --assumptions assumptions.json --html report.html"),
            ),
            tabindex="0",
        ),
    )


def _card(judged: "Judged", number: int, given: Given, told: set[int]) -> Element:
    hypothesis = judged.hypothesis
    found = cases(judged, given)
    return make(
        "article",
        make("h3", code(hypothesis.formula), make("span", f" {_first_place(hypothesis)}")),
        make("p", _nature(hypothesis), class_="nature"),
        make("p", _refuted_by(judged), class_="why"),
        beside(found) if found else None,
        strips(found),
        _layouts(judged, given),
        rows(
            ("made at", _places(hypothesis.places)),
            ("says", clean(hypothesis.message, 600)),
            ("settle it", clean(hypothesis.settle, 600)),
            ("called in", _called_in(judged)),
            ("evidence", clean(judged.why, 1000)),
            ("the linter says", _holds_today(hypothesis)),
        ),
        _observations(judged, given, told),
        _behind(judged),
        class_="card refuted",
        id=f"refuted-{number}",
    )


def _first_place(hypothesis: "Hypothesis") -> str:
    return f"at {clean(hypothesis.places[0], 200)}"


def _refuted_by(judged: "Judged") -> str:
    """In short; `Judged.why` says what was seen first."""
    parts = []
    if judged.violations:
        exact = all(seen.exact or seen.count == 1 for seen in judged.violations)
        least = "" if exact else "at least "
        parts.append(f"Refuted by {least}{count(judged.observations, 'observation')}")
    broken = sum(verdict.outcome is Outcome.BROKEN for _, verdict in judged.on)
    if broken:
        begun = "breaks on" if parts else "Refuted: it breaks on"
        parts.append(f"{begun} {broken:,} of {count(len(judged.on), 'captured geometry', _MANY)}")
    return "; ".join(parts) + "." if parts else clean(judged.why, 1000)


def _link(judged: "Judged", number: int) -> Element:
    hypothesis = judged.hypothesis
    words = f"{clean(hypothesis.code, 40)} {clean(hypothesis.formula, 120)}"
    where = clean(_first_place(hypothesis), 120)
    return make("li", make("a", words, href=f"#refuted-{number}"), f" {where}")


def _nature(hypothesis: "Hypothesis") -> list[Child]:
    kinds = " and ".join(hypothesis.lists)
    told = f"{hypothesis.status}, {hypothesis.severity}, {hypothesis.confidence} confidence"
    lists = f" · about {kinds} lists" if kinds else ""
    return [
        make("span", "refuted", class_="answer refuted"),
        " ",
        make("b", f"{clean(hypothesis.code, 40)} {clean(hypothesis.name, 80)}"),
        f" · {told}{lists}",
    ]


def _observations(judged: "Judged", given: Given, told: set[int]) -> Iterator[Child]:
    """The violations that refute it. One that refutes several is told at the first."""
    shown, more = first(judged.violations, MOST_VIOLATIONS)
    if not shown:
        return
    yield make("h4", "Observed")
    for seen in shown:
        number = given.number_of(seen)
        if number is None:
            continue
        title = f"Violation {number}: {headline(seen.record)}"
        if number in told:
            yield make("p", make("a", title, href=f"#violation-{number}"), ", as above")
            continue
        told.add(number)
        inner: list[Child] = [
            make("p", clean(seen.record.get("message"), 1000), class_="message"),
            rows(*facts(seen)),
            calls(seen.record),
            near(number, seen),
        ]
        record = seen.record
        summary = f"{title}, {times(seen)}, process {clean(record.get('pid'), 40)}"
        yield make("div", folded(summary, *inner), id=f"violation-{number}", class_="violation")
    yield left_out(more, "violation")


def _called_in(judged: "Judged") -> Child:
    """The engine's line that made the first of them."""
    for seen in judged.violations[:1]:
        for call, stack in reversed(list(sites(seen.record))):
            if stack:
                return [code(stack[-1]), f" ({clean(call, 80)})"]
    return None


def _layouts(judged: "Judged", given: Given) -> Iterator[Child]:
    """Where it was meant and where it went: as the process listed its regions, else as captured."""
    drawn = next((f for seen in judged.violations if (f := around_violation(seen, given))), None)
    yield drawn
    if drawn is None:
        yield captured_around(judged, given)


def _behind(judged: "Judged") -> Iterator[Child]:
    hypothesis = judged.hypothesis
    if judged.on:
        yield folded("on captured geometry", _verdicts(judged))
    steps: list[tuple[str, Child]] = (
        [("on the way", _places(hypothesis.trace))] if hypothesis.trace else []
    )
    if hypothesis.guards:
        steps.append(("guards", _places([guard.place for guard in hypothesis.guards])))
    if hypothesis.unresolved:
        steps.append(("not resolved", "; ".join(map(clean, hypothesis.unresolved[:MOST_PLACES]))))
    if steps:
        yield folded("how the linter came to it", rows(*steps))


def _holds_today(hypothesis: "Hypothesis") -> str:
    parts = [
        hypothesis.holds_today and f"holds today: {clean(hypothesis.holds_today)}",
        hypothesis.silenced_by and f"silenced by {clean(hypothesis.silenced_by)}",
    ]
    return "; ".join(part for part in parts if part)


def _short(hypothesis: "Hypothesis") -> list[Child]:
    places, more = first(hypothesis.places, 2)
    also = f" and {more:,} more" if more else ""
    return [
        make("code", clean(hypothesis.formula), class_="formula"),
        make(
            "span",
            f"{clean(hypothesis.code, 40)} {clean(hypothesis.name, 80)} · ",
            ", ".join(clean(place, 200) for place in places),
            also,
            class_="of",
        ),
    ]


def _evidence(judged: "Judged") -> list[Child]:
    return [
        clean(judged.why),
        folded("on captured geometry", _verdicts(judged)) if judged.on else None,
    ]


def _verdicts(judged: "Judged") -> Element:
    shown, more = first(judged.on, MOST_GEOMETRIES)
    lines = [
        make(
            "li",
            make("span", str(verdict.outcome), class_=_class(verdict.outcome)),
            f" on {clean(spoken(label), 120)}: {clean(verdict.why)}",
        )
        for label, verdict in shown
    ]
    return make("div", make("ul", lines, class_="plain"), left_out(more, "geometry", "geometries"))


def _class(outcome: Outcome) -> str:
    match outcome:
        case Outcome.BROKEN:
            return "answer refuted"
        case Outcome.HOLDS:
            return "answer confirmed"
        case _:
            return "answer"


def _places(places: "Sequence[Place]") -> Element:
    shown, more = first(places, MOST_PLACES)
    lines = [
        make(
            "li",
            code(f"{place.span.path}:{place.span.line}"),
            f" in {clean(place.definition, 200)}" if place.definition else "",
            f": {clean(place.says)}" if place.says else "",
        )
        for place in shown
    ]
    also = make("li", f"… and {more:,} more") if more else None
    return make("ul", lines, also, class_="plain")
