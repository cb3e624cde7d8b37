"""Code that nests too deep is told apart before libcst sees it."""

import ast
from textwrap import indent

import pytest

from kvlint.analysis.depth import MAX_DEPTH, nests_too_deep
from kvlint.analysis.outline import outline

DEEP = MAX_DEPTH + 50


def in_a_function(text: str) -> str:
    return f"def before():\n    pass\n\ndef f(x):\n{indent(text, '    ')}\n    return x\n"


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "-" * DEEP + "x",
        "x = " + "~" * DEEP + "x",
        "x = " + "not " * DEEP + "x",
        "x = " + "lambda: " * DEEP + "x",
        "x = " + "1 if x else " * DEEP + "x",
        "x = x" + " ** 2" * DEEP,
        "x = x" + " + x" * DEEP,
        "x = x" + ".x" * DEEP,
        "x = x" + "()" * DEEP,
        "x = x" + "[0]" * DEEP,
        "x = " + "f(\n" * DEEP + ")" * DEEP,
        "if " + "-" * DEEP + "x:\n    pass",
        "for y in " + "-" * DEEP + "x:\n    pass",
        "with open(" + "-" * DEEP + "x):\n    pass",
        "try:\n    pass\nexcept E:\n    x = " + "-" * DEEP + "x",
        "match x:\n    case 1:\n        x = " + "-" * DEEP + "x",
        "def g(y=" + "-" * DEEP + "1):\n    pass",
        "@d(" + "-" * DEEP + "1)\ndef g():\n    pass",
    ],
)
def test_deep_expressions_are_seen_wherever_they_stand(text):
    before, f = outline("a.py", in_a_function(text)).definitions.values()
    assert f.too_deep >= 5
    assert not before.too_deep


@pytest.mark.parametrize(
    "text",
    [
        "x = [" + "-x, " * DEEP + "]",
        "x = x" + " and x" * DEEP,
        "x = 1 < x" + " < x" * DEEP,
        "x = 'a' " + "'b' " * DEEP,
        "x = f(" + "x=" + "(" * 90 + "x" + ")" * 90 + ")",
        "\n".join(["x = x + 1"] * DEEP),
        "if x:\n    pass\n" + "elif -x:\n    pass\n" * DEEP,
    ],
)
def test_what_is_long_alone_is_not_deep(text):
    _, f = outline("a.py", in_a_function(text)).definitions.values()
    assert not f.too_deep


def test_the_last_level_is_still_read():
    def deep(levels: int) -> bool:
        text = "x = " + "-" * (levels - 1) + "x" + "  # ............................"
        return nests_too_deep(ast.parse(text).body[0], [text])

    assert not deep(MAX_DEPTH - 1)
    assert deep(MAX_DEPTH + 1)
