"""A file of assumptions is read as it was written, and nothing else is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.assumptions import Entry, Own, Relation
from kvlint.findings import Confidence, Severity, Span, Status
from kvlint.hypotheses import Assumptions, Guard, Hypothesis, HypothesisError, Place

SLOTS = Relation(Entry("slots", 0), "=", Own("slots"))
TEXTS = st.text(st.characters(codec=None), max_size=12)
SPANS = st.builds(Span, TEXTS, *(st.integers(1, 10**6) for _ in range(4)))
PLACES = st.builds(Place, SPANS, TEXTS, TEXTS)
HYPOTHESES = st.builds(
    Hypothesis,
    id=TEXTS,
    code=TEXTS,
    name=TEXTS,
    relation=st.just(SLOTS),
    lists=st.lists(st.sampled_from(["kv", "state", "aux"])).map(tuple),
    every=st.booleans(),
    status=st.sampled_from(Status),
    severity=st.sampled_from(Severity),
    confidence=st.sampled_from(Confidence),
    message=TEXTS,
    settle=TEXTS,
    places=st.lists(PLACES, min_size=1, max_size=2).map(tuple),
    trace=st.lists(PLACES, max_size=2).map(tuple),
    guards=st.lists(st.builds(Guard, st.sampled_from([None, SLOTS]), PLACES), max_size=2).map(
        tuple
    ),
    counterexample=st.none() | TEXTS,
    holds_today=st.none() | TEXTS,
    unresolved=st.lists(TEXTS, max_size=2).map(tuple),
    silenced_by=st.none() | TEXTS,
)


@given(st.lists(HYPOTHESES, max_size=3))
def test_what_is_written_is_read_again(hypotheses):
    written = Assumptions(tuple(hypotheses), "0.1.0")
    assert Assumptions.from_json(written.to_json()) == written


def one(**fields):
    place = Place(Span("a.py", 3, 1, 3, 9), "here", "Pool.send")
    given = {
        "id": "KV101-0",
        "code": "KV101",
        "name": "first-region-stands-for-all",
        "relation": SLOTS,
        "lists": ("kv",),
        "every": True,
        "status": Status.UNGUARDED,
        "severity": Severity.ERROR,
        "confidence": Confidence.HIGH,
        "message": "m",
        "settle": "s",
        "places": (place,),
    }
    return Hypothesis(**{**given, **fields})


def form():
    return json.loads(Assumptions((one(),), "0.1.0").to_json())


def refused(form):
    with pytest.raises(HypothesisError) as error:
        Assumptions.from_json(form if isinstance(form, (str, bytes)) else json.dumps(form))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200
    return str(error.value)


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "null", "{}", '{"schema": 1}', b"\xff\x00", "[" * 10**5]
)
def test_another_file_is_refused_in_one_line(text):
    assert refused(text)


def test_another_schema_is_named():
    assert refused(form() | {"schema": 7}) == "schema 7 is not known, only 1 is"
    assert refused(form() | {"schema": True}) == "schema True is not known, only 1 is"
    assert len(refused(form() | {"schema": "7" * 5000})) < 80


def product(leaves):
    half = leaves // 2
    if not half:
        return {"number": 2**63}
    return {"product": [product(half), product(leaves - half)]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("relation", {"left": product(400), "operator": "=", "right": {"own": "slots"}}),
        ("confidence", "certain" * 1000),
        ("id", None),
        ("relation", {"left": 1}),
        ("relation", None),
        ("lists", ["kv", "other"]),
        ("lists", "kv"),
        ("status", "settled"),
        ("confidence", "certain"),
        ("places", []),
        ("places", [{"path": "a.py"}]),
        ("places", [{"path": "a.py", "line": 0}]),
        ("trace", None),
        ("guards", [3]),
        ("guards", [{"relation": 5, "place": None}]),
        ("unresolved", [1]),
        ("silenced_by", 3),
    ],
)
def test_a_broken_entry_is_named(field, value):
    broken = form()
    broken["assumptions"][0][field] = value
    assert refused(broken).startswith("assumptions[0]")


def test_a_line_that_is_none_is_refused():
    broken = form()
    broken["assumptions"][0]["places"][0]["line"] = 0
    assert "counts lines and columns from 1" in refused(broken)


def test_a_guard_is_named_where_it_settles_and_only_there():
    place = Place(Span("a.py", 9, 1, 9, 2), "checked")
    assert one(guards=(Guard(None, place),)).guard is None
    assert one(guards=(Guard(None, place),), status=Status.GUARDED).guard == Guard(None, place)
    by_construction = (Guard(SLOTS, place), Guard(None, place))
    assert one(guards=by_construction, status=Status.GUARDED).guard == Guard(None, place)
