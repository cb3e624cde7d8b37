"""The digest kernel, in Triton: pages of many regions in one launch.

It computes what `reference` defines, equal to the bit. Nothing here is tuned while serving: the
caller says which form, and `launches` chooses it by shape.
"""

import triton
import triton.language as tl

from kvlint.runtime_checks.digests import launches, reference

_A = tl.constexpr(reference.MULTIPLIERS[0])
_B = tl.constexpr(reference.MULTIPLIERS[1])
_FAR = tl.constexpr(reference.SHIFTS[0])
_NEAR = tl.constexpr(reference.SHIFTS[1])
_EVEN = tl.constexpr(0xFFFFFFFE)
_COLUMNS = tl.constexpr(launches.COLUMNS)
_BASE = tl.constexpr(launches.BASE)
_STRIDE = tl.constexpr(launches.STRIDE)
_LENGTH = tl.constexpr(launches.LENGTH)
_FIRST = tl.constexpr(launches.FIRST)
_COUNT = tl.constexpr(launches.COUNT)
_BEGIN = tl.constexpr(launches.BEGIN)
_PAGES_AT = tl.constexpr(launches.PAGES_AT)
_WORDS_BEFORE = tl.constexpr(launches.WORDS_BEFORE)


@triton.jit
def _weights(odd, later):
    """a of `reference`, where `odd` is x and `later` is t."""
    y = (odd ^ ((odd >> _FAR) & _EVEN)) * _B + later
    low = y ^ ((y >> _NEAR) & _EVEN)
    return ((y * low).to(tl.uint64) << 32) | low.to(tl.uint64)


@triton.jit
def _words_at(begins, columns, begin, length, there, ALIGN: tl.constexpr):
    """Words number `columns` of each page; beyond its end, and its last word's missing bytes, 0.
    A group of words, which begins at `begin`, is within the page or beyond it."""
    if ALIGN == 1:
        places = begins.to(tl.pointer_type(tl.uint8))[:, None, None]
        words = tl.zeros(columns.shape, tl.uint32)
        for byte in tl.static_range(4):
            offsets = columns * 4 + byte
            one = tl.load(places + offsets, mask=there & (offsets < length), other=0)
            words |= one.to(tl.uint32) << (8 * byte)
    else:
        places = begins.to(tl.pointer_type(tl.uint32))[:, None, None]
        places = tl.multiple_of(places, [ALIGN, ALIGN, ALIGN])
        words = tl.load(places + columns, mask=there & (begin < length // 4), other=0)
    return words


@triton.jit(do_not_specialize=["tiles"])
def digest_pages(
    table,
    found,
    tiles,
    SLOTS: tl.constexpr,
    WORDS: tl.constexpr,
    ALIGN: tl.constexpr,
    LANES: tl.constexpr,
    SPLIT: tl.constexpr,
    STAGES: tl.constexpr,
):
    """A digest of each page of `table`, which is a `launches.Launch`'s.

    table  int64, as `Launch.write` writes it
    found  (LANES, pages) int64: the digests; where SPLIT, 0 before
    tiles  programs of each row; the grid is (rows * tiles,)
    ALIGN  what divides every address and length: 16, 4 or 1
    LANES  1 or 2. With 0 it is a plain sum of the words: what any kernel of this shape takes to
           read them
    STAGES how many reads of a page are under way at a time; 1 leaves it to other programs
    """
    program = tl.program_id(0)
    row = table + (program // tiles + 1) * _COLUMNS
    at = (program % tiles) * SLOTS
    count = tl.load(row + _COUNT)
    if at >= count:
        return
    base, stride = tl.load(row + _BASE), tl.load(row + _STRIDE)
    slots_at = table + tl.load(row + _FIRST)
    length = tl.load(row + _LENGTH).to(tl.int32)
    before = tl.load(row + _WORDS_BEFORE).to(tl.uint32)
    places = found + tl.load(row + _BEGIN)
    second = places + tl.load(table + _PAGES_AT)
    key = tl.load(table).to(tl.uint32) * 2
    later = tl.load(table + 1).to(tl.uint32) * 2
    if LANES == 2:
        second_key = tl.load(table + 2).to(tl.uint32) * 2
        second_later = tl.load(table + 3).to(tl.uint32) * 2

    # A thread reads 16 bytes at a time where it may, and adds up what these come to by itself.
    GROUP: tl.constexpr = 4 if ALIGN == 16 else 1
    groups = (tl.arange(0, WORDS // GROUP) * GROUP)[None, :, None]
    lane = groups + tl.arange(0, GROUP)[None, None, :]
    odd = ((lane.to(tl.uint32) + before) * 2 + 1) * _A + key
    lines = at + tl.arange(0, SLOTS)
    there = lines < count
    begins = base + tl.load(slots_at + lines, mask=there, other=0) * stride
    total = tl.zeros((SLOTS, WORDS // GROUP), tl.uint64)
    second_total = total
    for first in tl.range(0, (length + 3) // 4, WORDS, num_stages=STAGES):
        words = _words_at(
            begins, first + lane, first + groups, length, there[:, None, None], ALIGN
        ).to(tl.uint64)
        if LANES == 0:
            total += tl.sum(words, axis=2)
        else:
            total += tl.sum(words * _weights(odd, later), axis=2)
            if LANES == 2:
                weights = _weights(odd + (second_key - key), second_later)
                second_total += tl.sum(words * weights, axis=2)
            odd += (2 * WORDS * _A) & 0xFFFFFFFF
    _put(places + lines, total, there, SPLIT)
    if LANES == 2:
        _put(second + lines, second_total, there, SPLIT)


@triton.jit
def _put(places, total, there, SPLIT: tl.constexpr):
    digests = tl.sum(total, axis=1).to(tl.int64)
    if SPLIT:
        tl.atomic_add(places, digests, mask=there, sem="relaxed")
    else:
        tl.store(places, digests, mask=there)
