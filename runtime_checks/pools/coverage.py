"""What a transfer is to move, against the regions that it moves: no byte of a slot left out. Pure.

Both sides of a transfer are made by the same code, so regions that are too short pass every check
of lengths: what they leave out stays what the memory held before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kvlint.runtime_checks.checks import SLOT_COVERAGE, Breach, Place
from kvlint.runtime_checks.lists import in_words
from kvlint.runtime_checks.pools.claims import Cache, Claim

MOST_RUNS: Final = 4096

Span = tuple[int, int]
"""Address of the first byte, and of the one after the last."""


@dataclass(frozen=True, slots=True)
class _Member:
    number: int
    claim: Claim
    spans: list[Span]


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
    for cache in caches:
        if not claims or not cache.tensor.shape:
            continue
        members = [_member(number, claim, cache) for number, claim in claims]
        wanted = runs(cache)
        missing = _without(wanted, sorted(span for m in members for span in m.spans))
        if missing:
            near = min(members, key=lambda m: _away(m, missing[0][0]))
            yield near.claim, _breach(cache, near, wanted, missing)


def _member(number: int, claim: Claim, cache: Cache) -> _Member:
    """With what the region moves of entry 0: its slot 0, or the slots that an entry is cut into."""
    step = cache.tensor.strides[cache.dimension]
    item = claim.item_length
    if claim.group not in (None, cache.group) or item < 1 or step % item or not claim.length:
        return _Member(number, claim, [])
    parts = step // item
    if claim.moved == item:
        return _Member(number, claim, [(claim.address, claim.address + step)])
    begins = [claim.address + at * item for at in range(min(parts, MOST_RUNS))]
    return _Member(number, claim, [(begin, begin + claim.moved) for begin in begins])


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


def _away(member: _Member, address: int) -> tuple[bool, int]:
    claim = member.claim
    return not member.spans, abs(claim.address + claim.moved - address)


def _breach(cache: Cache, near: _Member, wanted: list[Span], missing: list[Span]) -> Breach:
    total = sum(end - begin for begin, end in wanted)
    lost = sum(end - begin for begin, end in missing)
    begin, end = (edge - wanted[0][0] for edge in missing[0])
    claim = near.claim
    byte = missing[0][0] - claim.address
    where = Place("local", near.number, claim.name, cache.layer, 0, byte if byte >= 0 else None)
    named = in_words(Place("local", near.number, claim.name, claim.layer, None, None))
    whose = f"{cache.name} (layer {cache.layer})" if cache.layer is not None else cache.name
    return Breach(
        SLOT_COVERAGE,
        f"a slot of {whose} has {total} bytes, {lost} of them are in no region: from byte {begin} "
        f"to before {end}, {claim.list} {named.removeprefix('local ')} moves {claim.moved} bytes "
        f"of each of its slots",
        {"bytes of a slot": total, "bytes moved of it": total - lost},
        where,
    )
