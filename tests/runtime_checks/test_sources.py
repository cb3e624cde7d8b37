"""Which frames of a process are in a definition that was checked elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.findings import Span
from kvlint.hypotheses import Place
from kvlint.runtime_checks.passing import Passing
from kvlint.runtime_checks.sources import Frame, frame, frames, is_file, plain

CONN = "engine/srt/nixl/conn.py"


@pytest.mark.parametrize(
    ("checked", "running"),
    [
        (CONN, "/home/me/engine-1/engine/srt/nixl/conn.py"),
        (CONN, "/venv/lib/python3.11/site-packages/engine/srt/nixl/conn.py"),
        (CONN, "/usr/lib/python3/dist-packages/engine/srt/nixl/conn.py"),
        (f"python/{CONN}", "/venv/lib/python3.11/site-packages/engine/srt/nixl/conn.py"),
        (f"python/{CONN}", "/home/me/checkout/python/engine/srt/nixl/conn.py"),
        (f"python/{CONN}", "/tmp/unpacked/engine/srt/nixl/conn.py"),
        ("src/engine/a.py", "/tmp/unpacked/engine/a.py"),
        ("srt/nixl/conn.py", "/venv/site-packages/engine/srt/nixl/conn.py"),
        ("serve.py", "/home/me/serve.py"),
        ("serve.py", "/venv/site-packages/serve.py"),
        ("src/serve.py", "/venv/site-packages/serve.py"),
        ("./examples/serve.py", "/repo/examples/serve.py"),
    ],
)
def test_the_same_file_elsewhere(checked, running):
    assert is_file(checked, running)


@pytest.mark.parametrize(
    ("checked", "running"),
    [
        (CONN, "/venv/site-packages/other/srt/nixl/conn.py"),
        (CONN, "/home/me/other/nixl/conn.py"),
        (CONN, "/home/me/myengine/srt/nixl/conn.py"),
        (CONN, "/venv/site-packages/conn.py"),
        ("conn.py", "/venv/site-packages/engine/conn.py"),
        ("other/serve.py", "/venv/site-packages/serve.py"),
        ("examples/serve.py", "/repo/other/serve.py"),
        (CONN, "/home/me/engine/srt/nixl/conn.pyc"),
        ("", "/home/me/a.py"),
        ("a.py", ""),
    ],
)
def test_a_file_of_the_same_name_elsewhere_is_another(checked, running):
    assert not is_file(checked, running)


def test_a_frame_is_read_as_a_stack_writes_it():
    assert frame("/a b/c in d.py:12 in Pool.send") == Frame("/a b/c in d.py", 12, "Pool.send")
    assert frame("/x.py:1 in <module>") == Frame("/x.py", 1, "")
    assert plain("Pool.send.<locals>.inner.<locals>.<lambda>") == "Pool.send.inner"


@pytest.mark.parametrize(
    "text", ["", "a.py", "a.py:1", " in f", ":1 in f", "a.py:x in f", "x:٣ in f"]
)
def test_what_is_no_frame_is_passed_over(text):
    assert frames([text, None, 3, "a.py:1 in f"]) == [Frame("a.py", 1, "f")]


@given(st.text(), st.text())
def test_any_text_is_taken(one, other):
    frame(one)
    plain(one)
    is_file(one, other)


def place(definition, path="examples/serve.py", line=1):
    return Place(Span(path, line, 1, line, 9), "", definition)


STACKS = [
    ["/r/examples/serve.py:40 in <module>", "/r/examples/serve.py:30 in main"],
    ["/r/examples/serve.py:30 in main", "/r/examples/serve.py:12 in Worker.send.<locals>.<lambda>"],
    ["/r/other/serve.py:30 in main", "/r/other/serve.py:12 in Worker.send"],
]


@pytest.mark.parametrize(
    ("definition", "through", "implied"),
    [
        ("main", {0, 1}, set()),
        ("Worker.send", {1}, set()),
        ("Worker.__init__", set(), {1}),
        ("Worker", set(), {1}),
        ("", {0}, {0, 1}),
        ("Other.__init__", set(), set()),
        ("__init__", set(), set()),
        ("_flat", set(), set()),
    ],
)
def test_what_a_stack_shows_to_have_run(definition, through, implied):
    passing = Passing(STACKS)
    assert passing.through([place(definition)]) == through
    assert passing.implied([place(definition)]) == implied


def test_lines_tell_apart_what_lies_in_one_function():
    passing = Passing(STACKS)
    places = [place("main", line=line) for line in (30, 31)]
    assert [passing.lines(0, [one]) for one in places] == [1, 0]
