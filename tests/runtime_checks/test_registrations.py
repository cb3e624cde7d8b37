"""What is registered, and whether a list still stands on it, against a plain record."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.registrations import Registrations
from tests.runtime_checks.layouts import QUICK

PIECES = [(0, 64, 0), (0, 64, 0), (64, 64, 0), (0, 128, 0), (16, 32, 0), (0, 64, 1)]
ROWS = [(0, 16, 0), (16, 16, 0), (64, 64, 0), (0, 64, 1), (48, 32, 0), (200, 8, 0)]


@QUICK
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=12),
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=12),
)
def test_a_region_is_held_by_what_was_registered_before_the_list_and_still_is(before, after):
    known, plain = Registrations(), []

    def apply(steps):
        for adds, which in steps:
            piece = PIECES[which]
            if adds:
                known.add("DRAM", [piece], None)
                plain.append(piece)
            else:
                found = known.found("DRAM", [piece])
                assert bool(found) == (piece in plain)
                known.remove(found)
                if piece in plain:
                    at = len(plain) - 1 - plain[::-1].index(piece)
                    plain[at] = None

    apply(before)
    regions = fold(np.array(ROWS, np.uint64)[[0, 2, 3, 4, 5]])
    pieces = known.holding("DRAM", regions)
    held_then = [
        [n for n, piece in enumerate(plain) if piece and _holds(piece, regions, number)]
        for number in range(len(regions))
    ]
    assert [piece >= 0 for piece in pieces] == [bool(held) for held in held_then]
    apply(after)
    newest = max([n for n in pieces.tolist() if n >= 0], default=-1)
    lost = [
        number
        for number, held in enumerate(held_then)
        if held and not any(plain[n] for n in held if n <= newest)
    ]
    assert known.still_held("DRAM", regions, pieces) == (lost[0] if lost else None)
    assert len(known.live) == sum(piece is not None for piece in plain)


def _holds(piece, regions, number):
    start, length, device = piece
    return (
        device == regions.devices[number]
        and start <= regions.addresses[number]
        and regions.ends[number] <= start + length
    )


def test_memory_kinds_are_apart():
    known = Registrations()
    known.add("FILE", [(0, 64, 3)], None)
    assert known.found("DRAM", [(0, 64, 3)]) == []
    assert known.holding("DRAM", fold(np.array([(0, 64, 3)], np.uint64))).tolist() == [-1]
    assert known.holding("FILE", fold(np.array([(0, 64, 3)], np.uint64))).tolist() == [0]


def test_what_is_deregistered_takes_no_place():
    known = Registrations()
    known.add("DRAM", [(0, 1 << 20, 0)], None)
    for number in range(2000):
        known.add("FILE", [(0, 4096, number)], None)
        known.remove(known.found("FILE", [(0, 4096, number)]))
    assert list(known.live) == [0]
    assert known.version == 4001
