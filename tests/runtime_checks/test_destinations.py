"""What one transfer writes twice, against its bytes."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.destinations import written_twice
from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.selection import select
from tests.runtime_checks.layouts import BASE, QUICK, Laid, bytes_of, listed, rows3, rows_of


@st.composite
def transfers(draw):
    """A destination with regions that may overlap, and a source; as many indices of each."""
    regions = draw(st.integers(1, 3))
    shapes = [
        (draw(st.sampled_from([2, 3, 3])), draw(st.sampled_from([4, 8]))) for _ in range(regions)
    ]
    lists = []
    for side in ("remote", "local"):
        at, laid = BASE, []
        for count, length in shapes:
            laid.append(Laid(at, length, 0, length + draw(st.sampled_from([0, 4])), count))
            at = laid[-1].end + draw(st.sampled_from([0, 64, 64, 64, -4, -8])) * (side == "remote")
        lists.append(listed(fold(rows3(laid)), side=side, owner=side))
    total = min(of.regions.descriptors for of in lists)
    if draw(st.booleans()):
        size = draw(st.integers(1, 8))
        chosen = [
            draw(st.lists(st.integers(0, total - 1), min_size=size, max_size=size)) for _ in lists
        ]
    else:
        chosen = [list(range(total))] * 2
    return tuple(
        select(of, np.array(indices, np.int32)) for of, indices in zip(lists, chosen, strict=True)
    )


@QUICK
@given(transfers())
def test_a_byte_is_written_from_one_place(sides):
    destination, source = sides
    targets = [rows_of(destination.of.regions)[index] for index in destination.indices]
    sources = [rows_of(source.of.regions)[index] for index in source.indices]
    clashes = {
        (a, b)
        for b in range(len(targets))
        for a in range(b)
        if bytes_of(*targets[a]) & bytes_of(*targets[b])
        and not (targets[a][0] == targets[b][0] and sources[a][0] == sources[b][0])
    }
    found = written_twice(destination, source)
    assert (found is not None) == bool(clashes)
    if found is not None:
        named = [int(key.removeprefix("source at ")) for key in found.values]
        assert tuple(named) in clashes
        whole = targets[named[0]][0] == targets[named[1]][0]
        assert found.check.name == ("duplicate" if whole else "overlapping") + "-destination"


def test_a_slot_may_be_written_again_from_the_same_source():
    # A batch padded with slot 0 on both sides writes it over and over, with the same bytes.
    of = listed(fold(rows3([Laid(BASE, 16, 0, 16, 8)])))
    indices = np.array([3, 5, 0, 0, 0], np.int32)
    assert written_twice(select(of, indices), select(of, indices)) is None
    assert written_twice(select(of, indices), select(of, indices[::-1].copy())) is not None
