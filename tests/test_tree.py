import pytest

from kvlint.engine.check import check_files
from kvlint.engine.discover import discover
from kvlint.findings import Confidence
from kvlint.reporters.view import Choice, view
from kvlint.tree import Tree
from tests.samples import claim, rule, span


def test_an_overlay_stands_for_the_disk_and_adds_to_it(tmp_path):
    (tmp_path / "a.py").write_bytes(b"old")
    tree = Tree(tmp_path, {"a.py": b"new", "b.py": b""})
    assert (tree.read("a.py"), tree.read("b.py")) == (b"new", b"")
    assert Tree(tmp_path).read("a.py") == b"old"
    with pytest.raises(FileNotFoundError):
        tree.read("c.py")


def test_analysis_syntax_and_reporters_read_one_tree(project):
    root = project({"a.py": "n = 1\n", "pkg/b.py": "m = 2\n"})
    overlay = {"a.py": b"kv_cache = 1\n", "pkg/b.py": b"def f(:\n"}
    known = []
    files = discover(root, [root])
    files.tree = Tree(root, overlay)
    looks = rule(lambda program: known.append(program.texts) or iter([claim(span("a.py"))]))
    report = check_files(files, [looks])
    assert known == [{"a.py": "kv_cache = 1\n"}]
    assert [fault.span.path for fault in report.faults] == ["pkg/b.py"]
    seen = view(report, Choice(Confidence.HIGH), root, root, overlay)
    assert seen.line("a.py", 1) == "kv_cache = 1"
