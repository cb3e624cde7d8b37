"""`kvlint check -`: what an editor holds stands for a file of the project."""

import io
import json
import os

import pytest

from tests.samples import claim, rule, span


@pytest.fixture
def here(project, monkeypatch):
    root = project({"a.py": "n = counts[0]\n", "pkg/b.py": "# kv_cache\n"})
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def seen(rules):
    """Registers a rule that finds something in every file it knows, and keeps their texts."""
    texts = {}

    def everywhere(program):
        texts.update(program.texts)
        yield from (claim(span(path)) for path in program.texts)

    rules(rule(everywhere))
    return texts


@pytest.fixture
def typed(kvlint, monkeypatch):
    def run(data, *arguments):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        return kvlint("check", "--output-format", "concise", *arguments)

    return run


def places(ran):
    return [line.partition(": ")[0] for line in ran.out.splitlines() if ": KV900" in line]


def test_standard_input_is_the_text_of_a_file_among_the_others(here, seen, typed):
    ran = typed(b"kv_cache = 1\n", "-", "--stdin-filename", "a.py")
    assert (ran.code, places(ran)) == (1, ["a.py:1:1"])
    assert seen == {"a.py": "kv_cache = 1\n", "pkg/b.py": "# kv_cache\n"}


@pytest.mark.parametrize("name", ["pkg/new.py", "new/folder/c.py", "./pkg/../a.py", "script"])
def test_the_file_need_not_exist_and_is_called_as_it_was(here, seen, typed, name):
    ran = typed(b"kv_cache = 1\n", "--stdin-filename", name)
    assert places(ran) == [f"{os.fspath(name).removeprefix('./')}:1:1"]


def test_an_absolute_name_stays_absolute(here, seen, typed, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ran = typed(b"kv_cache = 1\n", "-", "--stdin-filename", here / "a.py")
    assert places(ran) == [f"{here / 'a.py'}:1:1"]
    assert "pkg/b.py" in seen


def test_code_without_a_name_lies_in_the_working_directory(here, seen, typed):
    assert places(typed(b"kv_cache = 1\n", "-")) == ["<stdin>:1:1"]
    assert "pkg/b.py" in seen


def test_an_excerpt_shows_what_was_typed(here, seen, kvlint, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kv_cache = typed\n")))
    assert "kv_cache = typed" in kvlint("check", "-", "--stdin-filename", "a.py").out


def test_the_configuration_nearest_to_the_name_is_in_force(here, seen, typed):
    (here / "pkg/kvlint.toml").write_text('ignore = ["ALL"]\n')
    ran = typed(b"kv_cache = 1\n", "-", "--project", ".", "--stdin-filename", "pkg/new/c.py")
    assert (ran.code, ran.err) == (0, "kvlint: no rule is selected for these files\n")
    (here / "kvlint.toml").write_text('exclude = ["vendor"]\nmax-file-size = 20\n')
    ran = typed(b"kv_cache = 1\n", "-", "--stdin-filename", "vendor/c.py")
    assert (ran.code, ran.err) == (0, "kvlint: skipped vendor/c.py: it is excluded\n")
    ran = typed(b"#" * 21, "-", "--stdin-filename", "c.py")
    assert ran.err == "kvlint: skipped c.py: 21 bytes is over max-file-size (20 bytes)\n"


@pytest.mark.parametrize(
    ("data", "message"), [(b"def f(:\n", "invalid syntax"), (b"x = '\xff'\n", "encoding")]
)
def test_what_cannot_be_understood_is_a_fault(here, seen, kvlint, monkeypatch, data, message):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    code, out, _ = kvlint("check", "--output-format", "json", "-", "--stdin-filename", "a.py")
    (fault,) = json.loads(out)
    assert (code, fault["path"], fault["code"]) == (1, "a.py", None)
    assert message in fault["message"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "a.py"], "standard input is checked alone, not together with a.py"),
        (["--stdin-filename", "b.py", "a.py"], "standard input is checked alone, not together"),
        (["-", "--stdin-filename", "pkg"], "--stdin-filename is a folder: pkg"),
        (["-", "--stdin-filename", "a.txt"], "not a Python file: a.txt"),
        (["-", "--stdin-filename", "../x.py", "--project", "."], "../x.py lies outside the"),
        (["-", "--since", "HEAD"], "--since looks at files, standard input is none"),
        (["-", "--show-guarded=a.py:1"], "--show-guarded=PATH:LINE looks at files"),
    ],
)
def test_wrong_usage_is_one_line(here, seen, typed, arguments, message):
    code, out, err = typed(b"", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"kvlint: {message}")
    assert err.count("\n") == 1


def test_a_notebook_is_named_and_not_read(here, seen, typed):
    ran = typed(b"{}", "-", "--stdin-filename", "a.ipynb")
    assert (ran.code, ran.err) == (0, "kvlint: skipped a.ipynb: notebooks are not read\n")
