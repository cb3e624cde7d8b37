"""Which comments are addressed to kvlint, what they say, and which statement they speak of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.engine.directives import directives

TEXT = """\
# kvlint: ignore[KV103] above a call
x = f(
    a,  # kvlint: ignore[KV103] inside it
    # kvlint: ignore[KV103] on a line inside it
    b,
)  # kvlint: ignore[KV103] at its end

# kvlint: ignore[KV103] above a decorator
@wrap
# kvlint: ignore[KV103] below a decorator
def f(
    a,
):  # kvlint: ignore[KV103] at the end of a header
    # kvlint: ignore[KV103] above a statement in a block
    y = '''
    '''; z = 1  # kvlint: ignore[KV103] two statements in a line
    if y: z = 2  # kvlint: ignore[KV103] header and block in a line
    # kvlint: ignore[KV103] at the end of a block
else_ = 1
# kvlint: ignore[KV103] after all
"""


def test_a_comment_speaks_of_its_statement_or_of_the_next():
    told = {d.reason: d.lines for d in directives("a.py", TEXT)}
    assert told == {
        "above a call": (2, 6),
        "inside it": (2, 6),
        "on a line inside it": (2, 6),
        "at its end": (2, 6),
        "above a decorator": (9, 13),
        "below a decorator": (9, 13),
        "at the end of a header": (9, 13),
        "above a statement in a block": (15, 16),
        "two statements in a line": (15, 16),
        "header and block in a line": (17, 17),
        "at the end of a block": (19, 19),
        "after all": (20, 20),
    }


def one(text):
    (found,) = directives("a.py", text)
    return found


def test_a_directive_has_exact_places_and_counts_characters():
    found = one("é = 'ü'  # noqa: E501  # kvlint: ignore[KV101, one-name] see #12; fine # nosec\n")
    assert (found.span.line, found.span.column, found.span.end_column) == (1, 24, 71)
    assert [(code, s.column, s.end_column) for code, s in found.codes] == [
        ("KV101", 41, 46),
        ("one-name", 48, 56),
    ]
    assert (found.reason, found.error) == ("see #12; fine", None)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  #kvlint:ignore[KV101]: why\n",
        "x = 1  # kvlint: ignore [KV101] - why\n",
        "x = 1\t# kvlint: ignore[ KV101 ] why\r\ny = 2\r\n",
        "x = 1  # KVLint: Ignore[KV101] why\n",
    ],
)
def test_blanks_signs_and_case_of_the_parts_do_not_matter(text):
    found = one(text)
    assert (found.codes[0][0], found.reason, found.lines) == ("KV101", "why", (1, 1))


@pytest.mark.parametrize(
    ("comment", "error"),
    [
        ("# kvlint: ignore[KV103]", "gives no reason; write `# kvlint: ignore[KV103] reason`"),
        ("# kvlint: ignore[KV103] -- # noqa", "gives no reason"),
        ("# kvlint: ignore[] why", "names no rule in brackets"),
        ("# kvlint: ignore why", "names no rule in brackets"),
        ("# kvlint:ignore KV101 because", "brackets; write `# kvlint: ignore[KV101] reason`"),
        ("# kvlint: ignore-file kv101, KV102", "write `# kvlint: ignore-file[KV101, KV102] reason"),
        ("# kvlint: ignore[KV103 why", "bracket is not closed"),
        ("# kvlint: ignore(KV103) why", "names no rule in brackets"),
        ("# kvlint: noqa: KV103", "not understood; write `# kvlint: ignore[KV103] reason`"),
        ("# kvlint: ignored[KV103] why", "not understood"),
        ("# kvlint: disable=KV103", "not understood"),
        ("# kvlint:", "not understood"),
        ("# kvlint: ignore-file[KV103] why", "needs a line of its own"),
    ],
)
def test_what_is_malformed_says_how_to_write_it(comment, error):
    found = one(f"x = 1  {comment}\n")
    assert error in (found.error or "")
    assert found.codes == ()


def test_a_line_of_its_own_speaks_of_the_whole_file_wherever_it_stands():
    found = one("x = 1\n\ndef f():\n    # kvlint: ignore-file[KV103] generated\n    return 1\n")
    assert (found.whole_file, found.reason, found.error) == (True, "generated", None)


@pytest.mark.parametrize(
    "text",
    [
        "x = '# kvlint: ignore[KV103] why'\n",
        'def f():\n    """\n    # kvlint: ignore[KV103] why\n    """\n',
        "# write `# kvlint: ignore[KV103] why`\n",
        "# about kvlint: ignore[KV103] why\n",
        "x = (  # kvlint: ignore[KV103] why\n",
    ],
    ids=["string", "docstring", "quoted", "prose", "no Python"],
)
def test_what_is_no_comment_to_kvlint_tells_nothing(text):
    assert directives("a.py", text) == []


@given(st.text(alphabet="# kvlint:ignore[]KV103,-\t\nx=()\"'", max_size=80))
def test_no_comment_is_too_odd(rest):
    for found in directives("a.py", f"x = 1  # kvlint: {rest}"):
        assert (found.error is None) == bool(found.codes and found.reason)
