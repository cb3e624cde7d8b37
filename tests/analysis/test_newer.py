"""Syntax newer than the running Python is written over in place, whatever Python that is."""

import libcst
import pytest

from kvlint.analysis.newer import in_older_syntax
from kvlint.analysis.outline import outline

NEWER = [
    "def f[T: int, *Ts, **P](x: T) -> T:\n    return x\n",
    "def f[\n    T,\n    U\n](x): pass\n",
    "class K[T = int](B): pass\n",
    "if 1:\n    type A[T] = (\n        int\n    ); x = 1\n",
    'x = f"{a["b"]}" "c"\n',
    'x = f"{\n    a  # why\n}"\n',
    'x = f"{a:{b["c"]}}" + f"{f"{f"{1}"}"}"\n',
    'def f[T](x: T = f"{a["b"]}"): pass\n',
    "try:\n    pass\nexcept A, B:\n    pass\n",
    'x = t"{a}"\n',
    "lazy import a; lazy from b import (\n    c,\n)\n",
    "x = [*a for a in b], {**a for a in b}, f(*a for a in b)\n",
]


@pytest.mark.parametrize("text", NEWER)
def test_lines_and_columns_stay(text):
    try:
        libcst.parse_module(text)
    except libcst.ParserSyntaxError:
        pytest.skip("this libcst is older than the syntax")
    end = "\r\n" if text.startswith("try") else "\n"
    written = f"{text}def after(x): pass\n".replace("\n", end)
    older = in_older_syntax(written)
    compile(older, "", "exec")
    shape = [len(line.rstrip("\\\r")) for line in older.split("\n")]
    assert shape[-2:] == [len(line.rstrip("\r")) for line in written.split("\n")][-2:]
    assert len(shape) == written.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return x\n",
        'print "x"\n',
        "def f[T](x: pass\n",
        "x = (\n",
        "x = f'{" + "(" * 3000 + "\n",
        'x = f"{a["b"]}"' + " + 1" * 5000,
        'x = f"{a["b"]}"; x = ' + "-" * 5000 + "x\n",
        'x = f"{a["b"]}"; x = x' + "()" * 5000 + "\n",
    ],
)
def test_what_is_old_enough_or_wrong_or_too_deep_is_left_alone(text):
    assert in_older_syntax(text) is None


def test_definitions_of_newer_code_are_known_with_their_own_text():
    text = 'class K[T]:\n    def f[U](self, x: U, y=f"{a["b"]}"):\n        return x\n'
    found = outline("a.py", text)
    definition = found.definitions["K.f"]
    assert definition.parameters == ("self", "x", "y")
    assert found.text(definition) == "".join(text.splitlines(keepends=True)[1:])


def test_a_mistake_beside_newer_syntax_is_told_where_it_is():
    with pytest.raises(SyntaxError) as raised:
        compile(in_older_syntax("def f[T](x): pass\n\ndef g(a, a): pass\n"), "", "exec")
    assert raised.value.lineno == 3
