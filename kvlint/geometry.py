"""Where the buffers of one engine process lie, and how they are cut into slots.

A `Region` is one registered buffer, a `DescriptorTable` the numbered list that a transfer
library makes of several, a `Geometry` all named regions of one process. The JSON form is
schema 1, and frozen: fields keep name, unit and meaning, a change gets a new number.

    {"schema": 1,                        required, 1
     "engine": "sglang 0.5.21",          optional: name and version
     "process": "decode tp0",            optional: which of the engine's processes
     "regions": [                        required: in the order of the engine's own lists
       {"name": "layer 0 key", "address": 140000000000000, "length": 40960,
        "stride": 256, "transfer_length": 256, "memory_kind": "VRAM", "device": 0,
        "list": "kv", ...}]}             fields and units: `Region`

An optional field may be absent or null. Refused, each with one `GeometryError` that names
region and field: a schema that is not the integer 1; unknown, missing or repeated keys; a
float (1.0 and NaN too), a boolean or a string in place of an integer; integers below the
field's least value or above 64 bits; a region that ends beyond the 64-bit address space;
stride 0; text that is empty, longer than 200 characters or not printable; two regions with
one name. A region shorter than one transfer is accepted: it has 0 slots. A transfer longer
than the stride is accepted: neighbouring slots overlap, which is a finding, not an error.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import lru_cache
from itertools import accumulate, combinations, product
from operator import lt
from types import MappingProxyType
from typing import Final, NoReturn, Self

SCHEMA: Final = 1
MEMORY_KINDS: Final = ("VRAM", "DRAM")
LIST_KINDS: Final = ("kv", "state", "aux")

MOST_CASES: Final = 1024
MEASURED: Final[Mapping[str, str]] = MappingProxyType(
    {"slots": "slots", "item length": "stride", "region length": "length"}
    | {"transfer length": "transfer_length", "element size": "element_size"}
    | {"page size": "page_size", "memory kind": "memory_kind"}
    | {name: name for name in ("address", "device", "layer", "dtype", "role")}
)
"""Quantity -> field of `Region`. Text is numbered from 1 by first appearance in the list, so
that it can be compared for equality within the list, and for nothing else."""

_TAIL: Final = "bytes after the last slot"
_ADDRESS_SPACE: Final = 1 << 64
_LONGEST_TEXT: Final = 200
_LEAST: Final = {
    **dict.fromkeys(("address", "length", "device", "layer"), 0),
    **dict.fromkeys(("stride", "transfer_length", "element_size", "page_size"), 1),
}


class GeometryError(ValueError):
    """A geometry that cannot be: one line, naming the region and the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One registered buffer of equally spaced slots. Raises `GeometryError`.

    name             unique in its geometry
    address          bytes; of slot 0
    length           bytes; what is registered, from `address` on
    stride           bytes from the start of one slot to the next; engines call it the item
                     length
    transfer_length  bytes moved of each slot; the stride, unless slots are padded or only a
                     part of each is sent
    memory_kind      "VRAM" or "DRAM", as NIXL has it
    device           index of the device that holds it, not a rank; 0 for host memory
    list             the numbered list it belongs to: "kv", "state" or "aux"; where an engine
                     has several lists of a kind, the kind, a dot and a name: "state.swa".
                     Regions of one list are numbered in file order
    layer            the model's layer, from 0; None where it belongs to none
    role             what it holds: "key", "value", "index key", ...
    dtype            name of the element type, as the engine spells it: "float8_e4m3fn"
    element_size     bytes an element, as captured, not derived from `dtype`
    page_size        tokens a slot holds
    group            regions of one group are selected by one set of slot indices; None: the
                     list is the group
    """

    name: str
    address: int
    length: int
    stride: int
    transfer_length: int
    memory_kind: str
    device: int
    list: str
    layer: int | None = None
    role: str | None = None
    dtype: str | None = None
    element_size: int | None = None
    page_size: int | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        _check_text("a region", "name", self.name)
        where = f"region {self.name!r}"
        for part in fields(self):
            value = getattr(self, part.name)
            if value is None and part.default is None:
                continue
            if part.name in _LEAST:
                _check_integer(where, part.name, value)
            else:
                _check_text(where, part.name, value)
        if self.address + self.length > _ADDRESS_SPACE:
            _refuse(where, "length", f"{self.length} bytes end beyond the 64-bit address space")
        if self.memory_kind not in MEMORY_KINDS:
            _refuse(where, "memory_kind", _none_of(self.memory_kind, MEMORY_KINDS))
        if self.list.partition(".")[0] not in LIST_KINDS:
            _refuse(where, "list", _none_of(self.list, LIST_KINDS))

    @property
    def slots(self) -> int:
        """How many whole transfers fit: 0 when not even one does."""
        if self.length < self.transfer_length:
            return 0
        return (self.length - self.transfer_length) // self.stride + 1


@dataclass(frozen=True)
class DescriptorTable:
    """Regions flattened into one numbered list: region by region, slot by slot.

    starts[i] is the index of region i's slot 0, the last entry the length of the list; a
    region without slots starts where the next one does.
    """

    regions: tuple[Region, ...]
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = accumulate((region.slots for region in self.regions), initial=0)
        object.__setattr__(self, "starts", tuple(starts))

    def __len__(self) -> int:
        return self.starts[-1]

    def index_of(self, region: int, slot: int) -> int:
        """The index of a slot of region number `region`. Raises IndexError for no such slot."""
        if not 0 <= region < len(self.regions):
            raise IndexError(f"no region {region}: the list has {len(self.regions)} regions")
        there = self.regions[region]
        if not 0 <= slot < there.slots:
            raise IndexError(
                f"no slot {slot} in region {region} {there.name!r}: it has {there.slots} slots"
            )
        return self.starts[region] + slot

    def locate(self, index: int) -> tuple[int, int]:
        """Region number and slot of an index. Raises IndexError for an index off the list."""
        if not 0 <= index < len(self):
            raise IndexError(f"no descriptor {index}: the list has {len(self)} descriptors")
        region = bisect_right(self.starts, index) - 1
        return region, index - self.starts[region]


@dataclass(frozen=True, slots=True)
class Geometry:
    """All regions of one engine process; `engine` and `process` are labels for people.

    Raises `GeometryError`, also when two regions have one name.
    """

    regions: tuple[Region, ...]
    engine: str | None = None
    process: str | None = None
    _lists: Mapping[str, tuple[Region, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for label in ("engine", "process"):
            if getattr(self, label) is not None:
                _check_text("geometry", label, getattr(self, label))
        seen: set[str] = set()
        for region in self.regions:
            if region.name in seen:
                _refuse(f"region {region.name!r}", "name", "another region has this name")
            seen.add(region.name)
        # Once: of many lists each is asked for.
        lists: dict[str, list[Region]] = {}
        for region in self.regions:
            lists.setdefault(region.list, []).append(region)
        object.__setattr__(self, "_lists", {name: tuple(own) for name, own in lists.items()})

    @property
    def lists(self) -> tuple[str, ...]:
        """Names of the lists, in the order of their first regions."""
        return tuple(self._lists)

    def regions_of(self, list_name: str) -> tuple[Region, ...]:
        """The regions of one list, in order; none for a list that the process has not."""
        return self._lists.get(list_name, ())

    def to_json(self) -> str:
        labels = {"engine": self.engine, "process": self.process}
        form = {
            "schema": SCHEMA,
            **{key: value for key, value in labels.items() if value is not None},
            "regions": [_region_form(region) for region in self.regions],
        }
        return json.dumps(form, indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read schema 1. Raises `GeometryError` for anything else."""
        try:
            form = json.loads(text, object_pairs_hook=_without_repeats)
        except GeometryError:
            raise
        except (ValueError, RecursionError) as error:
            # json itself splits no message, but a quoted byte or digit string can be long.
            raise GeometryError(f"geometry: not readable as JSON: {str(error)[:120]}") from None
        if not isinstance(form, dict) or "schema" not in form:
            raise GeometryError("geometry: not a kvlint geometry, field 'schema' is missing")
        if type(form["schema"]) is not int or form["schema"] != SCHEMA:
            _refuse(
                "geometry", "schema", f"{_shown(form['schema'])} is not known, only {SCHEMA} is"
            )
        _check_keys("geometry", form, {"schema", "regions"}, {"engine", "process"})
        regions = form["regions"]
        if not isinstance(regions, list):
            _refuse("geometry", "regions", f"{_shown(regions)} is not a list")
        return cls(
            tuple(_read_region(number, entry) for number, entry in enumerate(regions)),
            form.get("engine"),
            form.get("process"),
        )


