"""When two formulas are one, and which numbers tell them apart."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.analysis.arithmetic import apart, evaluate, variable, variables
from kvlint.analysis.terms import Call, Fold, Literal, Operation, Parameter, Sequence, replace


def read(lowered, text):
    """A formula as the analysis has it: parameters of a function are its names."""
    body = lowered(
        f"import math\ndef f(size, page, small, budget_bytes, page_bytes):\n    return {text}\n"
    )
    return replace(
        body.returns[0].term,
        lambda part: variable(part.name) if isinstance(part, Parameter) else None,
        (Parameter,),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(size + page - 1) // page", "-(-size // page)"),
        ("cdiv(size, page)", "(page + size - 1) // page"),
        ("int(size / page)", "size // page"),
        ("2 * size * page", "page * (size + size)"),
        ("size + page", "page + small"),  # other names for the same
        ("max(size, page)", "max(page, size)"),
        ("size // 128 + 1", "(size + 128) // 128"),
        ("size << 2", "size * 4"),
    ],
)
def test_one_formula_in_other_words(lowered, one, other):
    assert apart(read(lowered, one), read(lowered, other)) is None
    assert apart(read(lowered, other), read(lowered, one)) is None


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("(size + page + 1) // page", "(size + page) // page", "with size 1, page 1: 3 and 2"),
        ("cdiv(size + page, 2)", "cdiv(size, 2) + page", "with size 1, page 1: 1 and 2"),
        ("(size + 127) // 128", "size // 128 + 1", "with size 128: 1 and 2"),
        ("size", "size + page", "with size 1, page 1: 1 and 2"),
        ("size * 64", "size * 65", "with size 1: 64 and 65"),
    ],
)  # fmt: skip
def test_the_smallest_numbers_that_tell_two_formulas_apart(lowered, one, other, told):
    assert str(apart(read(lowered, one), read(lowered, other))) == told


def test_bytes_and_tokens_are_told_apart_by_name_alone(lowered):
    told = apart(read(lowered, "budget_bytes // page_bytes"), read(lowered, "size // page"))
    assert told is not None
    assert told.by_name
    plain = apart(read(lowered, "budget_bytes // page_bytes"), read(lowered, "size * page"))
    assert plain is not None
    assert not plain.by_name


def test_what_cannot_be_worked_out_is_told_from_nothing():
    unknown = Call("plan.pages", None, ())
    assert apart(unknown, variable("size")) is None
    assert apart(Operation("+", unknown, Literal(1)), variable("size")) is None


@pytest.mark.parametrize(
    "formula",
    [
        Operation("**", Literal(2), Literal(10**9)), Operation("<<", Literal(1), Literal(10**9)),
        Operation("//", variable("size"), Literal(0)), Fold("min", Sequence(())),
    ],
)  # fmt: skip
def test_hostile_arithmetic_tells_nothing(formula):
    assert apart(formula, Operation("+", variable("size"), Literal(1))) is None


NAMES = st.sampled_from(["size", "page", "small"]).map(variable)
FORMULAS = st.recursive(
    NAMES | st.integers(1, 300).map(Literal),
    lambda inner: st.builds(
        Operation, st.sampled_from(["+", "*", "//", "-", "cdiv"]), inner, inner
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(FORMULAS, FORMULAS)
def test_numbers_that_are_told_do_tell_them_apart(one, other):
    told = apart(one, other)
    if told is not None and set(variables(other)) <= {name for name, _ in told.values}:
        at = dict(told.values)
        assert int(evaluate(one, at)) == told.left
        assert told.left != told.right


@settings(deadline=None, max_examples=60)
@given(FORMULAS)
def test_a_formula_is_itself(formula):
    assert apart(formula, formula) is None
    assert apart(formula, Operation("*", formula, Literal(1))) is None
