"""What differs between two geometries, for people and for programs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final, TypeVar

from kvlint.drawing.comparing import Change, Changed, Difference, Shift
from kvlint.drawing.pairing import Numbered, Pair
from kvlint.drawing.scene import label
from kvlint.drawing.tables import Paint
from kvlint.drawing.words import count, fit, number, spans
from kvlint.geometry import Geometry

_WORDS: Final = {
    "stride": ("item length", "bytes"),
    "item and transfer length": ("item and transfer length", "bytes"),
    "transfer_length": ("transfer length", "bytes"),
    "length": ("length", "bytes"),
    "slots": ("slots", ""),
    "element_size": ("element size", "bytes"),
    "page_size": ("page size", "tokens"),
    "memory_kind": ("memory kind", ""),
    "overlap": ("in common with a region that begins before it", "bytes"),
}
# In the order of what follows from what.
_ORDER: Final = (
    *("name", "list", "group", "layer", "role", "dtype", "element_size", "page_size", "stride"),
    *("transfer_length", "slots", "length", "overlap", "memory_kind", "device"),
)
T = TypeVar("T")

_NAME: Final = 60
_MOST_SHIFTS: Final = 6
_MOST: Final = 40


def lines(found: Difference, names: Sequence[str], paint: Paint) -> Iterator[str]:
    """`names`: of both sides, with their labels."""
    for letter, name in zip("AB", names, strict=True):
        yield f"{paint(letter, 'bold')}  {name}"
    changed = _by_list(found.changed, lambda one: one.pairs[0].list)
    only_of = [_by_list(only, lambda at: at.region.list) for only in found.only]
    moved = _by_list(found.moved, lambda pair: pair.list)
    shifts = _by_list(found.shifts, lambda shift: shift.list)
    strides = _by_list(found.strides, lambda one: one.list)
    lists = _lists(found)
    for name in lists:
        yield ""
        theirs = found.called.get(name)
        yield paint(f"list {name}{f', {theirs} in B' if theirs else ''}", "bold")
        yield from _few([f"{_who(one)}: {_changes(one)}" for one in changed.get(name, ())])
        for letter, only in zip("AB", only_of, strict=True):
            yield from _few(list(_only(letter, only.get(name, []))))
        yield from _few([_moved(pair) for pair in moved.get(name, ())])
        yield from _shifts(shifts.get(name, []))
        for one in strides.get(name, ()):
            words = f"{_right('A', one.before)}, {_right('B', one.after)}"
            yield f"  index i * S0 + p, with the slots of region 0: {words}"
    told = set(lists)
    for ours, theirs in found.called.items():
        if ours not in told:
            yield f"list {ours} is called {theirs} in B"
    if found.found:
        yield ""
    yield f"{count(found.same, 'region')} the same" if found.found else "no difference"


def _by_list(found: Iterable[T], list_of: Callable[[T], str]) -> dict[str, list[T]]:
    grouped: dict[str, list[T]] = defaultdict(list)
    for one in found:
        grouped[list_of(one)].append(one)
    return grouped


def _lists(found: Difference) -> list[str]:
    names = [changed.pairs[0].list for changed in found.changed]
    names += [at.region.list for side in found.only for at in side]
    names += [p.list for p in found.moved] + [shift.list for shift in found.shifts]
    names += [one.list for one in found.strides]
    return list(dict.fromkeys(names))


def _few(told: Sequence[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in told[:_MOST])
    if len(told) > _MOST:
        yield f"  ... {number(len(told) - _MOST)} more like these: --output-format json has all"


def _changes(changed: Changed) -> str:
    return ", ".join(map(_change, _told(changed.changes)))


def _moved(p: Pair) -> str:
    one, two = (side for side in p.sides if side is not None)
    name = fit(one.region.name, _NAME)
    return f"order differs: {name!r} is region {one.number} in A, {two.number} in B"


def _who(changed: Changed) -> str:
    return _regions([p.first for p in changed.pairs])


def _regions(those: Sequence[Numbered]) -> str:
    word = "region" if len(those) == 1 else "regions"
    what = fit(label([at.region for at in those]), _NAME)
    return f"{word} {spans([at.number for at in those])} ({what})"


def _told(changes: Sequence[Change]) -> list[Change]:
    """Causes first, and once what is moved of each slot where it is all of it."""
    found = sorted(changes, key=lambda change: _ORDER.index(change.field))
    moved = {change.field: (change.before, change.after) for change in found}
    if "stride" in moved and moved["stride"] == moved.get("transfer_length"):
        both = Change("item and transfer length", *moved["stride"])
        found = [c if c.field != "stride" else both for c in found if c.field != "transfer_length"]
    return found


def _change(change: Change) -> str:
    word, unit = _WORDS.get(change.field, (change.field, ""))
    unit = f" {unit}" if unit else ""
    return f"{word} {_value(change.before)} -> {_value(change.after)}{unit}"


def _value(value: object) -> str:
    if value is None:
        return "none"
    return number(value) if isinstance(value, int) else fit(str(value), _NAME)


def _only(letter: str, those: Sequence[Numbered]) -> Iterator[str]:
    def shape(at: Numbered) -> tuple[int, int]:
        return at.region.slots, at.region.stride

    for (slots, stride), some in groupby(those, key=shape):
        yield (
            f"only in {letter}: {_regions(list(some))}: "
            f"{count(slots, 'slot')} of {count(stride, 'byte')}"
        )


def _shifts(shifts: Sequence[Shift]) -> Iterator[str]:
    told = [_shift(shift) for shift in shifts]
    if len(told) > _MOST_SHIFTS:
        half = _MOST_SHIFTS // 2
        gone = f"... {count(len(told) - 2 * half, 'region')} more"
        told = [*told[:half], gone, *told[-half:]]
    yield from (f"  {line}" for line in told)


def _shift(shift: Shift) -> str:
    if shift.region is None:
        where = "descriptors in all"
    else:
        one, two = shift.region
        where = f"descriptors before region {one}" + ("" if one == two else f" ({two} in B)")
    by = shift.after - shift.before
    return f"{where}: {number(shift.before)} -> {number(shift.after)} ({by:+,})"


def _right(letter: str, wrong_from: int | None) -> str:
    if wrong_from is None:
        return f"right in {letter}"
    return f"wrong in {letter} from region {wrong_from} on"


def data(found: Difference, names: Sequence[str], sides: Sequence[Geometry]) -> dict[str, Any]:
    """The same for programs; each region by itself."""
    return {
        "files": [
            {"file": name, "engine": side.engine, "process": side.process}
            for name, side in zip(names, sides, strict=True)
        ],
        "same": not found.found,
        "changed": [
            {
                "list": p.list,
                "regions": [None if at is None else at.number for at in p.sides],
                "name": p.first.region.name,
                "changes": [asdict(change) for change in changed.changes],
            }
            for changed in found.changed
            for p in changed.pairs
        ],
        "only": [
            [{"list": at.region.list, "region": at.number, "name": at.region.name} for at in side]
            for side in found.only
        ],
        "moved": [
            {
                "list": p.list,
                "regions": [None if at is None else at.number for at in p.sides],
                "name": p.first.region.name,
            }
            for p in found.moved
        ],
        "descriptors": [asdict(shift) for shift in found.shifts],
        "one_stride_wrong_from": [asdict(one) for one in found.strides],
        "unchanged": found.same,
        "called_otherwise_in_the_second": dict(found.called),
    }
