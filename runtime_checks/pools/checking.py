"""What a pool says of its regions against the tensors that they lie in. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from math import prod
from typing import Final

from kvlint.geometry import Region
from kvlint.runtime_checks.checks import (
    ITEM_LENGTH,
    POOL_LENGTH,
    POOL_MEMORY,
    REGION_OVERLAP,
    REGION_REGISTERED,
    SLOT_LAYOUT,
    Breach,
    Place,
)
from kvlint.runtime_checks.lists import in_words
from kvlint.runtime_checks.pools.claims import Claim, Pool
from kvlint.runtime_checks.pools.coverage import left_out
from kvlint.runtime_checks.pools.tensors import Tensor
from kvlint.runtime_checks.regions import ADDRESS_SPACE

# Element sizes of the types that caches have. An item length that is right but for the ratio of
# two of them was computed for another type.
SIZES: Final = (1, 2, 4, 8)

CONTIGUOUS: Final = ("KV404", "the tensor is contiguous and starts its allocation")

Numbered = tuple[int, Claim]


def faults(pool: Pool) -> Iterator[tuple[Claim, Breach]]:
    """All that is wrong, each with its region: region by region, then between regions.

    A region that is found wrong by itself is not asked about any more.

    pool  settled, each claim with its tensor
    """
    for members in _lists(pool.claims):
        sound: list[Numbered] = []
        for number, claim in members:
            found = _of_one(pool, number, claim)
            if found is None:
                sound.append((number, claim))
            else:
                yield claim, found
        yield from _overlapping(sound, shared=pool.shared)
        yield from _listed_twice(pool, sound)
        # Of lists that end early, something is left out for that alone.
        if len(sound) == len(members) and not pool.breaches:
            name = members[0][1].list
            yield from left_out(sound, [cache for cache in pool.caches if cache.list == name])


def _lists(claims: Iterable[Claim]) -> Iterator[list[Numbered]]:
    """The claims list by list, numbered within each."""
    by_list = sorted(claims, key=lambda claim: claim.list)
    for _, members in groupby(by_list, key=lambda claim: claim.list):
        yield list(enumerate(members))


def _of_one(pool: Pool, number: int, claim: Claim) -> Breach | None:
    tensor = claim.tensor
    if not claim.length:
        # Layers without a buffer of their own keep their place in the list.
        return None
    if tensor is None:
        return _nowhere(pool, number, claim) if pool.tensors else None
    return (
        _past_end(number, claim, tensor)
        or _item_length(number, claim, tensor)
        or _layout(number, claim, tensor)
    )


def _nowhere(pool: Pool, number: int, claim: Claim) -> Breach:
    name, near = pool.around.nearest(claim.address)
    away = max(near.address - claim.address, claim.address - near.end)
    side = "before" if claim.address < near.address else "after the end of"
    values = {"first byte": claim.address - near.address, f"bytes of {name}": near.reach()}
    where = f"it is {away} bytes {side} {name}, of {near.reach()} bytes"
    if not claim.address:
        # As of a tensor without memory. How far that is would tell where memory lies.
        values, where = {"address": 0, "bytes": claim.length}, "it has address 0"
    return Breach(
        POOL_MEMORY,
        f"{called(number, claim)} begins in no tensor of {pool.name}: {where}",
        values,
        place(number, claim, None),
    )


def _past_end(number: int, claim: Claim, tensor: Tensor) -> Breach | None:
    if claim.length < 0:
        return Breach(
            POOL_LENGTH,
            f"{called(number, claim)} has {claim.length} bytes",
            {f"bytes of region {number}": claim.length, "bytes at least": 0},
            place(number, claim, None),
        )
    if claim.end <= tensor.end:
        return None
    there = tensor.end - claim.address
    # The first slot that is not wholly in the tensor.
    slot = max(0, (there - claim.moved) // claim.item_length + 1) if claim.item_length > 0 else None
    beyond = "" if claim.end <= tensor.storage_end else ", and past its storage"
    return Breach(
        POOL_LENGTH,
        f"{called(number, claim)} has {claim.length} bytes, its tensor ends after {there}: "
        f"{_slot(number, claim, slot)} is past it{beyond}",
        {f"bytes of region {number}": claim.length, "bytes of its tensor from there": there},
        place(number, claim, slot),
    )


def _item_length(number: int, claim: Claim, tensor: Tensor) -> Breach | None:
    """A slot is so many rows of its tensor; where the adapter cannot say how many, whole ones."""
    row = tensor.strides[0] if tensor.shape else tensor.element_size
    given, rows = claim.item_length, claim.slot_rows
    if claim.moved > given:
        return Breach(
            ITEM_LENGTH,
            f"{called(number, claim)}: {claim.moved} bytes are moved of each slot, the next "
            f"begins after {given}",
            {"bytes moved of a slot": claim.moved, f"item length of region {number}": given},
            place(number, claim, None),
        )
    if row <= 0 or (given == rows * row if rows is not None else given > 0 and not given % row):
        return None
    if rows is None:
        wanted, what = max(1, round(given / row)) * row, f"no whole number of rows of {row} bytes"
    else:
        wanted = rows * row
        what = f"a slot is 1 row of {row} bytes"
        if rows != 1:
            what = f"a slot is {rows} rows of {row} bytes, {wanted} bytes"
    code, formula, guess = None, "item length = rows of a slot x bytes of a row", ""
    size = tensor.element_size
    held = size * prod(tensor.shape[1:])
    other = next((s for s in SIZES if s != size and given * size == wanted * s), None)
    if rows is not None and held < row and given == rows * held:
        code, formula = CONTIGUOUS
        guess = f": right for a contiguous tensor, whose rows would be {held} bytes apart"
    elif rows is not None and other is not None:
        code, formula = "KV201", "the dtype has this many bytes"
        sized = "1 byte" if other == 1 else f"{other} bytes"
        guess = f": right for elements of {sized}, {tensor.dtype} has {size}"
    return Breach(
        ITEM_LENGTH,
        f"{called(number, claim)} has item length {given}, {what}{guess}; slot 1 begins at byte "
        f"{wanted}, not {given}",
        {f"item length of region {number}": given, "bytes of a slot": wanted},
        place(number, claim, 1),
        code,
        formula,
    )


def _layout(number: int, claim: Claim, tensor: Tensor) -> Breach | None:
    """Rows that reach into each other make no slots, whatever their number."""
    if not tensor.shape or tensor.shape[0] < 2:
        return None
    row, reach = tensor.strides[0], tensor.reach(1)
    if reach <= row:
        return None
    return Breach(
        SLOT_LAYOUT,
        f"{called(number, claim)}: a row of its tensor reaches over {reach} bytes, the next begins "
        f"after {row} (shape {list(tensor.shape)}, strides {list(tensor.strides)} bytes): the "
        "bytes of one slot are not one run",
        {"bytes that a row reaches over": reach, "bytes from row to row": row},
        place(number, claim, None),
    )


def _overlapping(claims: Sequence[Numbered], *, shared: bool) -> Iterator[tuple[Claim, Breach]]:
    """Regions that share bytes with the one that begins before them. Regions of one address and
    length are one region that the engine lists twice, as layers that share a cache are.

    shared  whether regions of different groups may share bytes
    """
    if shared:
        told: set[int] = set()
        for group in {claim.group for _, claim in claims}:
            of_group = [one for one in claims if one[1].group in (group, None)]
            for claim, breach in _overlapping(of_group, shared=False):
                if claim.address not in told:
                    told.add(claim.address)
                    yield claim, breach
        return
    before: Numbered | None = None
    for number, claim in sorted(claims, key=lambda numbered: numbered[1].address):
        if not claim.length:
            continue
        if before is not None and claim.address < before[1].end and _slots_meet(before[1], claim):
            yield claim, _meeting(before, (number, claim))
        if before is None or claim.end > before[1].end:
            before = (number, claim)


def _listed_twice(pool: Pool, claims: Sequence[Numbered]) -> Iterator[tuple[Claim, Breach]]:
    """Regions that are another one over again, while a tensor like theirs beside it is in no
    region: layers that share a cache leave none over."""
    said = {claim.address for claim in pool.claims}
    first: dict[tuple[int, int], int] = {}
    for number, claim in claims:
        before = first.setdefault((claim.address, claim.length), number)
        if before == number or not claim.length or claim.tensor is None:
            continue
        like = [
            (name, tensor)
            for name, tensor in pool.tensors
            if (tensor.shape[1:], tensor.dtype) == (claim.tensor.shape[1:], claim.tensor.dtype)
        ]
        own = next((name for name, tensor in like if tensor == claim.tensor), "")
        left = (
            name
            for name, tensor in like
            if tensor.reach() and tensor.address not in said and _alike(name, own)
        )
        for name in islice(left, 1):
            breach = Breach(
                REGION_OVERLAP,
                f"{called(number, claim)} is {claim.list} region {before} over again, and {name} "
                f"of {pool.name} is in no region",
                {"region": number, "is region": before},
                place(number, claim, 0),
            )
            yield claim, breach


def _alike(one: str, other: str) -> bool:
    """Whether they are entries of lists of one object: "swa.k_buffer[2]" and "swa.v_buffer[3]"."""
    lists = one.endswith("]") and other.endswith("]")
    return lists and one.rpartition(".")[0] == other.rpartition(".")[0]


def _meeting(first: Numbered, second: Numbered) -> Breach:
    one, other = first[1], second[1]
    gap, shared = other.address - one.address, min(one.end, other.end) - other.address
    from_there = _slot(*first, gap // max(1, one.item_length))
    return Breach(
        REGION_OVERLAP,
        f"{called(*second)} begins {gap} bytes after {called(*first)}, of {one.length} bytes: they "
        f"share {shared}, from {from_there} on",
        {f"end of region {first[0]}": one.length, f"begin of region {second[0]}": gap},
        place(*second, 0),
    )


def _slots_meet(one: Claim, other: Claim) -> bool:
    if (one.address, one.length) == (other.address, other.length):
        return False
    if one.item_length != other.item_length:
        return True
    # Slots of one stride may lie between each other, as halves of one page do.
    shift = (other.address - one.address) % max(1, one.item_length)
    return not one.moved <= shift <= one.item_length - other.moved


def registered_in_part(
    regions: Sequence[Region], registered: Iterable[tuple[str, int, int, int]]
) -> Iterator[Breach]:
    """Regions of which some bytes are registered and some are not.

    registered  (memory kind, address, length in bytes, device) of each registration
    """
    spans = _spans(registered)
    for number, region in enumerate(regions):
        begin, end = region.address, region.address + region.length
        of_kind = spans.get((region.memory_kind, region.device), ())
        at = bisect_right(of_kind, (begin, ADDRESS_SPACE)) - 1
        reached = of_kind[at][1] if at >= 0 else 0
        more = at + 1 < len(of_kind) and of_kind[at + 1][0] < end
        if reached < end and (reached > begin or more):
            byte = max(0, reached - begin)
            slot = byte // region.stride
            where = Place("local", number, region.name, region.layer, slot, slot * region.stride)
            yield Breach(
                REGION_REGISTERED,
                f"region {region.name!r} has {region.length} bytes, byte {byte} of it is in no "
                f"registration: {in_words(where)} cannot be moved",
                {f"bytes of region {number}": region.length, "bytes registered": byte},
                where,
            )


def _spans(
    registered: Iterable[tuple[str, int, int, int]],
) -> Mapping[tuple[str, int], Sequence[tuple[int, int]]]:
    """Of each memory kind and device the stretches that are registered, ascending and apart."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for kind, address, length, device in sorted(registered, key=lambda piece: piece[1]):
        spans = found.setdefault((kind, device), [])
        begin, end = address, address + length
        if spans and begin <= spans[-1][1]:
            begin, before = spans.pop()
            end = max(end, before)
        spans.append((begin, end))
    return found


def place(number: int, claim: Claim, slot: int | None) -> Place:
    byte = None if slot is None else slot * claim.item_length
    return Place("local", number, claim.name, claim.layer, slot, byte)


def called(number: int, claim: Claim) -> str:
    return _slot(number, claim, None)


def _slot(number: int, claim: Claim, slot: int | None) -> str:
    """As in the transport's messages, with the list: pools have several."""
    words = in_words(place(number, claim, slot)).removeprefix("local region ")
    return f"{claim.list} region {words}"
