# ruff: noqa: E501 (small programs read better on one line)
"""What one pass over a definition understands."""

import pytest

from kvlint.analysis.showing import show
from kvlint.analysis.terms import Opaque


def returned(body) -> str:
    return show(body.returns[-1].term)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("def f(l, c):\n    return (l * c) // l", "c"),
        (
            "def f(xs):\n    n = 0\n    for x in xs:\n        n += x\n    return n",
            "0 + sum([xs[i] ...])",
        ),
        (
            "def f(xs):\n    out = []\n    for x in xs:\n        out.append(x + 1)\n    return out",
            "[xs[i] + 1 ...]",
        ),
        (
            "def f(a, b, t):\n    if t:\n        n = a\n    else:\n        n = b\n    return n",
            "a if t else b",
        ),
        ("def f(a, t):\n    if t is None:\n        return 0\n    return a", "a"),
        ("def f(d):\n    return next(iter(d.values())).shape", "d[0].shape"),
        ("def f(d):\n    _, first = next(iter(d.items()))\n    return first", "d[0]"),
        ("def f(xs):\n    first, *rest = xs\n    return first", "xs[0]"),
        ("def f(xs):\n    return [x // 2 for x in xs][0]", "xs[0] // 2"),
        (
            "import numpy as np\ndef f(xs):\n    return np.asarray(xs).astype(int).ravel().tolist()",
            "xs",
        ),
        ("import numpy as np\ndef f(n):\n    return np.arange(n)[:, None] * 4", "range(n) * 4"),
        ("def f(self):\n    self.n = 3\n    return self.n", "3"),
        ("def f(xs):\n    if (n := len(xs)) > 1:\n        return n\n    return n", "len(xs)"),
    ],
)
def test_values(lowered, text, value):
    assert returned(lowered(text + "\n")) == value


def test_what_is_not_followed_says_why(lowered):
    body = lowered(
        "def f(xs):\n    while xs:\n        n = 0\n        n += 1\n    return (yield xs)\n"
    )
    (opaque,) = (t for t in body.returns[-1].term.walk() if isinstance(t, Opaque))
    assert opaque.why == "what a generator is sent"


def test_a_body_that_grows_without_end_is_cut_with_a_reason(lowered):
    text = "def f(a):\n" + "    a = a * a + a\n" * 12 + "    return a\n"
    assert lowered(text).returns[-1].term == Opaque("grows too large to follow")


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        ("assert n == m", "n == m"),
        ("if n != m:\n        raise ValueError", "not (n != m)"),
        ("if not n == m:\n        return", "not not (n == m)"),
        ("for x in xs:\n        assert x == n", "all([xs[i] == n ...])"),
    ],
)
def test_guards_hold_for_what_comes_after(lowered, check, holds):
    body = lowered(f"def f(n, m, xs):\n    {check}\n    return n\n")
    (last,) = body.returns[-1:]
    assert holds in [show(g.condition) for g in body.guards if g.where.dominates(last.where)]


def test_a_guard_in_a_branch_does_not_dominate_what_follows_the_branch(lowered):
    body = lowered("def f(n, m, t):\n    if t:\n        assert n == m\n    return n\n")
    (last,) = body.returns
    assert not any(g.where.dominates(last.where) and g.raises for g in body.guards)


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("out.append(x + 1)", "[xs[i] + 1 ...]"),
        ("out.extend([x, x])", "[[xs[i], xs[i]] ...]"),
        ("y = x * 2\n        out.append(y)", "[xs[i] * 2 ...]"),
        ("if x:\n            return\n        out.append(x)", "[xs[i] ...]"),
        ("out = [x]", "[]"),  # a name of its own
        ("add(x)", "[]"),
    ],
)
def test_what_a_nested_function_appends_is_in_the_list_around_it(lowered, inside, value):
    text = f"def f(xs):\n    out = []\n    def add(x):\n        {inside}\n    for x in xs:\n        add(x)\n    return out"
    assert returned(lowered(text)) == value


def test_what_a_nested_function_does_is_told_once(lowered):
    body = lowered(
        "def f(self, xs):\n    def put(x):\n        assert x\n        self.last = x\n        send(x)\n        return x\n    put(xs[0])\n    put(xs[1])"
    )
    assert [show(store.value) for store in body.stores] == ["x"]
    assert [site.call.name for site in body.calls].count("send") == 1
    assert len(body.guards) == 1
    assert body.returns == []


def test_nested_functions_that_call_each_other_come_to_an_end(lowered):
    calls = "\n".join(["        f{}(x)"] * 40)
    nested = "\n".join(
        f"    def f{n}(x):\n" + (calls.format(*[n - 1] * 40) if n else "        out.append(x)")
        for n in range(6)
    )
    body = lowered(f"def f(xs):\n    out = []\n{nested}\n    f5(xs)\n    return out")
    assert body.returns
