"""What a run shows of a hypothesis, and what it does not."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvlint.assumptions import Entry, Own, Relation, Starts
from kvlint.findings import Span, Status
from kvlint.geometry import Geometry, Region
from kvlint.hypotheses import Guard, Place
from kvlint.runtime_checks import judgements
from kvlint.runtime_checks.bridge import Answer, judge
from kvlint.runtime_checks.capture import FOLDED
from kvlint.runtime_checks.reading import Process, lost, put_together
from tests.runtime_checks.test_reading import violation
from tests.test_hypotheses import one

STRIDED = Relation(Starts(Own("slots")), "=", Starts(Entry("slots", 0)))
ROOT = "/somewhere/examples/"
SEND = [f"{ROOT}serve.py:90 in <module>", f"{ROOT}serve.py:73 in Worker.send"]
OTHER = [f"{ROOT}serve.py:90 in <module>", f"{ROOT}serve.py:50 in Worker.prepare"]


def place(definition="Worker.send", line=73, path="examples/serve.py"):
    return Place(Span(path, line, 1, line, 9), "", definition)


def strided(number=0, **fields):
    given = {
        "id": f"KV103-{number}",
        "code": "KV103",
        "name": "constant-stride-index",
        "relation": STRIDED,
        "places": (place(),),
    }
    return one(**{**given, **fields})


def guarded(**fields):
    guard = Guard(None, place("Worker.prepare", 44))
    return strided(status=Status.GUARDED, guards=(guard,), **fields)


def geometry(*slots, name="kv", engine="engine 1.0"):
    regions = [
        Region(
            name=f"layer {number}",
            address=number << 32,
            length=count * 256,
            stride=256,
            transfer_length=256,
            memory_kind="DRAM",
            device=0,
            list=name,
        )
        for number, count in enumerate(slots)
    ]
    return Geometry(tuple(regions), engine)


GOOD, BAD = geometry(6, 6, 6), geometry(6, 4, 8)


def called(stack=SEND, count=12, pid=1, call="make_prepped_xfer", lists=(), **checked):
    checked = {name.replace("_", "-"): times for name, times in checked.items()}
    return {
        "schema": 1,
        "run": "r",
        "pid": pid,
        "kind": "called",
        "call": call,
        "stack": list(stack),
        "count": count,
        "checked": checked,
        "agents": ["prefill"],
        "lists": list(lists),
    }


def listed(number=1, names=("a", "b"), side="local"):
    regions = [{"slots": 6, "length": 256, "stride": 256, "name": name} for name in names]
    head = {"schema": 1, "run": "r", "pid": 1, "kind": "list", "number": number, "agent": "prefill"}
    return {**head, "owner": "prefill", "side": side, "memory": "DRAM", "regions": regions}


def wrong(stack=SEND, **more):
    return violation(sites=[{"call": "make_prepped_xfer", "stack": list(stack)}], **more)


def judged(hypotheses, *, calls=(), violations=(), geometries=None, lists=()):
    if not isinstance(hypotheses, list):
        hypotheses = [hypotheses]
    story = put_together(list(violations), list(lists), calls=list(calls))
    return judge(hypotheses, story, geometries or {}, story.calls)


def answer(*args, **kwargs):
    (found,) = judged(*args, **kwargs)
    return found.answer, found.why


# Refuted.


def test_violations_that_came_out_of_its_function_refute_it():
    (found,) = judged(
        strided(),
        violations=[wrong(number=1), wrong(number=2, message="another", pid=1)],
    )
    assert found.answer is Answer.REFUTED
    assert found.observations == 2
    assert found.why.startswith("by 2 observations, first: region 3 gets slot 4")


def test_repeats_are_observations_as_well_and_at_least_so_many_while_it_goes_on():
    again = {"schema": 1, "run": "r", "pid": 1, "time": "", "repeat_of": 1, "count": 8}
    _, why = answer(strided(), violations=[wrong(), again])
    assert why.startswith("by at least 8 observations")
    _, why = answer(strided(), violations=[wrong(), again | {"count": 9, "final": True}])
    assert why.startswith("by 9 observations")


@pytest.mark.parametrize(
    "other",
    [
        wrong(code="KV303"),
        wrong(code=None),
        wrong(stack=OTHER),
        wrong(stack=[frame.replace("examples", "elsewhere") for frame in SEND]),
        wrong(stack=[frame.replace("Worker", "Reader") for frame in SEND]),
        violation(sites=[]),
        violation(sites="what", message=None),
        violation(sites=[{"stack": [7, None, {}]}, "x", None]),
    ],
)
def test_a_violation_of_another_code_or_place_does_not(other):
    assert answer(strided(), violations=[other], calls=[called()])[0] is Answer.NOT_EXERCISED


def test_of_several_in_one_function_it_is_those_whose_lines_it_passes_through():
    on_way = [strided(n, trace=(place("Worker.prepare", line),)) for n, line in enumerate((50, 51))]
    sites = [{"call": "prep_xfer_dlist", "stack": OTHER}, {"call": "make", "stack": SEND}]
    found = judged(on_way, violations=[violation(sites=sites)], calls=[called(column=12)])
    assert [(one.hypothesis.id, one.answer) for one in found] == [
        ("KV103-0", Answer.REFUTED),
        ("KV103-1", Answer.NOT_EXERCISED),
    ]
    # Where the source has changed since, lines tell nothing.
    moved = [strided(n, trace=(place("Worker.prepare", n + 1),)) for n in range(2)]
    found = judged(moved, violations=[violation(sites=sites)])
    assert [one.answer for one in found] == [Answer.REFUTED] * 2


def test_what_the_value_goes_on_to_counts_where_no_function_of_any_is_hit():
    elsewhere = place("Worker.measure", 42)
    counts = {"code": "KV105"}
    source = strided(1, places=(elsewhere,), trace=(elsewhere, place()), **counts)
    assert answer(source, violations=[wrong(**counts)])[0] is Answer.REFUTED
    both = judged([source, strided(2, **counts)], violations=[wrong(**counts)])
    assert [(one.hypothesis.id, one.answer) for one in both] == [
        ("KV103-2", Answer.REFUTED),
        ("KV103-1", Answer.NOT_EXERCISED),
    ]


def test_a_relation_that_breaks_where_its_code_ran_refutes_it():
    was, why = answer(strided(), calls=[called()], geometries={"r-1-prefill": BAD})
    assert was is Answer.REFUTED
    assert why == (
        "breaks on prefill of process 1 (kv region 2 'layer 2' slot 0 (byte 0): index 12 is taken "
        "for its slot 0, which is 10: 2 too far, slot 2 (byte 512) of region 2 'layer 2'); its "
        "code ran (12 make_prepped_xfer)"
    )


def test_a_guard_that_does_not_hold_is_named():
    was, why = answer(guarded(), violations=[wrong()], calls=[called()])
    assert was is Answer.REFUTED
    assert "its guard at examples/serve.py:44 does not hold" in why.split("; ")


# Confirmed.


def test_it_is_confirmed_where_its_code_ran_and_it_holds():
    was, why = answer(strided(), calls=[called()], geometries={"r-1-prefill": GOOD})
    assert was is Answer.CONFIRMED
    assert why == (
        "holds on prefill of process 1 (kv: 3 regions); its code ran (12 make_prepped_xfer)"
    )


def test_it_is_confirmed_where_its_check_has_looked_and_found_nothing():
    was, why = answer(strided(), calls=[called(column=11)])
    assert was is Answer.CONFIRMED
    assert why == (
        "column has looked at 11 calls, and found none wrong; its code ran (12 make_prepped_xfer)"
    )


def test_a_guard_settles_what_ran_and_nothing_that_did_not():
    was, why = answer(guarded(), calls=[called()])
    assert (was, why) == (
        Answer.CONFIRMED,
        "settled by examples/serve.py:44; its code ran (12 make_prepped_xfer)",
    )
    assert answer(guarded(), calls=[called(stack=OTHER)])[0] is Answer.NOT_EXERCISED


# Not exercised: what proves nothing.


@pytest.mark.parametrize(
    ("calls", "geometries", "why"),
    [
        ([], {}, "this run has no record of calls"),
        ([], {"r-1-prefill": GOOD}, "this run has no record of calls"),
        ([called(stack=OTHER)], {"r-1-prefill": GOOD}, "its code was not seen in this run"),
        (
            [called(stack=OTHER), called(stack=[])],
            {"r-1-prefill": GOOD},
            "its code was not seen in this run, as far as its calls were told apart",
        ),
        (
            [called()],
            {"r-2-decode": GOOD},
            "its code ran (12 make_prepped_xfer), and no geometry of that process was captured",
        ),
        (
            [called()],
            {"r-1-prefill": geometry(6, 6, name="aux")},
            "its code ran (12 make_prepped_xfer), and nothing is decided by prefill of process 1 "
            "(there is no kv list)",
        ),
        (
            [called(stack=OTHER)],
            {"r-1-prefill": BAD},
            "its code was not seen in this run; would break on prefill of process 1 (kv region 2 "
            "'layer 2' slot 0 (byte 0): index 12 is taken for its slot 0, which is 10: 2 too far, "
            "slot 2 (byte 512) of region 2 'layer 2')",
        ),
    ],
)
def test_nothing_is_confirmed_on_nothing(calls, geometries, why):
    assert answer(strided(), calls=calls, geometries=geometries) == (Answer.NOT_EXERCISED, why)


def test_where_each_call_was_right_though_it_breaks_the_code_has_gone_another_way():
    given = {"geometries": {"r-1-prefill": BAD}}
    was, why = answer(strided(), calls=[called(column=12)], **given)
    assert was is Answer.NOT_EXERCISED
    assert why.startswith(
        "its code ran (12 make_prepped_xfer), and column has looked at 12 calls, and found none "
        "that rests on it; would break on prefill of process 1"
    )
    prepared = called(call="prep_xfer_dlist")
    assert answer(strided(), calls=[called(column=12), prepared], **given)[0] is (
        Answer.NOT_EXERCISED
    )
    # One that nobody has looked at, or that came from nobody knows where, may have been it.
    assert answer(strided(), calls=[called(column=11)], **given)[0] is Answer.REFUTED
    calls = [called(column=12), called(stack=[])]
    assert answer(strided(), calls=calls, **given)[0] is Answer.REFUTED
    assert answer(strided(), calls=[prepared], **given)[0] is Answer.REFUTED


def test_a_check_that_sees_only_what_breaks_confirms_nothing():
    freed = one(code="KV504", places=(place(),))
    assert answer(freed, calls=[called(stale_list=12)])[0] is Answer.NOT_EXERCISED


def test_what_a_check_has_found_in_the_same_code_is_no_silence():
    other = wrong(code=None, check="column")
    assert answer(strided(), calls=[called(column=12)], violations=[other])[0] is (
        Answer.NOT_EXERCISED
    )


def test_silence_of_a_process_whose_violations_were_lost_confirms_nothing():
    story = put_together([], [], calls=[called(column=12)])
    process = Process(1, met=True, hooked=True, switched_off=(), run="r", violations=3)
    assert lost([process], story.violations) == {("r", 1)}
    story.lost = lost([process], story.violations)
    (found,) = judge([strided()], story, {}, story.calls)
    assert found.answer is Answer.NOT_EXERCISED
    told = put_together([wrong(count=3)], [])
    assert lost([process], told.violations) == frozenset()


def test_a_constructor_is_known_to_have_run_by_the_methods_of_its_class():
    made = strided(places=(place("Worker.__init__", 42),))
    was, why = answer(made, calls=[called(column=12)], geometries={"r-1-prefill": GOOD})
    assert was is Answer.CONFIRMED
    assert why.endswith("its class or module was in use (12 make_prepped_xfer)")
    # The calls of its class need not be of what it has made.
    assert answer(made, calls=[called(column=12)])[0] is Answer.NOT_EXERCISED


# Whose geometry it is.


def test_geometry_of_another_process_or_run_is_not_that_of_the_code():
    labels = {"r-2-prefill": BAD, "s-1-prefill": BAD, "r-1-prefill": GOOD, "odd": BAD, "": BAD}
    (found,) = judged(strided(), calls=[called()], geometries=labels)
    assert found.answer is Answer.CONFIRMED
    assert [label for label, _ in found.on] == list(labels)


def test_of_what_kvlint_has_folded_only_the_lists_count_that_the_code_has_used():
    both = Geometry(
        (*geometry(6, 6, name="kv.1").regions, *_renamed(geometry(6, 4, 8, name="kv.3").regions)),
        FOLDED,
    )
    given = {"geometries": {"r-1-prefill": both}}
    assert answer(strided(), calls=[called(lists=[1])], **given)[0] is Answer.CONFIRMED
    assert answer(strided(), calls=[called(lists=[3, 1])], **given)[0] is Answer.REFUTED
    assert answer(strided(), calls=[called(lists=[2])], **given)[0] is Answer.NOT_EXERCISED


def _renamed(regions):
    return [replace(region, name=f"{region.name} again") for region in regions]


@pytest.mark.parametrize(
    ("names", "side", "was"),
    [
        (("a", "b"), "local", Answer.CONFIRMED),
        (("a", None), "local", Answer.NOT_EXERCISED),
        ((None, None), "local", Answer.NOT_EXERCISED),
        ((None, None), "remote", Answer.CONFIRMED),
    ],
)
def test_geometry_that_lacks_regions_of_the_list_confirms_nothing(names, side, was):
    found = answer(
        strided(),
        calls=[called(lists=[1])],
        lists=[listed(names=names, side=side)],
        geometries={"r-1-prefill": GOOD},
    )
    assert found[0] is was


# All of them.


def test_what_is_refuted_comes_first_and_every_hypothesis_once():
    hypotheses = [
        strided(1, places=(place("nowhere"),)),
        strided(2, places=(place("Worker.prepare", 50),)),
        strided(3),
    ]
    calls = [called(), called(stack=OTHER, call="prep_xfer_dlist")]
    found = judged(hypotheses, calls=calls, violations=[wrong()], geometries={"r-1-prefill": GOOD})
    assert [(one.hypothesis.id, one.answer.value, one.calls) for one in found] == [
        ("KV103-3", "refuted", 12),
        ("KV103-2", "confirmed", 12),
        ("KV103-1", "not exercised", 0),
    ]
    lines = list(judgements.tell(found))
    assert lines[-1] == "3 hypotheses: 1 refuted, 1 confirmed, 1 not exercised"
    assert [line for line in lines if line and not line.startswith(" ")][:-1] == [
        "refuted (1)",
        "confirmed (1)",
        "not exercised (1)",
    ]


def test_as_an_object_it_is_plain_data():
    (found,) = judged(strided(), violations=[wrong()], geometries={"r-1-prefill": BAD})
    told = json.loads(json.dumps(judgements.as_object(found)))
    assert (told["id"], told["answer"], told["observations"]) == ("KV103-0", "refuted", 1)
    assert told["violations"] == [{"run": "r", "pid": 1, "number": 1}]
    assert [one["outcome"] for one in told["geometries"]] == ["broken"]


FIELDS = ("call", "stack", "count", "checked", "agents", "lists")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just(SEND[1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.fixed_dictionaries(
            {"kind": st.just("called")},
            optional=dict.fromkeys(
                ("call", "stack", "count", "checked", "agents", "lists"), ANYTHING
            ),
        ),
        max_size=3,
    ),
    st.lists(ANYTHING, max_size=3),
    st.dictionaries(st.text(max_size=12), st.just(BAD), max_size=3),
)
def test_hostile_records_are_told_on_one_line_or_passed_over(calls, sites, geometries):
    hypotheses = [strided(message="\x1b[2J\nx", places=(place(path="a\nb.py"),)), strided(1)]
    found = judged(
        hypotheses, calls=calls, violations=[violation(sites=sites)], geometries=geometries
    )
    assert len(found) == 2
    assert all(line.isprintable() for line in judgements.tell(found))


def test_that_the_source_of_a_value_ran_does_not_show_that_it_was_used():
    sink = strided(
        places=(place("Worker.mixed", 99),), trace=(place("Worker.prepare", 50), place())
    )
    assert answer(sink, calls=[called()], violations=[wrong()], geometries={"r-1-p": BAD})[0] is (
        Answer.NOT_EXERCISED
    )
    through = strided(places=sink.places, trace=(place("Worker.mixed", 98), place()))
    given = {"calls": [called()], "geometries": {"r-1-p": BAD}}
    assert answer(through, **given)[0] is Answer.NOT_EXERCISED
    source = replace(through, code="KV101")
    assert answer(source, **given)[0] is Answer.REFUTED


def test_of_declared_lists_those_count_that_the_code_has_used():
    draft = [replace(r, name=f"draft {r.name}", list="kv.draft") for r in BAD.regions]
    both = Geometry((*GOOD.regions, *draft), "engine 1.0")
    names = [region.name for region in GOOD.regions]
    others = [region.name for region in draft]
    for own, was in ((names, Answer.CONFIRMED), (others, Answer.REFUTED)):
        found, _ = answer(
            strided(),
            calls=[called(lists=[1])],
            lists=[listed(names=own)],
            geometries={"r-1-prefill": both},
        )
        assert found is was


def test_a_geometry_of_more_lists_than_were_kept_with_the_call_confirms_nothing():
    found, _ = answer(strided(), calls=[called(lists=range(64))], geometries={"r-1-prefill": GOOD})
    assert found is Answer.NOT_EXERCISED


def test_what_no_line_tells_apart_is_of_the_one_that_nothing_settles():
    open_one = strided(1, places=(place(line=71),))
    settled = guarded(number=2, places=(place(line=72),))
    found = judged([settled, open_one], violations=[wrong()], calls=[called()])
    assert [(one.hypothesis.id, one.answer) for one in found] == [
        ("KV103-1", Answer.REFUTED),
        ("KV103-2", Answer.CONFIRMED),
    ]


def test_of_ranks_that_are_alike_each_is_told_and_addresses_count_where_they_are_meant():
    moved = Geometry(tuple(replace(r, address=r.address + 256) for r in BAD.regions), "e", "rank 1")
    labels = {"r-1-a": BAD, "r-1-b": moved, "r-1-c": GOOD}
    (found,) = judged(strided(), calls=[called()], geometries=labels)
    assert [one.outcome.value for _, one in found.on] == ["broken", "broken", "holds"]
    at_one = Relation(Entry("address", 0), "=", Own("address"))
    same = Geometry(tuple(replace(r, address=0) for r in BAD.regions))
    labels = {"r-1-a": BAD, "r-1-b": same}
    (found,) = judged(strided(relation=at_one), calls=[called()], geometries=labels)
    assert [one.outcome.value for _, one in found.on] == ["broken", "holds"]


def test_a_guard_that_refuses_the_geometry_on_which_its_code_ran_settles_nothing():
    uniform = Guard(Relation(Own("slots"), "=", Entry("slots", 0)), place("Worker.prepare", 44))
    checked = strided(status=Status.GUARDED, guards=(uniform,))
    found, why = answer(checked, calls=[called()], geometries={"r-1-prefill": BAD})
    assert found is Answer.NOT_EXERCISED
    assert "lets no such list through" in why
    assert answer(checked, calls=[called()])[0] is Answer.CONFIRMED
    found, _ = answer(checked, calls=[called()], geometries={"r-1-prefill": GOOD})
    assert found is Answer.CONFIRMED
