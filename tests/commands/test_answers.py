"""`kvlint check` on code that the user has answered: comments, the baseline, the history."""

import json
import os

import pytest

from tests.repository import Repository, environment
from tests.samples import claim, conditional, rule, span

TEXT = "n = num_slots[0]  # kvlint: ignore[KV101] one pool\nm = num_slots[0]\n"


@pytest.fixture
def here(project, monkeypatch):
    root = project({"a.py": TEXT, "pkg/b.py": "num_slots = 1\n" * 5, "pkg/c.py": "num_slots = 1\n"})
    monkeypatch.chdir(root)
    return root


def at(path, line, name="f", code="KV101", made=claim):
    return made(span(path, line), scope=f"{path}::{name}", code=code)


@pytest.fixture
def found(rules):
    """Registers two rules that yield these claims by their codes."""

    def register(*claims):
        def yielding(number):
            return rule(lambda _: iter([c for c in claims if c.code == number]), number)

        rules(yielding("KV101"), yielding("KV102"))

    return register


def last(ran):
    return ran.out.splitlines()[-1]


def test_a_comment_silences_and_is_counted(kvlint, here, found):
    found(at("a.py", 1))
    assert kvlint("check") == (0, "All checks passed! (1 suppressed)\n", "")


def test_a_comment_that_is_not_needed_fails_unless_its_rule_did_not_run(kvlint, here, found):
    found()
    code, out, _ = kvlint("check", "--output-format", "concise")
    assert code == 1
    assert out.splitlines() == [
        "a.py:1:19: unused-suppression: not needed: KV101 is not found in this statement",
        "1 unused suppression",
    ]
    assert kvlint("check", "--select", "KV102").code == 0
    assert kvlint("check", "pkg").code == 0


def test_a_rule_that_fails_makes_no_comment_unused(kvlint, here, rules):
    def broken(program):
        raise ValueError
        yield

    rules(rule(broken, "KV101"))
    assert "unused" not in kvlint("check").out


def test_a_silenced_line_says_why_it_is_silent(kvlint, here, found):
    found(at("a.py", 1), at("a.py", 2))
    kvlint("check", "--write-baseline", "known.json")
    code, out, _ = kvlint("check", "--show-guarded=a.py:1")
    assert code == 0
    assert "  silenced by  a comment: one pool\n" in out
    (item,) = json.loads(kvlint("check", "--show-guarded=a.py:1", "--output-format", "json").out)
    assert item["silenced_by"] == "a comment: one pool"
    ask = ("--show-guarded=a.py:2", "--output-format", "concise", "--baseline", "known.json")
    code, out, _ = kvlint("check", *ask)
    assert code == 0
    assert out.startswith("a.py:2:1: KV101 [silenced by the baseline known.json] ")


def test_a_baseline_is_written_and_then_only_what_is_new_is_reported(kvlint, here, found):
    known = [at("pkg/b.py", 1), at("pkg/b.py", 2), at("pkg/b.py", 3, "g", "KV102")]
    found(at("a.py", 1), *known)
    code, out, err = kvlint("check", "--write-baseline", "known.json")
    assert (code, out) == (0, "All checks passed! (1 suppressed, 2 in the baseline)\n")
    assert err == "kvlint: wrote known.json: 2 assumptions, 2 new, 0 gone\n"
    found(at("a.py", 1), *known, at("pkg/c.py", 1))
    code, out, _ = kvlint("check", "--baseline", "known.json", "--output-format", "concise")
    assert code == 1
    assert out.startswith("pkg/c.py:1:1: KV101")
    assert last(kvlint("check", "--baseline", "known.json")) == (
        "1 assumption in 1 file; 1 suppressed, 2 in the baseline"
    )


def test_what_is_not_sure_enough_to_be_shown_is_not_written(kvlint, here, found):
    found(at("a.py", 1), at("pkg/b.py", 1, made=conditional))
    kvlint("check", "--write-baseline", "known.json")
    assert last(kvlint("check", "--baseline", "known.json", "--min-confidence", "medium")) == (
        "1 assumption in 1 file; 1 suppressed"
    )


