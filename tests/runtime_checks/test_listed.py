"""Descriptor lists as their processes have noted them; what cannot be one is passed over."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvlint.runtime_checks.listed import MOST_REGIONS, lists_of
from tests.runtime_checks.test_reading import JSON


def region(slots=4, **more):
    return {"slots": slots, "length": 256, "stride": 256, "name": None, "layer": None, **more}


def listed(*regions, **more):
    return {
        "run": "r",
        "pid": 1,
        "kind": "list",
        "number": 3,
        "agent": "prefill",
        "owner": "decode",
        "side": "remote",
        "memory": "DRAM",
        "regions": list(regions),
        "more": 0,
        **more,
    }


def test_regions_follow_one_another_with_the_slots_that_were_counted():
    (one,) = lists_of([listed(region(4, name="key", layer=7), region(2, stride=512), region(0))])
    assert (one.number, one.agent, one.owner, one.side) == (3, "prefill", "decode", "remote")
    assert [(r.name, r.layer, r.slots, r.address) for r in one.regions] == [
        ("key", 7, 4, 0),
        ("region 1", None, 2, 1024),
        ("region 2", None, 0, 1024 + 768),
    ]


def test_a_region_of_one_slot_has_no_distance_to_the_next():
    (one,) = lists_of([listed(region(1, stride=0))])
    assert one.regions[0].slots == 1


def test_what_is_not_told_is_counted():
    many = [region() for _ in range(MOST_REGIONS + 2)]
    (one,) = lists_of([listed(*many, more=5)])
    assert (len(one.regions), one.more) == (MOST_REGIONS, 7)


def test_other_records_are_no_lists():
    wrong = [region(layer=-1), region(name="x" * 300), region(slots=1 << 70), {"slots": 1}, 7]
    assert lists_of([{"kind": "transfer"}, *(listed(one) for one in wrong)]) == []


KEYS = st.sampled_from([*listed(), *region()])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=3), st.lists(JSON, max_size=3))
def test_any_object_is_a_list_or_none(records, regions):
    for record in records:
        lists_of([record, {**listed(), **record}, listed(*regions), listed(region() | record)])
