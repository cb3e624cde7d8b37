"""The geometry that the linter found in thought beside those that were met: where each breaks the
assumption, and the values of both sides."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from kvlint.assumptions import Relation, Starts, refute
from kvlint.runtime_checks.captured import spoken as spoken_label
from kvlint.runtime_checks.listed import Listed
from kvlint.runtime_checks.page.given import Given
from kvlint.runtime_checks.page.markup import (
    Child,
    Element,
    clean,
    folded,
    make,
    scrolling,
    table,
)
from kvlint.runtime_checks.page.strip import Pointed, spoken, strip
from kvlint.runtime_checks.reading import Seen
from kvlint.runtime_checks.recorded import Record
from kvlint.verdicts import Broken, Outcome

if TYPE_CHECKING:
    from kvlint.hypotheses import Hypothesis
    from kvlint.runtime_checks.bridge import Judged

MOST_SEEN: Final = 2
MOST_CAPTURED: Final = 2
MOST_RUNS: Final = 12
FEW: Final = 6


@dataclass(frozen=True, slots=True)
class Case:
    """One list that breaks the assumption.

    sides    name and value of either side
    meant, taken  indices, where the assumption is about those
    """

    title: str
    slots: Sequence[int]
    region: str
    sides: Sequence[tuple[str, object]]
    so: str
    meant: int | None = None
    taken: int | None = None


def cases(judged: "Judged", given: Given) -> list[Case]:
    """The linter's first, where it has one."""
    found = list(_thought_of(judged.hypothesis))
    found += [_seen(seen, given) for seen in judged.violations[:MOST_SEEN]]
    return found + list(_captured(judged, given))[:MOST_CAPTURED]


def beside(found: Sequence[Case]) -> Element:
    """A table: a column for each."""
    sides = max((len(case.sides) for case in found), default=0)
    body: list[list[Child]] = [
        ["slots of the list", *(_slots(case.slots) for case in found)],
        ["breaks at region", *(case.region for case in found)],
        *(
            [name, *(_side(case, number) for case in found)]
            for number, name in enumerate(("one side", "the other side", "and")[:sides])
        ),
        ["so", *(case.so for case in found)],
    ]
    heads = ["", *(case.title for case in found)]
    return table("the smallest list that breaks it, and those that were met", heads, body, "beside")


def strips(found: Sequence[Case]) -> Iterator[Child]:
    """The numbered list of each that is about indices: the linter's, one that was met, and the
    others behind a fold."""
    drawn = [figure for case in found if (figure := _strip(case)) is not None]
    yield drawn[:2]
    if drawn[2:]:
        yield folded("the other lists by index", drawn[2:])


def _strip(case: Case) -> Element | None:
    pointed = [
        Pointed(index, word == "meant", f"{word}: index {index:,}, {spoken(case.slots, index)}")
        for word, index in (("meant", case.meant), ("taken", case.taken))
        if index is not None and index >= 0 and case.slots
    ]
    drawn = strip(case.slots, pointed, f"{case.title}: the list by index")
    if drawn is None:
        return None
    title = f"{case.title}: slots of the list, numbered by index"
    return make("figure", make("figcaption", title), scrolling(drawn, title))


def list_of(record: Record, given: Given) -> Listed | None:
    """The descriptor list that a violation is about, as its process has noted it."""
    process = record.get("run"), record.get("pid")
    return next(
        (
            one
            for one in given.story.lists
            if one.number == record.get("list") and one.process == process
        ),
        None,
    )


def _thought_of(hypothesis: "Hypothesis") -> Iterator[Case]:
    relation = hypothesis.relation
    guards = [guard.relation for guard in hypothesis.guards if guard.relation is not None]
    found, title = refute(relation, guards), "smallest that breaks it"
    if found is None:
        found, title = refute(relation), "smallest that breaks it, without its guards"
    if found is None:
        return
    indexed = _indexed(relation)
    yield Case(
        title,
        found.slots,
        str(found.region),
        ((str(relation.left), found.left), (str(relation.right), found.right)),
        f"index {found.right} is taken for its slot 0, which is {found.left}"
        if indexed
        else str(found),
        found.left if indexed else None,
        found.right if indexed else None,
    )


def _indexed(relation: Relation) -> bool:
    """Whether the left side is where a region starts, and the right what is taken for it."""
    return isinstance(relation.left, Starts) and relation.operator == "="


def _seen(seen: Seen, given: Given) -> Case:
    record = seen.record
    values = record.get("values")
    listed = list_of(record, given)
    meant = record.get("meant")
    return Case(
        f"this run, {record.get('side') or 'this'} side",
        [region.slots for region in listed.regions] if listed else (),
        _region(record),
        [(str(name), value) for name, value in list(values.items())[:3]]
        if isinstance(values, Mapping)
        else (),
        clean(record.get("message"), 600),
        _integer(meant.get("index")) if isinstance(meant, Mapping) else None,
        _integer(record.get("index")) if isinstance(meant, Mapping) else None,
    )


def _captured(judged: "Judged", given: Given) -> Iterator[Case]:
    relation = judged.hypothesis.relation
    indexed = _indexed(relation)
    alike: dict[tuple[Broken, tuple[int, ...]], list[str]] = {}  # whatever the lists are called
    for label, verdict in judged.on:
        broken = verdict.broken
        if verdict.outcome is Outcome.BROKEN and broken is not None:
            geometry = given.geometries.get(label)
            regions = geometry.regions_of(broken.list) if geometry else ()
            slots = tuple(region.slots for region in regions)
            alike.setdefault((replace(broken, list=""), slots), []).append(label)
    for (broken, slots), labels in alike.items():
        one, several = spoken_label(labels[0]), f"{len(labels)} geometries"
        yield Case(
            f"captured: {clean(one if len(labels) == 1 else several, 80)}",
            slots,
            f"{broken.region} {broken.name!r}",
            ((str(relation.left), broken.left), (str(relation.right), broken.right)),
            broken.by,
            broken.left if indexed else None,
            broken.right if indexed else None,
        )


def _region(record: Record) -> str:
    name = record.get("region_name")
    return f"{record.get('region', '')}" + (f" {clean(name, 80)!r}" if name else "")


def _side(case: Case, number: int) -> Child:
    if number >= len(case.sides):
        return ""
    name, value = case.sides[number]
    return [make("strong", clean(value, 60)), " ", make("span", clean(name, 120), class_="of")]


def _slots(slots: Sequence[int]) -> str:
    """`3 × 164, 3 × 161, 3 × 288`; as they are where they are few."""
    if not slots:
        return "not recorded"
    runs = [(count, len(list(of))) for count, of in groupby(slots)]
    if len(slots) <= FEW:
        runs = [(count, 1) for count in slots]
    told = [f"{times} × {count:,}" if times > 1 else f"{count:,}" for count, times in runs]
    more = f", … ({len(slots)} regions)" if len(told) > MOST_RUNS else ""
    return ", ".join(told[:MOST_RUNS]) + more


def _integer(value: object) -> int | None:
    return value if type(value) is int else None
