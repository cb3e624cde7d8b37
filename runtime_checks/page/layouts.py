"""Pictures of where regions lie: what a violation is about, and all that was captured."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvlint.drawing.scene import Kind, Mark
from kvlint.drawing.svg import layout
from kvlint.drawing.words import count
from kvlint.geometry import Geometry, Region
from kvlint.runtime_checks.captured import spoken
from kvlint.runtime_checks.page.compared import list_of
from kvlint.runtime_checks.page.given import Given
from kvlint.runtime_checks.page.markup import (
    Child,
    Element,
    clean,
    first,
    folded,
    left_out,
    make,
    scrolling,
    section,
    table,
)
from kvlint.runtime_checks.reading import Seen

if TYPE_CHECKING:
    from kvlint.runtime_checks.bridge import Judged

MOST_LAYOUTS: Final = 8
MOST_REGIONS: Final = 128
MOST_LABELS: Final = 6
_FARTHEST: Final = 1 << 48


def around_violation(seen: Seen, given: Given) -> Element | None:
    """The list that a violation is about, with the slot that was meant and the one that was hit;
    None where the list was not noted."""
    listed = list_of(seen.record, given)
    if listed is None or not listed.regions:
        return None
    record = seen.record
    name = listed.regions[0].list
    hit = _mark(name, record, Kind.WRONG, "taken")
    meant = record.get("meant")
    marks = [hit, _mark(name, meant, Kind.MEANT, "meant") if isinstance(meant, Mapping) else None]
    found = [mark for mark in marks if mark is not None]
    title = f"{listed.side} list {listed.number}, of {listed.owner}"
    more = f", and {count(listed.more, 'more region')}" if listed.more else ""
    caption = f"{clean(title, 120)}: regions to scale{more}{_marked(found)}"
    return _figure(Geometry(listed.regions), caption, found)


def captured_around(judged: "Judged", given: Given) -> Element | None:
    """The captured geometry that breaks a hypothesis, if one does."""
    for label, verdict in judged.on:
        broken = verdict.broken
        if broken is None or label not in given.geometries:
            continue
        regions = given.geometries[label].regions_of(broken.list)
        says = f"broken at {broken.name}"
        slot = broken.slot if broken.slot is not None and broken.slot < _FARTHEST else 0
        mark = Mark(broken.list, broken.region, slot, Kind.WRONG, says)
        caption = (
            f"{clean(spoken(label), 120)}, list {broken.list}: regions to scale{_marked([mark])}"
        )
        return _figure(Geometry(regions), caption, [mark])
    return None


def captured(given: Given) -> Element | None:
    """Each captured geometry; what several processes have alike is drawn once."""
    if not given.geometries:
        return None
    alike: dict[Geometry, list[str]] = defaultdict(list)
    for label, geometry in given.geometries.items():
        alike[_without_addresses(geometry)].append(label)
    shown, more = first(list(alike.items()), MOST_LAYOUTS)
    parts = [part for geometry, labels in shown for part in _layout(given, geometry, labels)]
    return section("layouts", "Layouts", *parts, left_out(more, "layout"))


def _layout(given: Given, geometry: Geometry, labels: list[str]) -> Iterator[Child]:
    several, more = first(labels, MOST_LABELS)
    also = f" and {more:,} more" if more else ""
    names = ", ".join(clean(spoken(label), 120) for label in several) + also
    engine = f" · {clean(geometry.engine, 120)}" if geometry.engine else ""
    yield make("h3", names)
    yield make("p", f"{count(len(geometry.regions), 'region')}{engine}", class_="lead")
    yield scrolling(layout(given.geometries[labels[0]]), f"layout of {names}")
    yield folded("the regions as a table", *_regions(given.geometries[labels[0]].regions))


def _regions(regions: Iterable[Region]) -> Iterator[Child]:
    shown, more = first(list(regions), MOST_REGIONS)
    yield table(
        "regions in the order of their lists",
        ("region", "list", "layer", "role", "slots", "item length", "moved", "dtype", "memory"),
        [
            (
                region.name,
                region.list,
                "" if region.layer is None else region.layer,
                region.role or "",
                f"{region.slots:,}",
                f"{region.stride:,}",
                f"{region.transfer_length:,}",
                region.dtype or "",
                f"{region.memory_kind} {region.device}",
            )
            for region in shown
        ],
        "numbers",
    )
    yield left_out(more, "region")


def _figure(geometry: Geometry, caption: str, marks: list[Mark]) -> Element:
    drawn = scrolling(layout(geometry, marks=marks), caption)
    return make("figure", make("figcaption", caption), drawn)


def _mark(name: str, place: Mapping[str, object], kind: Kind, says: str) -> Mark | None:
    region, slot = place.get("region"), place.get("slot")
    if type(region) is not int or type(slot) is not int or not 0 <= slot < _FARTHEST:
        return None
    return Mark(name, region, slot, kind, f"{says}: region {region} slot {slot}")


def _marked(marks: Iterable[Mark]) -> str:
    told = "; ".join(mark.says for mark in marks)
    return f"; {told}" if told else ""


def _without_addresses(geometry: Geometry) -> Geometry:
    """What is alike in two processes, whose memory lies elsewhere and whose lists have names of
    their own."""
    names = {name: n for n, name in enumerate(dict.fromkeys(r.list for r in geometry.regions))}
    regions = tuple(
        replace(r, address=0, list=f"{r.list.partition('.')[0]}.{names[r.list]}")
        for r in geometry.regions
    )
    return Geometry(regions, geometry.engine)
