"""What is read of a kernel's source, as engines write it."""

import pytest

from kvlint.runtime_checks.launches.bounds import Values
from kvlint.runtime_checks.launches.deciding import Rules
from kvlint.runtime_checks.launches.launch import Launch, Memory
from kvlint.runtime_checks.launches.tables import tables_of
from kvlint.runtime_checks.launches.terms import UnreadableError
from tests.runtime_checks.launches.emulating import BASE, WIDTH, contract_of


def spans(source, arguments=(), grid=(1, 1, 1), **how):
    """Of each pointer, the first byte and the one past the last that a launch can reach."""
    reach = Rules(contract_of(source, dict(arguments), **how)).reach(Values(dict(arguments), grid))
    assert reach.sure
    return dict(reach.spans)


MASKED = """
def k(x, n, block):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.load(x + at, mask=at < n)
"""


def test_a_mask_bounds_what_it_compares():
    block = [("block", 64)]
    assert spans(MASKED, {"n": 100}, (2, 1, 1), constants=block) == {"x": (0, 200)}
    assert spans(MASKED, {"n": 100}, (1, 1, 1), constants=block) == {"x": (0, 128)}
    assert spans(MASKED, {"n": 0}, (2, 1, 1), constants=block) == {}


def test_a_constant_decides_which_branch_there_is():
    source = """
def k(x, y, WIDE):
    if WIDE:
        tl.load(x + 100)
    elif y is not None:
        tl.load(y)
"""
    assert spans(source, pointers=("x", "y"), constants=[("WIDE", 1)]) == {"x": (200, 202)}
    assert spans(source, pointers=("x", "y"), constants=[("WIDE", 0)]) == {"y": (0, 2)}


def test_what_is_not_chosen_is_not_loaded():
    source = """
def k(x, n):
    a = tl.load(x + 100) if n > 3 else tl.load(x + n)
"""
    assert spans(source, {"n": 3}) == {"x": (6, 8)}
    assert spans(source, {"n": 4}) == {"x": (200, 202)}


@pytest.mark.parametrize("index", ["tl.max(tl.arange(0, 8), 0)", "other.minimum(n, 1)", "abs(n)"])
def test_what_only_looks_like_a_pair_of_numbers_is_none(index):
    contract = contract_of(f"def k(x, n):\n    tl.load(x + {index})\n", {"n": 3})
    assert not any(access.settled for access in contract.accesses)


def test_what_returns_early_goes_no_further():
    source = """
def k(x, n):
    row = tl.program_id(0)
    if row >= n:
        return
    tl.store(x + row * 8, 0)
"""
    assert spans(source, {"n": 3}, (10, 1, 1)) == {"x": (0, 34)}


def test_a_helper_is_read_where_it_is_called():
    source = """
def row(x, at, stride=8):
    if at > 2:
        return x + at * stride
    return x

def k(x, n):
    tl.load(row(x, n))
"""
    assert spans(source, {"n": 3}) == {"x": (0, 50)} or spans(source, {"n": 3}) == {"x": (48, 50)}
    assert spans(source, {"n": 2})["x"][0] == 0


def test_a_pointer_that_grows_is_known_in_and_after_the_loop():
    source = """
def k(x, n, m):
    at = x + tl.arange(0, 4)
    for _ in range(n):
        tl.load(at)
        at += m
    tl.store(at, 0)
"""
    assert spans(source, {"n": 3, "m": 10}) == {"x": (0, 68)}
    assert spans(source, {"n": 0, "m": 10}) == {"x": (0, 8)}


def test_a_block_pointer_stays_in_the_axes_that_are_checked():
    source = """
def k(x, n, m):
    block = tl.make_block_ptr(x, (n, m), (m, 1), (16, 0), (16, 8), (1, 0))
    tl.load(block, boundary_check={})
    tl.load(tl.advance(block, (0, 8)), boundary_check={})
"""
    sizes = {"n": 20, "m": 12}
    checked = spans(source.replace("{}", "(0, 1)"), sizes)
    assert checked == {"x": (16 * 12 * 2, 20 * 12 * 2)}
    assert spans(source.replace("{}", "(1,)"), sizes) == {"x": (16 * 12 * 2, 32 * 12 * 2)}


def test_pointers_can_be_cast_to_other_elements():
    source = """
def k(x, n):
    tl.load(x.to(tl.pointer_type(tl.float32)) + n)
"""
    assert spans(source, {"n": 3}) == {"x": (12, 16)}


def test_two_axes_of_one_range_are_two():
    source = """
def k(x, n):
    at = tl.arange(0, 8)
    tl.load(x + at[:, None] * n + at[None, :], mask=at[:, None] < 4)
"""
    assert spans(source, {"n": 100}) == {"x": (0, 616)}


def test_one_tensor_may_be_reached_by_the_address_of_another():
    contract = contract_of("def k(x, n):\n    tl.load(x + n)\n", {"n": 0})
    memory = {
        "x": Memory(BASE, BASE, BASE + 8, WIDTH),
        "y": Memory(BASE + 64, BASE + 64, BASE + 72, WIDTH),
    }
    for n, found in ((32, 0), (33, 1)):
        launch = Launch("k", memory, Values({"n": n}, (1, 1, 1)))
        assert len(Rules(contract).breaches(launch)) == found


