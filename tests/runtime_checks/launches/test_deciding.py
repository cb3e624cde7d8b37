"""What is said of a launch against what the kernel's own source touches, run by numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime_checks.launches.emulating import WIDTH, breaches, looked_up, touched

ATOMS = st.sampled_from(["p", "q", "i", "j", "t", "n", "s", "1", "3"])
NUMBERS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("({} // {})".format, inner, st.integers(1, 5)),
        st.builds("({} % {})".format, inner, st.integers(1, 7)),
        st.builds("tl.minimum({}, {})".format, inner, inner),
        st.builds("tl.where({} < {}, {}, {})".format, inner, inner, inner, inner),
    ),
    max_leaves=5,
)
CONDITIONS = st.builds("({} {} {})".format, NUMBERS, st.sampled_from(["<", "<=", ">="]), NUMBERS)
# As kernels are: a flat index below a bound.
FLAT = st.sampled_from(["p * 8 + j", "(p * 4 + i) * s + j", "p * s + i * 8 + j", "t * s + j"])
MASKS = st.one_of(CONDITIONS, st.builds("({} < n)".format, FLAT))
KERNEL = """
def k(x, n, s):
    p, q = tl.program_id(0), tl.program_id(1)
    if {leave}:
        return
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :]
    at = x + ({begin})
    for t in range(0, {rounds}, 2):
        tl.load(at + ({index} + p * 0 + i * 0 + j * 0), mask={mask})
        at = at + ({step})
"""
SCALARS = st.sampled_from(["p + 0", "q * s", "p * 3 - q", "n * q", "p // 2"])
SOURCES = st.builds(
    KERNEL.format,
    leave=st.sampled_from(["p * 3 + q < n - s", "q >= p * 2", "p < 0"]),
    begin=SCALARS,
    rounds=st.integers(1, 5),
    index=st.one_of(NUMBERS, FLAT),
    mask=st.one_of(MASKS, st.builds("({} & {})".format, MASKS, MASKS)),
    step=st.sampled_from(["s", "4", "p", "n - 3"]),
)
GRIDS = st.tuples(st.integers(1, 4), st.integers(1, 3))


@given(SOURCES, st.integers(-3, 40), st.integers(0, 20), GRIDS, st.data())
@settings(max_examples=80, deadline=None)
def test_a_launch_is_refused_just_where_it_touches_other_bytes(source, n, s, grid, data):
    arguments = {"n": n, "s": s}
    offsets = touched(source, arguments, grid, "int32")
    most = max([0, *offsets]) + WIDTH
    before = data.draw(st.integers(0, 20), "bytes before") + data.draw(
        st.sampled_from([0, -min([0, *offsets])]), "all of them"
    )
    past = max(0, most - data.draw(st.integers(-4, 40), "bytes short"))
    outside = any(o < -before or o + WIDTH > past for o in offsets)
    found, inside, undecided = breaches(source, arguments, grid, before, past)
    assert not (inside and outside)
    assert bool(found) == outside or (outside and undecided)


@given(SOURCES, st.integers(1, 40), st.integers(1 << 20, (1 << 31) - 1), GRIDS)
@settings(max_examples=50, deadline=None)
def test_what_is_said_of_large_strides_is_so(source, n, s, grid):
    arguments = {"n": n, "s": s}
    offsets = touched(source, arguments, grid, "int32")
    endless = touched(source, arguments, grid, "object")
    found, inside, _ = breaches(source, arguments, grid, 0, 1 << 20)
    said = {breach.check.name for breach in found}
    outside = any(not 0 <= o <= (1 << 20) - WIDTH for o in offsets)
    assert not (inside and outside)
    if "launch-extent" in said:
        assert outside
    if "launch-overflow" in said:
        assert offsets != endless


LOADING = """
def k(x, y, n, s):
    p, q = tl.program_id(0), tl.program_id(1)
    j = tl.arange(0, 8)[None, :]
    t = tl.load(y + ({at}), mask={exists}, other=0)
    if {leave}:
        return
    i = tl.arange(0, 4)[:, None]
    tl.load(x + ({row}), mask={mask})
"""
AT = st.sampled_from(["p + 0", "p * 8 + j", "tl.minimum(p, n)"])
EXISTS = st.sampled_from(["p < 30", "p * 8 + j < 32"])
LEAVE = st.sampled_from(["p > n", "s < 0"])
KEEP = st.sampled_from(["t >= 0", "(t >= 0) & (j < n)", "j <= t", "(t < s) & (t > 0 - s)"])
# Of these rows the lanes play no part in whether it is there.
WHOLE = st.sampled_from(["t * s + j * 0", "(t // 4) * 16 + (t % 4) * 4 + j * 0"])
LANED = st.one_of(
    st.sampled_from(["t * s + j", "t * s + j + i"]), NUMBERS.map("{} + t * 0 + j * 0".format)
)
TABLE = st.lists(st.integers(-3, 30), min_size=33, max_size=33)


@given(st.booleans(), TABLE, st.integers(0, 9), st.integers(0, 20), st.data())
@settings(max_examples=80, deadline=None)
def test_what_is_said_of_loaded_numbers_is_so(whole, table, n, s, data):
    torch = pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")
    source = LOADING.format(
        at=data.draw(AT),
        exists=data.draw(EXISTS),
        leave=data.draw(LEAVE),
        row=data.draw(WHOLE if whole else LANED),
        mask=data.draw(KEEP),
    )
    arguments, grid = {"n": n, "s": s}, (4, 1)
    offsets = touched(source, arguments, grid, "int32", table)
    past = max(0, max([0, *offsets]) + WIDTH - data.draw(st.integers(-2, 40), "bytes short"))
    outside = any(o < 0 or o + WIDTH > past for o in offsets)
    found = looked_up(torch, source, arguments, grid, past, table)
    assert not found or outside
    assert bool(found) == outside or not whole
