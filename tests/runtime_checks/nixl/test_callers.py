"""Which functions led to NIXL's calls, and what was looked at there, around real NIXL."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from kvlint import runtime_checks
from tests.runtime_checks.hosts import fill, indices, regions, rows5, starts


@pytest.fixture
def pair(arm, host):
    """Two hosts that know each other; each region has another one of as many slots."""

    def make(counts=(6, 6, 4, 4)):
        armed = arm()
        one, other = host("here", regions(counts)), host("there", regions(counts))
        fill(one.regions)
        one.meet(other)
        return armed, one, other

    return make


def prepare(one, other):
    return one.prepare(None, rows5(one.regions)), one.prepare(other, rows5(other.regions))


def send(one, lists, chosen):
    handle = one.agent.make_prepped_xfer("WRITE", lists[0], chosen, lists[1], chosen, b"m")
    one.agent.transfer(handle)
    one.finish(handle)


def called(armed, call):
    return [one.to_dict() for one in armed.policy.callers.entries() if one.call == call]


def test_the_functions_that_led_there_are_named_and_their_calls_counted(pair):
    armed, one, other = pair()
    lists = prepare(one, other)
    for _ in range(3):
        send(one, lists, indices(starts(one.regions), [2, 0]))
    (made,) = called(armed, "make_prepped_xfer")
    test, sender = (line.rpartition(" in ")[2] for line in made["stack"][-2:])
    assert (test, sender) == (
        "test_the_functions_that_led_there_are_named_and_their_calls_counted",
        "send",
    )
    assert (made["count"], made["agents"]) == (3, [one.name])
    assert made["checked"]["column"] == made["checked"]["index-width"] == 3
    listed = called(armed, "prep_xfer_dlist")
    assert [entry["checked"] for entry in listed] == [{"out-of-region": 1}] * 2
    assert sum(entry["count"] for entry in called(armed, "register_memory")) == 8


def test_lists_of_the_same_buffers_have_the_number_of_the_first(pair):
    armed, one, other = pair()
    for _ in range(3):
        lists = prepare(one, other)
        send(one, lists, indices(starts(one.regions), [2, 0]))
    (made,) = called(armed, "make_prepped_xfer")
    assert len(made["lists"]) == 2
    assert {n for entry in called(armed, "prep_xfer_dlist") for n in entry["lists"]} == set(
        made["lists"]
    )


def test_a_check_that_was_switched_off_has_looked_at_nothing(pair):
    armed, one, other = pair()
    lists = prepare(one, other)
    armed.policy._disarmed["column"] = "a fault"
    send(one, lists, indices(starts(one.regions), [2, 0]))
    (made,) = called(armed, "make_prepped_xfer")
    assert made["count"] == 1
    assert "column" not in made["checked"]


def test_where_a_region_has_none_to_be_compared_with_columns_were_not_looked_at(pair):
    armed, one, other = pair((6, 6, 4))
    send(one, prepare(one, other), indices(starts(one.regions), [2, 0]))
    (made,) = called(armed, "make_prepped_xfer")
    assert set(made["checked"]) == {"index-range", "index-width"}


def test_a_pool_that_is_guarded_is_a_call_as_well(arm, torch):
    armed = arm()
    runtime_checks.guard_pool({"key": torch.zeros(8, 16)}, name="mine")
    (guarded,) = called(armed, "guard_pool")
    assert guarded["stack"][-1].endswith("in test_a_pool_that_is_guarded_is_a_call_as_well")
    assert guarded["checked"] == {"slot-layout": 1}
