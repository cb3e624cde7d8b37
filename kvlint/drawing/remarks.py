"""What is worth a second look in a geometry: each remark one line."""

from collections.abc import Iterator, Sequence
from typing import Final

from kvlint.drawing.comparing import wrong_from
from kvlint.drawing.overlaps import shared
from kvlint.drawing.words import count, fit, number, spans
from kvlint.geometry import DescriptorTable, Geometry, Region

# Of one kind; more are counted.
_MOST: Final = 4
_NAME: Final = 60


def remarks(geometry: Geometry) -> Iterator[str]:
    for name in dict.fromkeys(region.list for region in geometry.regions):
        regions = geometry.regions_of(name)
        yield from _slots(name, regions)
        for field, word in (("stride", "item length"), ("page_size", "tokens a slot")):
            yield from _differing(name, regions, field, word)
        yield from _within(name, regions)
    yield from _few(_overlaps(geometry))


def _slots(name: str, regions: Sequence[Region]) -> Iterator[str]:
    """Where one stride for all regions goes wrong."""
    yield from _differing(name, regions, "slots", "slot count")
    if (at := wrong_from(regions)) is not None:
        first, start = regions[0].slots, DescriptorTable(tuple(regions)).starts[at]
        yield (
            f"list {name}: index i * {number(first)} + p, with the slots of region 0, is wrong "
            f"from region {at} on, which starts at {number(start)}, not {number(at * first)}"
        )


def _differing(name: str, regions: Sequence[Region], field: str, word: str) -> Iterator[str]:
    found: dict[object, list[int]] = {}
    for at, region in enumerate(regions):
        if (value := getattr(region, field)) is not None:
            found.setdefault(value, []).append(at)
    if len(found) > 1:
        parts = [f"{value:,} (region {spans(at)})" for value, at in found.items()]
        shown = ", ".join(parts[:_MOST])
        more = f" and {len(parts) - _MOST} more" if len(parts) > _MOST else ""
        yield f"list {name}: regions differ in {word}: {shown}{more}"


def _within(name: str, regions: Sequence[Region]) -> Iterator[str]:
    """Slots that overlap or are padded, regions without any."""
    longer: dict[int, list[int]] = {}
    shorter: dict[int, list[int]] = {}
    empty = []
    for at, region in enumerate(regions):
        over = region.transfer_length - region.stride
        if over > 0:
            longer.setdefault(over, []).append(at)
        elif over < 0:
            shorter.setdefault(-over, []).append(at)
        if not region.slots:
            empty.append(at)
    for over, which in list(longer.items())[:_MOST]:
        yield (
            f"list {name}, region {spans(which)}: transfers are longer than the item length: "
            f"neighbouring slots overlap by {count(over, 'byte')}"
        )
    for gap, which in list(shorter.items())[:_MOST]:
        yield f"list {name}, region {spans(which)}: {count(gap, 'byte')} of each slot are not moved"
    if empty:
        yield f"list {name}, region {spans(empty)}: no slot, shorter than one transfer"


def _overlaps(geometry: Geometry) -> Iterator[str]:
    for each in shared(geometry):
        both = " and ".join(
            f"{at.region.list} region {at.number} {fit(at.region.name, _NAME)!r}"
            for at in (each.one, each.two)
        )
        yield f"{both} have {count(each.bytes, 'byte')} in common"


def _few(lines: Iterator[str]) -> Iterator[str]:
    found = list(lines)
    yield from found[:_MOST]
    if len(found) > _MOST:
        yield f"{number(len(found) - _MOST)} more have bytes in common"
