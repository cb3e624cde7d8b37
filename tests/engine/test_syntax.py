import pytest

from kvlint.engine.syntax import look
from kvlint.findings import Span
from kvlint.tree import Tree


def of(root, content):
    (root / "a.py").write_bytes(content)
    return list(look(Tree(root), "a.py").faults)


@pytest.mark.parametrize(
    "content",
    [b"", b"x = 1", b"\xef\xbb\xbfx = 1\r\n", b"# coding: latin-1\nx = '\xe9'\n", b"if x is 1: 2"],
    ids=["empty", "plain", "byte order mark", "another encoding", "a warning only"],
)
@pytest.mark.filterwarnings("error")
def test_python_has_no_fault(tmp_path, content):
    assert of(tmp_path, content) == []


@pytest.mark.parametrize(
    "content",
    [
        b"x = '\xff'\n",
        b"# coding: nonsense\n",
        b"x = 1\0\n",
        b"(" * 3000 + b")" * 3000,
        b"x = " + b"-" * 100_000 + b"1",
        b"<<<<<<< HEAD\n",
    ],
    ids=["not utf-8", "no such encoding", "null byte", "parentheses", "operators", "conflict"],
)
def test_what_python_cannot_parse_is_one_fault(tmp_path, content):
    (fault,) = of(tmp_path, content)
    assert fault.name == "invalid-syntax"
    assert fault.message
    assert fault.span.path == "a.py"


def test_a_fault_stands_where_python_points(tmp_path):
    (fault,) = of(tmp_path, "é = 1\ng(é é)\n".encode())
    assert fault.span == Span("a.py", 2, 3, 2, 6)


def test_a_file_that_is_gone_is_a_fault(tmp_path):
    (fault,) = look(Tree(tmp_path), "gone.py").faults
    assert (fault.name, fault.message) == ("unreadable", "No such file or directory")
