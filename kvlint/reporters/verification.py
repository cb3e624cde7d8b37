"""What `kvlint verify` found: a row a hypothesis, a column a geometry; as text and as JSON."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any, Final

from kvlint.findings import Status, counted
from kvlint.geometry import Geometry
from kvlint.hypotheses import Hypothesis
from kvlint.reporters.paint import Paint, printable
from kvlint.verdicts import Outcome, Verdict

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CELLS: Final = {
    Outcome.BROKEN: ("broken", "bold red"),
    Outcome.HOLDS: ("holds", "green"),
    Outcome.NOT_EXERCISED: ("-", "dim"),
}
_ORDER: Final = tuple(_CELLS)
_ASSUMES: Final = "assumes, for every region i"


# Code, what breaks on each geometry, what settles it, what is not known.
_Break = tuple[str, tuple[str, ...], str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Verification:
    """verdicts  of each of `hypotheses`, in order, one for each of `geometries`
    hidden    hypotheses that were not sure enough to be decided
    """

    geometries: Sequence[tuple[str, Geometry]]
    hypotheses: Sequence[Hypothesis]
    verdicts: Sequence[Sequence[Verdict]]
    hidden: int = 0

    @property
    def broken(self) -> bool:
        return any(v.outcome is Outcome.BROKEN for row in self.verdicts for v in row)


def render(found: Verification, paint: Paint) -> Iterator[str]:
    yield from _legend(found)
    if found.hypotheses:
        yield ""
        yield from _table(found, paint)
    yield from _breaks(found, paint)
    yield from _settled(found)
    yield from _reasons(found)
    yield ""
    yield _last_line(found)


def render_json(found: Verification) -> Iterator[str]:
    rows = [
        {
            "id": hypothesis.id,
            "code": hypothesis.code,
            "name": hypothesis.name,
            "path": hypothesis.places[0].span.path,
            "line": hypothesis.places[0].span.line,
            "definition": hypothesis.places[0].definition,
            "formula": hypothesis.formula,
            "status": hypothesis.status,
            "confidence": hypothesis.confidence,
            "verdicts": [_verdict(verdict) for verdict in row],
        }
        for hypothesis, row in zip(found.hypotheses, found.verdicts, strict=True)
    ]
    geometries = [
        {"file": name, "engine": geometry.engine, "process": geometry.process}
        for name, geometry in found.geometries
    ]
    yield json.dumps({"geometries": geometries, "assumptions": rows}, indent=2)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    broken = None if verdict.broken is None else asdict(verdict.broken)
    return {"outcome": verdict.outcome, "why": verdict.why, "broken": broken}


def _legend(found: Verification) -> Iterator[str]:
    for letter, (name, geometry) in zip(_letters(found), found.geometries, strict=True):
        labels = [label for label in (geometry.engine, geometry.process) if label]
        lists = Counter(region.list for region in geometry.regions)
        sizes = [f"{counted(number, 'region')} in {name}" for name, number in lists.items()]
        yield printable(f"{letter}  {name}: {', '.join((*labels, *sizes)) or 'no region'}")


def _table(found: Verification, paint: Paint) -> Iterator[str]:
    """What breaks first, then what holds, then what was not exercised."""
    below = _common_folder(found.hypotheses)
    rows = [
        (h.code, str(h.places[0]).removeprefix(below), f"{h.formula}{_less_sure(h)}", row)
        for h, row in sorted(
            zip(found.hypotheses, found.verdicts, strict=True),
            key=lambda one: min(_ORDER.index(verdict.outcome) for verdict in one[1]),
        )
    ]
    place = max(len(below), *(len(row[1]) for row in rows))
    formula = max(len(_ASSUMES), *(len(row[2]) for row in rows))
    head = "".join(f"  {letter:<6}" for letter in _letters(found)).rstrip()
    yield f"{'':<5}  {printable(below):<{place}}  {_ASSUMES:<{formula}}{head}"
    for code, at, text, row in rows:
        cells = [_CELLS[verdict.outcome] for verdict in row]
        shown = "".join(f"  {paint(f'{word:<6}', style)}" for word, style in cells)
        yield f"{code:<5}  {printable(at):<{place}}  {printable(text):<{formula}}{shown}".rstrip()


def _common_folder(hypotheses: Sequence[Hypothesis]) -> str:
    """The folder that all places lie in, with a slash, or ""."""
    folders = {hypothesis.places[0].span.path.rpartition("/")[0] for hypothesis in hypotheses}
    common = [parts[0] for parts in takewhile(_alike, zip(*(f.split("/") for f in folders)))]  # noqa: B905
    return "".join(f"{part}/" for part in common if part)


def _alike(parts: Sequence[str]) -> bool:
    return len(set(parts)) == 1


def _less_sure(hypothesis: Hypothesis) -> str:
    return " (conditional)" if hypothesis.status is Status.CONDITIONAL else ""


def _breaks(found: Verification, paint: Paint) -> Iterator[str]:
    """Those that break in the same way are told together."""
    alike: dict[_Break, list[Hypothesis]] = defaultdict(list)
    for hypothesis, row in zip(found.hypotheses, found.verdicts, strict=True):
        if any(verdict.outcome is Outcome.BROKEN for verdict in row):
            whys = tuple(v.why if v.outcome is Outcome.BROKEN else "" for v in row)
            alike[hypothesis.code, whys, hypothesis.settle, hypothesis.unresolved].append(
                hypothesis
            )
    for (_, whys, settle, unresolved), several in alike.items():
        yield ""
        for hypothesis in several:
            place = hypothesis.places[0]
            where = f" in {place.definition}" if place.definition else ""
            head = f"{paint(hypothesis.code, 'bold red')} {paint(printable(str(place)), 'bold')}"
            yield f"{head}{printable(where)}: {printable(' '.join(hypothesis.message.split()))}"
        for why in dict.fromkeys(filter(None, whys)):
            on = " ".join(
                letter for letter, w in zip(_letters(found), whys, strict=True) if w == why
            )
            yield f"  {on}  {printable(why)}"
        for unknown in unresolved:
            yield f"  unless: {printable(unknown)}"
        yield f"  settle it: {printable(settle)}"


def _settled(found: Verification) -> Iterator[str]:
    """What holds because a guard sees to it, by guard; places as in the table."""
    below = _common_folder(found.hypotheses)
    places: dict[str, list[str]] = defaultdict(list)
    for hypothesis, row in zip(found.hypotheses, found.verdicts, strict=True):
        if hypothesis.guard and any(verdict.outcome is Outcome.HOLDS for verdict in row):
            guard = str(hypothesis.guard.place).removeprefix(below)
            places[guard].append(str(hypothesis.places[0]).removeprefix(below))
    if places:
        yield ""
        yield "settled by a guard"
        for guard, several in places.items():
            yield printable(f"  {', '.join(dict.fromkeys(several))} by {guard}")


def _reasons(found: Verification) -> Iterator[str]:
    """How many assumptions, and where not on all geometries, on which."""
    reasons: Counter[tuple[str, str]] = Counter()
    for row in found.verdicts:
        letters: dict[str, list[str]] = defaultdict(list)
        for letter, verdict in zip(_letters(found), row, strict=True):
            if verdict.outcome is Outcome.NOT_EXERCISED:
                letters[verdict.why].append(letter)
        for why, some in letters.items():
            reasons["" if len(some) == len(row) else f"{' '.join(some)}  ", why] += 1
    if reasons:
        yield ""
        yield "not exercised"
        width = len(str(max(reasons.values())))
        for (on, why), number in reasons.most_common():
            yield f"  {number:>{width}}  {on}{printable(why)}"


def _last_line(found: Verification) -> str:
    if not found.hypotheses:
        text = "Nothing to decide"
    else:
        text = "; ".join(
            f"{letter}: {_counts(row[number].outcome for row in found.verdicts)}"
            for number, letter in enumerate(_letters(found))
        )
    if found.hidden:
        text += f"; {found.hidden} less sure not decided (--min-confidence low)"
    return text


def _counts(outcomes: Iterator[Outcome]) -> str:
    counts = Counter(outcomes)
    words = {
        Outcome.BROKEN: "broken",
        Outcome.HOLDS: "hold" if counts[Outcome.HOLDS] != 1 else "holds",
        Outcome.NOT_EXERCISED: "not exercised",
    }
    return ", ".join(f"{counts[outcome]} {word}" for outcome, word in words.items())


def _letters(found: Verification) -> list[str]:
    """A, B, ... Z, A1, B1, ..."""
    many = range(len(found.geometries))
    return [f"{_LETTERS[n % 26]}{n // 26 or ''}" for n in many]
