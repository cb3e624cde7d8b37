"""The regions of a geometry as a table for people, and as data for programs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from kvlint.drawing.remarks import remarks
from kvlint.drawing.scene import Band, Lane, scene
from kvlint.drawing.words import columns, count, fit, number, size, spans
from kvlint.geometry import DescriptorTable, Geometry

Paint = Callable[[str, str], str]

_NAME: Final = 48
# Heading, whether it is a number, and what stands below it.
_COLUMNS: Final[tuple[tuple[str, bool, Callable[[Lane], str]], ...]] = (
    ("region", False, lambda lane: spans(lane.numbers)),
    ("starts at", True, lambda lane: several(lane.starts)),
    ("layer", False, lambda lane: spans(lane.layers)),
    ("role", False, lambda lane: fit(lane.region.role or "", _NAME)),
    ("name", False, lambda lane: fit(_name(lane), _NAME)),
    ("group", False, lambda lane: fit(lane.region.group or "", _NAME)),
    ("dtype", False, lambda lane: _dtype(lane)),
    ("slots", True, lambda lane: number(lane.region.slots)),
    ("item length", True, lambda lane: number(lane.region.stride)),
    ("transfer", True, lambda lane: number(lane.region.transfer_length)),
    ("tokens/slot", True, lambda lane: number(lane.region.page_size or 0)),
    ("bytes", True, lambda lane: number(lane.region.length)),
    ("tail", True, lambda lane: number(lane.tail)),
    ("memory", False, lambda lane: f"{lane.region.memory_kind} {lane.region.device}"),
)
_LEFT_OUT: Final = {"tokens/slot": "0"}  # columns of nothing but this


def table(geometry: Geometry, name: str, paint: Paint, *, fold: bool = True) -> Iterator[str]:
    """All lists, and at the end what is remarkable. `name`: where the geometry is from."""
    drawn = scene(geometry, unfolded=0 if fold else len(geometry.regions), most_rows=1 << 40)
    length = size(sum(region.length for region in geometry.regions))
    labels = "".join(f", {label}" for label in (geometry.engine, geometry.process) if label)
    regions = count(len(geometry.regions), "region")
    yield f"{paint(f'{name}{labels}', 'bold')}: {regions}, {length}"
    for band in drawn.bands:
        yield ""
        yield from _band(band, paint)
    found = list(remarks(geometry))
    if found:
        yield ""
        yield paint("remarkable", "bold")
        yield from (f"  {line}" for line in found)


def _band(band: Band, paint: Paint) -> Iterator[str]:
    (regions, descriptors), *_ = band.sizes
    sizes = f"{count(regions, 'region')}, {count(descriptors, 'descriptor')}"
    yield f"{paint(f'list {band.list}', 'bold')}: {sizes}"
    lanes = [row.first for row in band.rows]
    cells = [[cell(lane) for _, _, cell in _COLUMNS] for lane in lanes]
    shown = [
        at
        for at, (heading, _, _) in enumerate(_COLUMNS)
        if any(row[at] != _LEFT_OUT.get(heading, "") for row in cells)
    ]
    widths = {at: max(columns(row[at]) for row in cells) for at in shown}
    for at in shown:
        widths[at] = max(widths[at], len(_COLUMNS[at][0]))
    yield "  " + "  ".join(_cell(_COLUMNS[at][0], at, widths) for at in shown).rstrip()
    for row in cells:
        yield "  " + "  ".join(_cell(row[at], at, widths) for at in shown).rstrip()


def _cell(text: str, at: int, widths: dict[int, int]) -> str:
    room = " " * (widths[at] - columns(text))
    return room + text if _COLUMNS[at][1] else text + room


def several(numbers: Sequence[int]) -> str:
    """Ascending: all of two, the first and the last of more."""
    first, last = number(numbers[0]), number(numbers[-1])
    if len(numbers) == 1:
        return first
    return f"{first}{', ' if len(numbers) == 2 else ' ... '}{last}"


def _name(lane: Lane) -> str:
    """Nothing where layer and role say it all."""
    first = lane.region
    told = first.layer is not None and first.role is not None
    if told and (len(lane.members) > 1 or first.name == f"layer {first.layer} {first.role}"):
        return ""
    return lane.label


def _dtype(lane: Lane) -> str:
    region = lane.region
    if region.element_size is None:
        return region.dtype or ""
    return f"{region.dtype or 'elements'} ({region.element_size} B)"


def data(geometry: Geometry, name: str) -> dict[str, Any]:
    """What the table says, each region by itself, addresses left out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in scene(geometry, unfolded=len(geometry.regions), most_rows=1 << 40).rows:
        lane = row.first
        form = {k: v for k, v in asdict(lane.region).items() if k not in ("address", "list")}
        form |= {"number": lane.numbers[0], "starts_at": lane.starts[0]}
        form |= {"slots": lane.region.slots, "tail": lane.tail, "overlap": lane.overlap}
        found.setdefault(lane.region.list, []).append(form)
    lists = [
        {"list": of, "descriptors": len(DescriptorTable(geometry.regions_of(of))), "regions": rows}
        for of, rows in found.items()
    ]
    labels = {"file": name, "engine": geometry.engine, "process": geometry.process}
    return {**labels, "lists": lists, "remarkable": list(remarks(geometry))}
