"""What a transfer is to move, against the regions that it moves: no byte of a slot left out. Pure.

Both sides of a transfer are made by the same code, so regions that are too short pass every check
of lengths: what they leave out stays what the memory held before.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from kvlint.runtime_checks.checks import SLOT_COVERAGE, Breach, Place
from kvlint.runtime_checks.lists import in_words
from kvlint.runtime_checks.pools.claims import Cache, Claim

MOST_RUNS: Final = 4096

Span = tuple[int, int]
"""Address of the first byte, and of the one after the last."""


def runs(cache: Cache) -> list[Span]:
    """Runs of bytes that make up the cache's entry 0, ascending; none where its rows reach into
    each other, or where they are too many to tell."""
    tensor, size = cache.tensor, cache.tensor.element_size
    inner = sorted(
        (step, n)
        for at, (step, n) in enumerate(zip(tensor.strides, tensor.shape, strict=True))
        if at != cache.dimension and n != 1
    )
    outer: list[tuple[int, int]] = []
    for step, n in inner:
        if not n or step < size:
            return []
        if step == size and not outer:
            size *= n
        else:
            outer.append((step, n))
    begins = [tensor.address]
    for step, n in outer:
        if len(begins) * n > MOST_RUNS:
            return []
        begins = [begin + at * step for at in range(n) for begin in begins]
    begins.sort()
    if any(later - before < size for before, later in pairwise(begins)):
        return []
    return [(begin, begin + size) for begin in begins]


def left_out(
    claims: Sequence[tuple[int, Claim]], caches: Sequence[Cache]
) -> Iterator[tuple[Claim, Breach]]:
    """The caches of which some bytes are in no region that their slots are moved by, each with the
    region nearest to these bytes.

    claims  the regions of one list, each with its number there
    """
    moved: dict[tuple[str | None, int], list[Span]] = {}
    for cache in caches:
        if not claims or not cache.tensor.shape:
            continue
        key = cache.group, cache.tensor.strides[cache.dimension]
        if key not in moved:
            moved[key] = sorted(span for _, claim in claims for span in _moved(claim, *key))
        wanted = runs(cache)
        missing = _without(wanted, moved[key])
        if missing:
            near = min(claims, key=lambda one: _away(one[1], key, missing[0][0]))
            yield near[1], _breach(cache, near, wanted, missing)


def _moved(claim: Claim, group: str | None, step: int) -> list[Span]:
    """What the region moves of entry 0 of a cache of that group, whose entries are `step` bytes
    apart: its slot 0, or the slots that an entry is cut into."""
    item = claim.item_length
    if claim.group not in (None, group) or item < 1 or step % item or not claim.length:
        return []
    if claim.moved == item:
        return [(claim.address, claim.address + step)]
    begins = [claim.address + at * item for at in range(min(step // item, MOST_RUNS))]
    return [(begin, begin + claim.moved) for begin in begins]


def _without(wanted: Sequence[Span], given: Sequence[Span]) -> list[Span]:
    """What is wanted and not given; both ascending."""
    missing: list[Span] = []
    for begin, end in wanted:
        at = begin
        for first, last in given:
            if last <= at:
                continue
            if first >= end:
                break
            if first > at:
                missing.append((at, first))
            at = max(at, last)
        if at < end:
            missing.append((at, end))
    return missing


def _away(claim: Claim, key: tuple[str | None, int], address: int) -> tuple[bool, int]:
    return not _moved(claim, *key), abs(claim.address + claim.moved - address)


def _breach(
    cache: Cache, near: tuple[int, Claim], wanted: list[Span], missing: list[Span]
) -> Breach:
    total = sum(end - begin for begin, end in wanted)
    lost = sum(end - begin for begin, end in missing)
    begin, end = (edge - wanted[0][0] for edge in missing[0])
    number, claim = near
    byte = missing[0][0] - claim.address
    where = Place("local", number, claim.name, cache.layer, 0, byte if byte >= 0 else None)
    named = in_words(Place("local", number, claim.name, claim.layer, None, None))
    whose = f"{cache.name} (layer {cache.layer})" if cache.layer is not None else cache.name
    return Breach(
        SLOT_COVERAGE,
        f"a slot of {whose} has {total} bytes, {lost} of them are in no region: from byte {begin} "
        f"to before {end}, {claim.list} {named.removeprefix('local ')} moves {claim.moved} bytes "
        f"of each of its slots",
        {"bytes of a slot": total, "bytes moved of it": total - lost},
        where,
    )