Column = tuple[int, ...]
Domains = tuple[tuple[str, Column], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One list of regions as columns: per quantity one number a region, and the values of
    unknown names. "region length" agrees with the others: slots, item length and transfer
    length (the item length, where nobody mentions it) determine it up to a tail of less than
    one item length. So region length // item length = slots where whole items are moved,
    while item length need not divide region length.
    """

    count: int
    columns: Mapping[str, Column]
    unknowns: Mapping[str, int]

    @classmethod
    def of(
        cls, regions: Sequence[Region], quantities: Set[str], unknowns: Mapping[str, int]
    ) -> Self:
        """Real regions; a quantity that one of them lacks, or that is not in `MEASURED`, has no
        column."""
        columns = {}
        for quantity in MEASURED.keys() & (quantities | {"slots"}):
            column = [getattr(region, MEASURED[quantity]) for region in regions]
            number = {name: n for n, name in enumerate(dict.fromkeys(column), start=1)}
            if None not in number:
                columns[quantity] = tuple(number[v] if type(v) is str else v for v in column)
        return cls(len(regions), columns, unknowns)


@lru_cache(maxsize=32)
def small_cases(count: int, quantities: Domains, unknowns: Domains) -> tuple[Case, ...]:
    """Lists of `count` regions with these quantities, smallest first.

    Each name comes with its possible values, ascending; slots without any are 1. Smallest:
    fewest slots in total, larger counts first; then the same for all other values (in the
    order: quantities by name, each region by region; tails; unknown names). Where that
    makes more than `MOST_CASES`, only those are tried in which at most d values exceed
    their least, for the largest d that fits.
    """
    given = dict(quantities)
    has_length = given.pop("region length", None)
    if has_length:
        given = {"slots": has_length, "item length": has_length} | given
    domains = {"slots": given.pop("slots", (1,))} | dict(sorted(given.items()))
    if has_length:
        domains[_TAIL] = tuple(value - 1 for value in has_length)
    if not all(domains.values()):
        return ()
    cells = [domain for domain in domains.values() for _ in range(count)]
    names, cases = [name for name, _ in unknowns], []
    for vector in sorted(
        _vectors(cells + [domain for _, domain in unknowns]), key=lambda v: _size(v, count)
    ):
        columns = {
            name: vector[place : place + count]
            for name, place in zip(domains, range(0, len(cells), count), strict=True)
        }
        if has_length:
            tails, items = columns.pop(_TAIL), columns["item length"]
            if not all(map(lt, tails, items)):
                continue
            moved = columns.get("transfer length", items)
            rows = zip(columns["slots"], items, moved, tails, strict=True)
            columns["region length"] = tuple((n - 1) * item + m + t for n, item, m, t in rows)
        cases.append(Case(count, columns, dict(zip(names, vector[len(cells) :], strict=True))))
    return tuple(cases)


def _size(vector: Column, count: int) -> tuple[int, list[int], int, list[int]]:
    slots, others = vector[:count], vector[count:]
    return sum(slots), [-n for n in slots], sum(others), [-n for n in others]


def _vectors(domains: Sequence[Column]) -> Iterator[Column]:
    """One value of each domain, its first save in at most d places; d as `small_cases` says."""
    ways = [1]
    for domain in domains:
        ways = [a + b * (len(domain) - 1) for a, b in zip([*ways, 0], [0, *ways], strict=True)]
    most = sum(total <= MOST_CASES for total in accumulate(ways)) - 1
    for places in (c for d in range(most + 1) for c in combinations(range(len(domains)), d)):
        vector = [domain[0] for domain in domains]
        for chosen in product(*(domains[place][1:] for place in places)):
            for place, value in zip(places, chosen, strict=True):
                vector[place] = value
            yield tuple(vector)


_REQUIRED: Final = frozenset(part.name for part in fields(Region) if part.default is MISSING)
_OPTIONAL: Final = frozenset(part.name for part in fields(Region)) - _REQUIRED


def _region_form(region: Region) -> dict[str, object]:
    form = {part.name: getattr(region, part.name) for part in fields(Region)}
    return {key: value for key, value in form.items() if value is not None}


def _read_region(number: int, form: object) -> Region:
    where = f"regions[{number}]"
    if not isinstance(form, dict):
        raise GeometryError(f"{where}: {_shown(form)} is not an object")
    if "name" in form:
        _check_text(where, "name", form["name"])
        where = f"region {form['name']!r}"
    _check_keys(where, form, _REQUIRED, _OPTIONAL)
    return Region(**form)


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    form = dict(pairs)
    if len(form) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise GeometryError(f"geometry: field {_shown(repeated)}: given twice in one object")
    return form


def _check_keys(
    where: str,
    form: Mapping[str, object],
    required: set[str] | frozenset[str],
    optional: set[str] | frozenset[str],
) -> None:
    known = required | optional
    for key in form:
        if key not in known:
            near = get_close_matches(key[:_LONGEST_TEXT], sorted(known), n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            raise GeometryError(f"{where}: unknown field {_shown(key)}{hint}")
    for key in sorted(required):
        if key not in form:
            raise GeometryError(f"{where}: field {key!r} is missing")


def _check_integer(where: str, key: str, value: object) -> None:
    if type(value) is not int:
        _refuse(where, key, f"{_shown(value)} is not an integer")
    if value < _LEAST[key]:
        _refuse(where, key, f"{_shown(value)} is less than {_LEAST[key]}")
    if value >= _ADDRESS_SPACE:
        _refuse(where, key, f"{_shown(value)} does not fit 64 bits")


def _check_text(where: str, key: str, value: object) -> None:
    if not isinstance(value, str):
        _refuse(where, key, f"{_shown(value)} is not text")
    if not (0 < len(value) <= _LONGEST_TEXT and value.isprintable()):
        _refuse(where, key, f"{_shown(value)} is not 1 to {_LONGEST_TEXT} printable characters")


def _none_of(value: str, known: Sequence[str]) -> str:
    return f"{_shown(value)} is none of {', '.join(known)}"


def _refuse(where: str, key: str, why: str) -> NoReturn:
    raise GeometryError(f"{where}: field {key!r}: {why}")


def _shown(value: object) -> str:
    """A foreign value on one short line, whatever it is."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if type(value) is int and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    text = ascii(value[:40] + "..." if isinstance(value, str) and len(value) > 40 else value)
    return text[:80]
