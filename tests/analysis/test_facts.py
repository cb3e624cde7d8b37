"""What a condition says about all regions."""

import pytest

from kvlint.analysis.guards import Bound, Uniform, facts
from kvlint.analysis.showing import show


def said(lowered, condition: str, holds: bool = True) -> list[str]:
    body = lowered(f"import numpy as np\ndef f(xs, ys, n):\n    return {condition}\n")
    found = facts(body.returns[0].term, holds)
    return [
        show(f.entry) + (f" {f.symbol} {show(f.limit)}" if isinstance(f, Bound) else "")
        for f in found
    ]


@pytest.mark.parametrize(
    "condition",
    [
        "len(set(xs)) == 1", "len(set(xs)) <= 1", "1 == len(set(xs))", "len(set(xs)) < 2",
        "not len(set(xs)) > 1", "min(xs) == max(xs)", "all(x == xs[0] for x in xs)",
        "not any(x != xs[0] for x in xs)", "np.all(xs == xs[0])", "(xs == xs[0]).all()",
        "len(np.unique(xs)) == 1", "xs.count(xs[0]) == len(xs)", "xs == [xs[0]] * len(xs)",
        "len({x for x in xs}) == 1", "all(x == n for x in xs)",
    ],
)  # fmt: skip
def test_uniform(lowered, condition):
    assert said(lowered, condition) == ["xs[0]"]


@pytest.mark.parametrize(
    ("condition", "holds", "fact"),
    [
        ("any(x != n for x in xs)", False, ["xs[0]"]),
        ("len(set(xs)) != 1 or n > 3", False, ["xs[0]"]),
        ("all(x.shape == xs[0].shape for x in xs)", True, ["xs[0].shape"]),
        ("all(x // y == n for x, y in zip(xs, ys))", True, ["xs[0] // ys[0]"]),
        ("all(x >= n for x in xs)", True, ["xs[0] >= n"]),
        ("len(xs) == len(ys)", True, []),
        ("any(x == n for x in xs)", True, []),
        ("len(set(xs)) == 1 or n", True, []),
    ],
)
def test_other_facts(lowered, condition, holds, fact):
    assert said(lowered, condition, holds) == fact


def test_one_region_is_alone(lowered):
    body = lowered("def f(xs):\n    return len(xs) == 1\n")
    (fact,) = facts(body.returns[0].term)
    assert isinstance(fact, Uniform)
    assert fact.alone
