"""What the ledger makes of digests: no bytes, no pools."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.stages.ledger import Ledger
from kvlint.runtime_checks.stages.sayings import told
from tests.runtime_checks.layouts import QUICK
from tests.runtime_checks.stages.pages import memory, note

PREFILL, DECODE = memory("prefill"), memory("decode", at=2 << 20)


def noted(ledger, *what, **how):
    """(check, message) of each finding."""
    return [(b.check.name, b.message) for b in map(told, ledger.note(note(*what, **how)))]


def test_right_pages_are_silent_from_store_to_read():
    ledger = Ledger()
    for stage, pool, slots in (
        ("store", PREFILL, [3, 4]),
        ("send", PREFILL, [3, 4]),
        ("arrival", DECODE, [9, 2]),
        ("read", DECODE, [9, 2]),
    ):
        assert noted(ledger, stage, "A", pool, slots, [11, 12]) == []


def test_a_page_that_changed_is_told_once_with_both_stages_and_its_owner():
    ledger = Ledger()
    noted(ledger, "store", "A", PREFILL, [3, 4], [11, 12])
    ((check, message),) = noted(ledger, "send", "A", PREFILL, [3, 4], [[11, 12], [1011, 5]])
    assert check == "page-changed"
    assert message == (
        "layer 1 key slot 4 (page 1 of request A) changed between store and send: from "
        "00000000000003f4 to 0000000000000005"
    )
    assert noted(ledger, "arrival", "A", DECODE, [1, 2], [[11, 12], [1011, 5]]) == []


def test_another_pages_content_is_named():
    ledger = Ledger()
    noted(ledger, "store", "A", PREFILL, [3, 4], [11, 12])
    noted(ledger, "store", "B", PREFILL, [5], [21], first=7)
    ((check, message),) = noted(ledger, "arrival", "A", DECODE, [3, 4], [[11, 1012], [1011, 1021]])
    assert check == "page-misplaced"
    assert message.startswith(
        "layer 0 key slot 4 (page 1 of request A) changed between store (prefill slot 4) and "
        "arrival (decode slot 4): "
    )
    assert "it holds what belongs to page 1 of layer 1 key" in message
    assert message.endswith("(and 1 more page)")
    ((_, message),) = noted(ledger, "read", "A", DECODE, [3, 4], [[11, 1012], [1011, 21]])
    assert "it holds what belongs to page 7 of request B (layer 0 key)" in message


def test_who_has_stored_there_in_between_is_named():
    ledger = Ledger()
    noted(ledger, "store", "A", PREFILL, [3, 4], [11, 12])
    noted(ledger, "store", "B", PREFILL, [4], [21], first=2)
    ((_, message),) = noted(ledger, "send", "A", PREFILL, [3, 4], [[11, 99], [1011, 1012]])
    assert message.endswith("in between, store (prefill slot 4), page 2 of request B was put there")


def test_pages_of_a_shared_prefix_are_those_that_another_request_stored():
    ledger = Ledger()
    noted(ledger, "store", "A", PREFILL, [3, 4], [11, 12])
    assert noted(ledger, "send", "B", PREFILL, [3, 4, 5], [11, 12, 13]) == []
    ((check, message),) = noted(ledger, "read", "C", PREFILL, [3], [[11], [6]])
    assert check == "page-changed"
    assert "the bytes are those of request B, which noted them at send" in message


def test_a_page_read_before_it_came_is_told_when_it_comes():
    ledger = Ledger()
    noted(ledger, "arrival", "B", DECODE, [3, 4], [7, 8])
    assert noted(ledger, "read", "A", DECODE, [3, 4], [7, 8]) == []
    ((check, message),) = noted(ledger, "arrival", "A", DECODE, [3, 4], [11, 12])
    assert check == "early-read"
    assert "(page 0 of request A) was read before it had arrived" in message


def test_a_page_read_at_its_place_between_send_and_arrival_was_read_early():
    ledger = Ledger()
    noted(ledger, "store", "A", PREFILL, [3], [11])
    noted(ledger, "send", "A", PREFILL, [3], [11])
    ((check, _),) = noted(ledger, "read", "A", DECODE, [3], [0])
    assert check == "early-read"
    assert noted(ledger, "arrival", "A", DECODE, [3], [11]) == []
    assert noted(ledger, "read", "A", DECODE, [3], [11]) == []


def test_a_request_that_stores_again_holds_the_new_bytes():
    ledger = Ledger()
    noted(ledger, "store", "A", PREFILL, [3, 4], [11, 12])
    noted(ledger, "store", "A", PREFILL, [4], [13], first=1)
    assert noted(ledger, "send", "A", PREFILL, [3, 4], [11, 13]) == []


def test_slots_that_got_what_nobody_looked_at_are_nobodys():
    ledger = Ledger()
    noted(ledger, "store", "A", PREFILL, [3, 4], [11, 12])
    ledger.forget(PREFILL, np.array([4]))
    (owned,) = ledger.owners(PREFILL, np.array([3, 4]))
    assert (owned.owner, owned.positions.tolist(), owned.ordinals.tolist()) == ("A", [0], [0])
    assert noted(ledger, "read", "B", PREFILL, [4], [99]) == []


def test_what_is_kept_is_bounded_and_the_oldest_goes():
    ledger = Ledger(most=40)
    for number in range(30):
        assert noted(ledger, "store", f"R{number}", PREFILL, [number % 16], [number]) == []
    kept = ledger.notes()
    assert [one.owner for one in kept] == [f"R{number}" for number in range(10, 30)]
    assert noted(ledger, "send", "R3", PREFILL, [3], [99]) != []
    assert noted(ledger, "read", "R0", DECODE, [0], [99]) == []


@QUICK
@given(st.data())
def test_each_single_wrong_page_is_found_where_it_first_differs(data):
    """Any regions, pages and chain of stages: silent while right, and of one wrong page the stage,
    region and page are told; then silent again."""
    regions, pages = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    pools = [memory(name, regions, 8, at) for name, at in (("a", 1 << 20), ("b", 2 << 20))]
    digests = 1 + np.arange(regions * pages, dtype=np.uint64).reshape(regions, pages)
    stages = ["store", *data.draw(st.lists(st.sampled_from(["send", "read"]), max_size=2))]
    stages += ["arrival", "read"]
    wrong_at = data.draw(st.integers(1, len(stages) - 1))
    region, page = data.draw(st.integers(0, regions - 1)), data.draw(st.integers(0, pages - 1))
    ledger = Ledger()
    for number, stage in enumerate(stages):
        slots = data.draw(st.permutations(range(8)))[:pages]
        if number == wrong_at:
            digests = digests.copy()
            digests[region, page] += 1 << 40
        pool = pools[stage in ("arrival", "read")]
        found = [told(one) for one in ledger.note(note(stage, "A", pool, slots, digests))]
        if number != wrong_at:
            # What a read had found may differ from what arrives.
            if not (stage == "arrival" and stages[wrong_at] == "read" and number > wrong_at):
                assert found == []
        else:
            (breach,) = found
            assert breach.place.region == region
            assert breach.place.slot == slots[page]
            assert f"(page {page} of request A)" in breach.message


def test_what_arrives_wrong_is_told_although_it_was_read_early_and_just_as_wrong():
    ledger = Ledger()
    noted(ledger, "send", "A", PREFILL, [3], [11])
    noted(ledger, "read", "A", DECODE, [3], [5])
    ((check, message),) = noted(ledger, "arrival", "A", DECODE, [3], [5])
    assert check == "page-changed"
    assert "changed between send (prefill slot 3) and arrival" in message


RANKS = [memory("kv", at=number << 20) for number in range(1, 5)]


def test_ranks_of_one_process_have_the_same_request_and_other_bytes():
    ledger = Ledger()
    one, other = [11, 12], [21, 22]
    for stage, pools, slots in (
        ("store", RANKS[:2], [3, 4]),
        ("send", RANKS[:2], [3, 4]),
        ("arrival", RANKS[2:], [9, 2]),
        ("read", RANKS[2:], [9, 2]),
    ):
        for pool, holds in zip(pools, (one, other), strict=True):
            assert noted(ledger, stage, "A", pool, slots, holds) == []


def test_what_no_rank_has_is_told():
    ledger = Ledger()
    for pool, holds in zip(RANKS, ([11], [21]), strict=False):
        noted(ledger, "store", "A", pool, [3], holds)
    ((check, _),) = noted(ledger, "arrival", "A", RANKS[2], [9], [31])
    assert check == "page-changed"
    noted(ledger, "arrival", "A", RANKS[3], [9], [21])
    ((check, _),) = noted(ledger, "read", "A", RANKS[3], [9], [11])
    assert check == "page-changed"