def test_a_stale_entry_is_a_notice_where_this_run_can_tell(kvlint, here, found):
    found(at("a.py", 1), at("pkg/b.py", 1, "K.g"), at("pkg/c.py", 1, code="KV102"))
    kvlint("check", "--write-baseline", "known.json")
    found(at("a.py", 1))
    code, _, err = kvlint("check", "--baseline", "known.json", "--select", "KV101")
    assert code == 0
    (line,) = err.splitlines()
    assert line.startswith("kvlint: stale in known.json: KV101-")
    assert line.endswith(
        ", slots of region i = slots of region 0 in pkg/b.py (K.g);"
        " --write-baseline known.json takes it out"
    )
    assert kvlint("check", "--baseline", "known.json", "a.py").err == ""
    assert kvlint("check", "--baseline", "known.json", "pkg/c.py").err.count("stale") == 1
    (here / "pkg/b.py").unlink()
    assert kvlint("check", "--baseline", "known.json", "pkg").err.count("stale") == 2
    (here / "pkg/c.py").write_text("def f(:\n")
    assert kvlint("check", "--baseline", "known.json", "pkg/c.py").err == ""


def test_writing_for_some_paths_keeps_what_is_known_of_others(kvlint, here, found):
    found(at("a.py", 2), at("pkg/b.py", 1), at("pkg/c.py", 1))
    kvlint("check", "--write-baseline", "known.json")
    found(at("a.py", 1))
    err = kvlint("check", "--write-baseline", "known.json", "pkg/b.py").err
    assert err == "kvlint: wrote known.json: 2 assumptions, 0 new, 1 gone\n"


def test_a_baseline_knows_its_project(kvlint, here, found, monkeypatch):
    found(at("a.py", 2), at("pkg/b.py", 1))
    kvlint("check", "--write-baseline", "pkg/known.json")
    # A project of its own within it: alone, it would give the same code other ids.
    (here / "pkg/pyproject.toml").touch()
    assert kvlint("check", "--baseline", "pkg/known.json", "pkg/b.py").code == 0
    monkeypatch.chdir(here / "pkg")
    code, _, err = kvlint("check", "--baseline", "known.json", "--project", ".", "b.py")
    assert code == 2
    assert err == (
        f"kvlint: known.json is of another project than {here / 'pkg'}: add --project ..\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--baseline", "gone.json"], "no such baseline: gone.json; --write-baseline gone.json"),
        (["--baseline", "a.py"], "the baseline is broken: a.py:1 is no JSON"),
        (["--write-baseline", "a.py"], "the baseline is broken: a.py:1 is no JSON"),
        (["--write-baseline", "pkg"], "cannot read the baseline pkg: Is a directory"),
        (["--write-baseline", "new/known.json"], "cannot write the baseline new/known.json: No"),
        (["--write-baseline", "k", "--baseline", "k"], "--write-baseline brings FILE up to date"),
        (["--write-baseline", "k", "--since", "HEAD"], "--write-baseline takes all findings"),
    ],
)
def test_a_baseline_that_cannot_be_is_one_line(kvlint, here, found, arguments, message):
    found()
    code, out, err = kvlint("check", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"kvlint: {message}")
    assert err.count("\n") == 1
    assert (here / "a.py").read_text() == TEXT


@pytest.fixture
def repository(here, monkeypatch):
    for name in os.environ.keys() - environment().keys():
        monkeypatch.delenv(name)
    made = Repository.new(here)
    made.commit()
    return made


def test_since_reports_what_has_to_do_with_a_change(kvlint, repository, found):
    found(at("a.py", 1), at("pkg/b.py", 1), at("pkg/c.py", 1))
    code, out, err = kvlint("check", "--since", "HEAD")
    assert (code, err) == (0, "")
    assert out == "All checks passed! (1 suppressed, 2 not in what changed)\n"
    repository.write("pkg/b.py", "num_slots = 2\n" * 5)
    code, out, _ = kvlint("check", "--since", "main", "--output-format", "concise")
    assert code == 1
    assert out.startswith("pkg/b.py:1:1: KV101 ")
    assert out.endswith("1 assumption in 1 file; 1 suppressed, 1 not in what changed\n")
    out = kvlint("check", "--since", "HEAD", "--show-guarded=pkg/c.py:1").out
    assert "  silenced by  --since HEAD: nothing here has changed\n" in out


def test_a_revision_that_is_not_there_fails_before_anything_is_checked(kvlint, repository, found):
    found(at("a.py", 2))
    assert kvlint("check", "--since", "gone") == (
        2,
        "",
        "kvlint: --since gone: no such commit here\n",
    )
