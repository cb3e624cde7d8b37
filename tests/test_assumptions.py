"""The language of assumptions, and the one procedure that decides them."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from time import perf_counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kvlint.assumptions import (
    AssumptionError,
    Entry,
    Expression,
    Least,
    Most,
    Number,
    Own,
    Product,
    Quotient,
    Relation,
    Starts,
    Unknown,
    breaks_on,
    holds,
    refute,
)
from kvlint.geometry import Region

SLOTS = Own("slots")
FIRST = Entry("slots", 0)
CONSTANT_STRIDE = Relation(Starts(SLOTS), "=", Starts(FIRST))
UNIFORM = Relation(SLOTS, "=", FIRST)
SIX = Relation(SLOTS, "=", Product(Number(2), Number(3)))
LENGTH = Own("region length")
ITEM = Own("item length")


def expressions(quantities: Sequence[str], names: Sequence[str]) -> st.SearchStrategy[Any]:
    quantity = st.sampled_from(quantities)
    leaves = (
        st.builds(Own, quantity)
        | st.builds(Entry, quantity, st.integers(-1, 2))
        | st.builds(Least, quantity)
        | st.builds(Most, quantity)
        | st.builds(Number, st.integers(0, 3))
        | st.builds(Unknown, st.sampled_from(names))
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(Starts, inner)
            | st.builds(Product, inner, inner)
            | st.builds(Quotient, inner, inner)
        ),
        max_leaves=3,
    )


def relations(quantities: Sequence[str], names: Sequence[str]) -> st.SearchStrategy[Relation]:
    side = expressions(quantities, names)
    return st.builds(Relation, side, st.sampled_from(["=", "<=", "divides"]), side)


slot_relations = relations(["slots"], ["c"])
rich_relations = relations(["slots", "item length", "region length", "heads"], ["c", "d"])


def value(expression: Expression, i: int, slots: Sequence[int], c: int) -> int:
    """What the expression means, written a second time, one region at a time."""
    match expression:
        case Own():
            return slots[i]
        case Entry(_, k):
            return slots[k]
        case Least():
            return min(slots)
        case Most():
            return max(slots)
        case Starts(count):
            return sum([value(count, j, slots, c) for j in range(len(slots))][:i])
        case Number(number):
            return number
        case Unknown():
            return c
        case Product(left, right):
            return value(left, i, slots, c) * value(right, i, slots, c)
        case Quotient(left, right):
            return value(left, i, slots, c) // value(right, i, slots, c)


def broken_at(relation: Relation, slots: Sequence[int], c: int) -> list[int]:
    tests: dict[str, Callable[[int, int], bool]] = {
        "=": lambda left, right: left == right,
        "<=": lambda left, right: left <= right,
        "divides": lambda left, right: any(left * k == right for k in range(right + 1)),
    }
    sides = [
        (value(relation.left, i, slots, c), value(relation.right, i, slots, c))
        for i in range(len(slots))
    ]
    return [i for i, side in enumerate(sides) if not tests[relation.operator](*side)]


def tried(*relations: Relation) -> list[int]:
    """1 to 4, and n and n + 1 for every n >= 4 that literals make, alone or multiplied."""
    values = set(range(1, 5))
    parts = [side for each in relations for side in (each.left, each.right)]
    while parts:
        part = parts.pop()
        if isinstance(part, Product | Quotient):
            parts += [part.left, part.right]
        elif isinstance(part, Starts):
            parts.append(part.count)
        with suppress(IndexError, ZeroDivisionError):
            # What gives the same number for all slots and every c is made of literals, or of
            # a quotient such as slots // slots, which is 0 or 1 and adds nothing.
            alone = {value(part, 0, [n], c) for n in (1, 2, 3, 5) for c in (1, 2, 3, 5)}
            if len(alone) == 1 and (n := alone.pop()) >= 4:
                values |= {n, n + 1}
    return sorted(values)


def brute_force(
    relation: Relation, guards: Sequence[Relation]
) -> tuple[tuple[int, ...], int, int] | None:
    """Every list of 1 to 4 regions of any tried count of slots and every tried c, the smallest."""
    found = []
    values = tried(relation, *guards)
    for count in range(1, 5):
        for *slots, c in product(values, repeat=count + 1):
            try:
                if any(broken_at(guard, slots, c) for guard in guards):
                    continue
                if broken := broken_at(relation, slots, c):
                    found.append((count, sum(slots), [-n for n in slots], c, broken[0]))
            except (IndexError, ZeroDivisionError):
                continue
    if not found:
        return None
    *_, negated, c, region = min(found)
    return tuple(-n for n in negated), c, region


@settings(deadline=None)
@given(slot_relations, st.lists(slot_relations, max_size=1))
@example(Relation(Own("slots"), "=", Starts(Own("slots"))), [SIX])
def test_the_smallest_counterexample_is_found(relation: Relation, guards: list[Relation]) -> None:
    found, expected = refute(relation, guards), brute_force(relation, guards)
    if found is None:
        assert expected is None
    else:
        c = dict(found.unknowns).get("c", 1)
        assert (found.slots, c, found.region) == expected
        assert (found.left, found.right) == tuple(
            value(side, found.region, found.slots, c) for side in (relation.left, relation.right)
        )


@settings(deadline=None)
@given(rich_relations, st.lists(rich_relations, max_size=2))
def test_a_counterexample_breaks_its_relation_and_meets_the_guards(
    relation: Relation, guards: list[Relation]
) -> None:
    if found := refute(relation, guards):
        assert breaks_on(relation, found.case) == found
        assert all(holds(guard, found.case) for guard in guards)
        if "region length" in dict(found.quantities):
            assert holds(Relation(Quotient(LENGTH, ITEM), "=", SLOTS), found.case)


def cumulative(count: Expression) -> Relation:
    """Starts(n x c) = Starts(n) x c, for a c that is one for all regions."""
    factor = Unknown("c")
    return Relation(Starts(Product(count, factor)), "=", Product(Starts(count), factor))


@settings(deadline=None)
@given(expressions(["slots", "heads"], ["d"]))
def test_what_holds_by_construction_is_never_refuted(expression: Expression) -> None:
    assert refute(cumulative(expression)) is None


def test_a_guard_that_says_the_same_settles_it() -> None:
    assert refute(CONSTANT_STRIDE, [UNIFORM]) is None
    assert refute(CONSTANT_STRIDE, [Relation(Most("slots"), "=", Least("slots"))]) is None
    assert refute(CONSTANT_STRIDE, [Relation(ITEM, "=", Entry("item length", 0))]) is not None


@pytest.mark.parametrize(
    ("relation", "guards", "says"),
    [
        (
            CONSTANT_STRIDE,
            [],
            "3 regions of 2, 1, 1 slots: region 2: descriptors before region 2 is 3, 2 * S0 is 4",
        ),
        (
            Relation(Own("device"), "=", Unknown("rank")),
            [],
            "1 region of 1 slot (device 2; rank 1): region 0: device of region 0 is 2, rank is 1",
        ),
        (
            Relation(ITEM, "divides", LENGTH),
            [],
            "1 region of 1 slot (item length 2; region length 3): "
            "region 0: item length of region 0 is 2, length of region 0 is 3",
        ),
        (
            Relation(Quotient(LENGTH, ITEM), "=", SLOTS),
            [Relation(Own("transfer length"), "<=", ITEM)],
            "1 region of 1 slot (item length 2; region length 1; transfer length 1): "
            "region 0: "
            "(length of region 0) // (item length of region 0) is 0, slots of region 0 is 1",
        ),
        (
            Relation(Starts(SLOTS), "<=", Number(2**31 - 1)),
            [],
            "2 regions of 2147483648, 1 slots: region 1: "
            "descriptors before region 1 is 2147483648, against 2147483647",
        ),
        (
            Relation(SLOTS, "<=", Product(Number(8), Number(8))),
            [],
            "1 region of 65 slots: region 0: slots of region 0 is 65, 8 * 8 is 64",
        ),
        (
            Relation(Starts(Product(SLOTS, ITEM)), "=", Starts(Product(FIRST, ITEM))),
            [Relation(Number(576), "=", ITEM)],
            "3 regions of 2, 1, 1 slots (item length 576, 576, 576): "
            "region 2: "
            "sum of ((slots of region j) * (item length of region j)) over j < 2 is 1728, "
            "sum of ((slots of region 0) * (item length of region j)) over j < 2 is 2304",
        ),
    ],
)
def test_the_answer_in_words(relation: Relation, guards: list[Relation], says: str) -> None:
    assert str(refute(relation, guards)) == says


@pytest.mark.parametrize(
    ("relation", "guards"),
    [
        (Relation(Least("slots"), "<=", SLOTS), []),
        (Relation(Quotient(LENGTH, ITEM), "=", SLOTS), []),
        (Relation(SLOTS, "<=", Number(64)), [Relation(SLOTS, "<=", Number(8))]),
        (UNIFORM, [Relation(SLOTS, "=", Number(1)), Relation(SLOTS, "=", Number(2))]),
    ],
)
def test_settled(relation: Relation, guards: list[Relation]) -> None:
    assert refute(relation, guards) is None


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (Starts(SLOTS), "descriptors before region i"),
        (Starts(FIRST), "i * S0"),
        (Starts(Number(1)), "i"),
        (Starts(Unknown("num_blocks")), "i * num_blocks"),
        (Starts(Entry("item length", -1)), "i * (item length of the last region)"),
        (Starts(Starts(ITEM)), "sum of (sum of (item length of region k) over k < j) over j < i"),
        (Entry("dtype", 3), "dtype of region 3"),
        (Quotient(LENGTH, ITEM), "(length of region i) // (item length of region i)"),
        (
            Product(Least("slots"), Most("heads")),
            "(least slots of any region) * (greatest heads of any region)",
        ),
    ],
)
def test_the_formula_in_words(expression: Expression, says: str) -> None:
    assert str(expression) == says


def test_a_relation_in_words() -> None:
    assert str(CONSTANT_STRIDE) == "descriptors before region i = i * S0"


@given(rich_relations)
def test_a_relation_round_trips_through_json(relation: Relation) -> None:
    again = Relation.from_dict(json.loads(json.dumps(relation.to_dict())))
    assert again == relation
    assert hash(again) == hash(relation)


def test_a_counterexample_is_json() -> None:
    found = refute(Relation(Product(SLOTS, Own("heads")), "=", Unknown("c")))
    assert found is not None
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert found.to_dict() == {
        "slots": [1],
        "quantities": {"heads": [2]},
        "unknowns": {"c": 1},
        "region": 0,
        "left": 2,
        "right": 1,
    }


def nested(depth: int) -> dict[str, Any]:
    form: dict[str, Any] = {"own": "slots"}
    for _ in range(depth):
        form = {"starts": form}
    return form


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (3, "an expression has one field, one of own, entry"),
        ({}, "an expression has one field"),
        ({"own": "slots", "least": "slots"}, "an expression has one field"),
        ({"lambda": "x"}, "an expression has one field"),
        ({"own": 3}, "own has a part of the wrong type"),
        ({"entry": "slots"}, "entry takes a list of 2"),
        ({"entry": ["slots", 0, 1]}, "entry takes a list of 2"),
        ({"number": True}, "number has a part of the wrong type"),
        ({"number": -1 << 64}, "number has a number that does not fit 64 bits"),
        ({"product": [{"number": 1}, None]}, "an expression has one field"),
        (nested(500), "an expression nests deeper than 32"),
    ],
)
def test_an_expression_that_is_none_is_refused(left: Any, says: str) -> None:
    with pytest.raises(AssumptionError, match=f"^{says}[^\n]*$"):
        Relation.from_dict({"left": left, "operator": "=", "right": {"own": "slots"}})


@pytest.mark.parametrize("change", [{"operator": "<"}, {"operator": ["="]}, {"also": 1}])
def test_a_relation_that_is_none_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(AssumptionError, match="operator"):
        Relation.from_dict(UNIFORM.to_dict() | change)


def pool(*slots: int, **fields: Any) -> list[Region]:
    common: dict[str, Any] = {"stride": 256, "transfer_length": 256, "list": "kv"}
    common |= {"memory_kind": "VRAM", "device": 0}
    return [
        Region(
            name=f"layer {i}",
            address=i << 32,
            length=256 * n,
            **(common | {name: column[i] for name, column in fields.items()}),
        )
        for i, n in enumerate(slots)
    ]


def test_a_real_list_is_decided() -> None:
    assert holds(CONSTANT_STRIDE, pool(164, 164, 288))
    assert str(breaks_on(CONSTANT_STRIDE, pool(164, 161, 288))) == (
        "3 regions of 164, 161, 288 slots: region 2: "
        "descriptors before region 2 is 325, 2 * S0 is 328"
    )
    assert holds(Relation(Unknown("n"), "<=", SLOTS), pool(164, 161), {"n": 161, "other": 999})


def test_names_are_compared_for_equality() -> None:
    uniform = Relation(Own("dtype"), "=", Entry("dtype", 0))
    assert holds(uniform, pool(1, 1, dtype=["bfloat16", "bfloat16"]))
    assert not holds(uniform, pool(1, 1, dtype=["bfloat16", "uint8"]))


@pytest.mark.parametrize(
    ("relation", "regions", "says"),
    [
        (UNIFORM, [], "the list has no region"),
        (Relation(SLOTS, "<=", Unknown("n")), pool(1), "nothing says what 'n' is here"),
        (Relation(Own("heads"), "=", SLOTS), pool(1), "nothing says what 'heads' is here"),
        (
            Relation(Own("dtype"), "=", Entry("dtype", 0)),
            pool(1, 1, dtype=["uint8", None]),
            "nothing says what 'dtype' is here",
        ),
        (Relation(SLOTS, "=", Entry("slots", 2)), pool(1, 1), "the list has only 2 regions"),
        (Relation(Quotient(SLOTS, Own("device")), "=", SLOTS), pool(1), "divides by 0"),
    ],
)
def test_what_cannot_be_decided_says_why(
    relation: Relation, regions: list[Region], says: str
) -> None:
    with pytest.raises(AssumptionError) as caught:
        holds(relation, regions)
    assert str(caught.value).startswith(f"{relation}: {says}")


def test_a_long_list_is_shown_in_short() -> None:
    assert "40 regions of 2, 1, 1, 1, 1, 1, 1, 1, ... slots" in str(
        breaks_on(UNIFORM, pool(2, *[1] * 39))
    )


def test_many_quantities_stay_bounded() -> None:
    names = [f"q{number}" for number in range(30)]
    everything: Expression = Number(1)
    for name in names:
        everything = Product(everything, Product(Own(name), Unknown(name)))
    started = perf_counter()
    assert refute(Relation(everything, "=", Product(everything, Number(1)))) is None
    assert perf_counter() - started < 5
