"""Paths and files that are none, or no longer, or never end: said in a line, without waiting."""

import os
import socket
from pathlib import Path

import pytest

from kvlint.reporters import FORMATS
from tests.samples import claim, rule, span


@pytest.fixture
def here(project, monkeypatch, rules):
    root = project({"good.py": "kv_data_ptr = 1\n", "pkg/b.py": "m = 1\n"})
    monkeypatch.chdir(root)
    rules(rule(lambda program: iter([claim(span("good.py"))])))
    return root


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere.py")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (pipe, "neither a file nor a folder: odd.py"),
        (listening, "neither a file nor a folder: odd.py"),
        (endless, "neither a file nor a folder: odd.py"),
        (dangling, "no such file or folder: odd.py"),
        (circle, "cannot open odd.py: "),
    ],
)
def test_what_is_no_file_is_passed_by_in_a_folder_and_refused_by_name(kvlint, here, make, message):
    make(here / "odd.py")
    (here / "pkg/up").symlink_to("..")
    code, out, err = kvlint("check", "--no-cache", "--output-format", "concise")
    assert code == 1
    assert [line.split(":")[0] for line in out.splitlines()[:-1]] == ["good.py"]
    assert err == ""
    code, out, err = kvlint("check", "--no-cache", "odd.py")
    assert (code, out) == (2, "")
    assert err.startswith(f"kvlint: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["new\nline.py", "\x1b[31m.py", os.fsdecode(b"\xff.py"), " .py"])
def test_names_may_be_anything_and_stay_on_their_line(kvlint, here, name):
    try:
        (here / name).write_text("x = (\n")
    except OSError:
        pytest.skip("no such name on this file system")
    code, out, err = kvlint("check", "--no-cache", "--output-format", "concise")
    assert code == 1
    assert len(out.splitlines()) == 3
    assert "invalid-syntax" in out
    assert "\x1b" not in out
    assert err == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_costs_only_itself(kvlint, here):
    (here / "pkg/b.py").chmod(0)
    code, out, err = kvlint("check", "--no-cache", "--output-format", "concise")
    assert code == 1
    assert "pkg/b.py:1:1: unreadable: Permission denied" in out
    assert "good.py:1:1: KV900" in out
    assert err == ""


def test_a_file_that_goes_during_the_run_costs_only_itself(kvlint, here, rules):
    def goes(program):
        (here / "pkg/b.py").unlink(missing_ok=True)
        yield claim(span("good.py"))

    rules(rule(goes))
    code, out, err = kvlint("check", "--no-cache", "--output-format", "concise")
    assert code == 1
    assert "pkg/b.py:1:1: unreadable: No such file or directory" in out
    assert "good.py:1:1: KV900" in out
    assert err == ""


@pytest.mark.parametrize("left", ["", "x", "\n" * 9, "\0", "(" * 3000], ids=repr)
@pytest.mark.parametrize("shape", FORMATS)
def test_a_file_that_changes_during_the_run_is_still_told_of(kvlint, here, rules, left, shape):
    (here / "good.py").write_text("kv_data_ptr = 1\n" * 50)

    def changes(program):
        (here / "good.py").write_text(left)
        yield claim(span("good.py", 40, 5))

    rules(rule(changes))
    code, out, err = kvlint("check", "--no-cache", "--output-format", shape)
    assert code == 1
    assert "good.py" in out
    assert "internal error" not in err