@pytest.mark.parametrize("changed", ["tl.store(x, 1)", "tl.atomic_add(x, 1)"])
def test_numbers_that_the_kernel_changes_are_not_looked_at(changed):
    source = "def k(x, y, n):\n    {}\n    tl.load(y + tl.load(x))\n"
    how = {"pointers": ("x", "y"), "element": "i32"}
    (table,) = tables_of(contract_of(source.format("pass"), {"n": 1}, **how))
    assert table.reads == {"x"}
    memory = {name: Memory(BASE, BASE, BASE + 8, 4) for name in "xy"}
    launch = Launch("k", memory, Values({"n": 1}, (1, 1, 1)))
    (same,) = tables_of(contract_of(source.format(changed), {"n": 1}, **how))
    assert (table.changes(launch), same.changes(launch)) == (False, True)


def test_a_ticket_is_no_index_that_can_be_looked_up():
    source = "def k(x, n):\n    tl.store(x + tl.atomic_add(x, 1), 0)\n"
    assert not tables_of(contract_of(source, {"n": 1}, element="i32"))


@pytest.mark.parametrize(
    "index",
    ["tl.sum(tl.load(x))", "tl.load(x).to(tl.int32)", "undefined(n)", "n.bit_length()", "n / 2"],
)
def test_nothing_is_said_of_what_nobody_could_read(index):
    contract = contract_of(f"def k(x, n):\n    tl.store(x + {index}, 0)\n", {"n": 3})
    memory = {"x": Memory(BASE, BASE, BASE + 2, WIDTH)}
    assert not Rules(contract).breaches(Launch("k", memory, Values({"n": 3}, (1, 1, 1))))
    assert not tables_of(contract) or index.startswith("tl.load")


def test_pointers_out_of_memory_are_counted():
    source = """
def k(x, n):
    tl.store(tl.load(x).to(tl.pointer_type(tl.int8)) + n, 0)
"""
    contract = contract_of(source, {"n": 3})
    assert (len(contract.accesses), contract.unread) == (1, 1)


@pytest.mark.parametrize(
    "body",
    [
        "k(x, n)",
        "with y:\n        pass",
        "\n    ".join(f"x{i} = x + n * {i}; tl.load(x{i})" for i in range(1, 1100)),
    ],
)
def test_what_is_beyond_reading_is_said_to_be(body):
    with pytest.raises(UnreadableError):
        contract_of(f"def k(x, n):\n    {body}\n", {"n": 3})


def test_an_index_is_as_wide_as_its_widest_part():
    source = """
def k(x, n):
    tl.load(x + tl.program_id(0){} * n)
"""
    for cast, fits in (("", False), (".to(tl.int64)", True)):
        contract = contract_of(source.format(cast), {"n": 1 << 30})
        memory = {"x": Memory(BASE, BASE, BASE + (1 << 34), WIDTH)}
        launch = Launch("k", memory, Values({"n": 1 << 30}, (3, 1, 1)))
        found = Rules(contract).breaches(launch)
        assert [breach.code for breach in found] == ([] if fits else ["KV402"])


def test_a_mask_that_overflows_lets_through_what_it_was_to_keep_out():
    n = (1 << 31) - 1
    contract = contract_of(MASKED, {"n": n}, constants=[("block", 1024)])
    memory = {"x": Memory(BASE, BASE, BASE + (1 << 33), WIDTH)}
    for programs, codes in ((1 << 21, []), ((1 << 21) + 1, ["KV402"])):
        launch = Launch("k", memory, Values({"n": n}, (programs, 1, 1)))
        assert [breach.code for breach in Rules(contract).breaches(launch)] == codes


def test_a_tensor_that_reaches_out_of_its_storage_is_told():
    from kvlint.runtime_checks.launches.watch import outside

    held = Memory(BASE + 8, BASE, BASE + 40, 4, "float32", (2, 4), (4, 1))
    assert outside(Launch("k", {"x": held}, Values({}, (1, 1, 1))), "x") is None
    short = Memory(BASE + 8, BASE, BASE + 39, 4, "float32", (2, 4), (4, 1))
    breach = outside(Launch("k", {"x": short}, Values({}, (1, 1, 1))), "x")
    assert breach is not None
    assert "reaches to byte 40 of its storage, which has 39 bytes" in breach.message


def test_looking_up_what_is_loaded_asks_nothing_of_the_device():
    torch = pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")
    source = """
def k(x, y, n):
    at = tl.program_id(0) * 4 + tl.arange(0, 4)
    slot = tl.load(x + at, mask=at < n, other=0)
    row = tl.where(slot < 0, 0, tl.minimum(slot, 77) % 9)
    tl.load(y + row[:, None] * n + tl.arange(0, 16)[None, :], mask=(at < n)[:, None])
"""
    (table,) = tables_of(contract_of(source, {"n": 1}, pointers=("x", "y"), element="i32"))
    memory = {
        "x": Memory(BASE, BASE, BASE + 400, 4),
        "y": Memory(2 * BASE, 2 * BASE, 2 * BASE + 400, 4),
    }
    launch = Launch("k", memory, Values({"n": 20}, (5, 1, 1)))
    # A tensor of this device has no values: whoever wants one fails.
    tensors = {name: torch.empty(100, dtype=torch.int32, device="meta") for name in "xy"}
    answers = table.count(torch, launch, tensors)
    assert answers.shape == (5,)
    assert answers.is_meta
