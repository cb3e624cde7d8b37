import json
import sys

import pytest

from tests.samples import claim, conditional, guarded, rule, span


@pytest.fixture
def here(project, monkeypatch):
    """The working directory: a project of two files."""
    root = project({"a.py": "n = num_slots[0]\n" * 9, "pkg/b.py": "num_slots = 1\n"})
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def found(rules):
    """Registers one rule that yields these claims."""
    return lambda *claims: rules(rule(lambda program: iter(claims)))


def test_exit_codes_say_clean_findings_and_wrong_usage(kvlint, here, found):
    found()
    assert kvlint("check") == (0, "All checks passed!\n", "")
    found(claim(span("a.py")))
    assert kvlint("check").code == 1
    assert kvlint("check", "--exit-zero").code == 0
    assert kvlint("check", "pkg").code == 0
    assert kvlint("check", "--no-such-option").code == 2
    assert kvlint("no-such-command").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "no such file or folder: missing.py"),
        (["--project", "a.py"], "the project is no folder: a.py"),
        (["--project", "pkg", "a.py"], "a.py lies outside the project"),
        (["--select", "KV8"], "unknown rule 'KV8'"),
        (["--show-guarded=a.py"], "--show-guarded takes PATH:LINE, not 'a.py'"),
        (["--show-guarded=a.py:0"], "--show-guarded takes PATH:LINE"),
        (["--show-guarded=gone.py:3"], "no such file: gone.py"),
        (["--show-guarded=a.py:10"], "a.py has 9 lines, not 10"),
        (["--show-guarded=pkg/b.py:2"], "pkg/b.py has 1 line, not 2"),
        (
            ["--show-guarded", "a.py:2"],
            "no such file: a.py:2; did you mean --show-guarded=a.py:2?",
        ),
        (["--select", ""], "no rule selected"),
        (["--ignore", "ALL"], "no rule selected"),
        (["pyproject.toml"], "not a Python file: pyproject.toml"),
        (["--nonsense"], "no such option"),
        (["--min-confidence", "sure"], "invalid value for '--min-confidence': 'sure' is not one"),
    ],
)
def test_wrong_usage_is_one_line_on_standard_error(kvlint, here, found, arguments, message):
    found()
    code, out, err = kvlint("check", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"kvlint: {message}")
    assert err.count("\n") == 1


def test_a_rule_that_fails_is_an_internal_error_and_the_rest_is_still_told(
    kvlint, here, rules, monkeypatch
):
    def broken(program):
        raise ZeroDivisionError("by zero")
        yield

    rules(rule(broken, "KV901"), rule(lambda program: iter([claim(span("a.py"))])))
    code, out, err = kvlint("check", "--output-format", "concise")
    assert code == 2
    assert out.startswith("a.py:1:1: KV900 ")
    assert err == (
        "kvlint: internal error in KV901 (sample-rule) on a.py (and 1 more file): "
        "ZeroDivisionError: by zero"
        " (KVLINT_DEBUG=1 shows where)\n"
    )
    monkeypatch.setenv("KVLINT_DEBUG", "1")
    assert "Traceback" in kvlint("check").err


def test_a_syntax_error_is_a_finding_without_code(kvlint, here, found):
    found()
    (here / "pkg/broken.py").write_text("def f(:\n")
    code, out, _ = kvlint("check", "--output-format", "json")
    assert code == 1
    (fault,) = json.loads(out)
    assert (fault["code"], fault["name"]) == (None, "invalid-syntax")
    assert (fault["path"], fault["line"]) == ("pkg/broken.py", 1)


def test_rules_are_selected_and_ignored_by_prefix(kvlint, here, rules):
    rules(
        rule(lambda program: iter([claim(span("a.py"), code="KV101")]), "KV101"),
        rule(lambda program: iter([claim(span("a.py"), code="KV102")]), "KV102"),
    )

    def codes(*arguments):
        out = kvlint("check", "--output-format", "json", *arguments).out
        return [item["code"] for item in json.loads(out)]

    assert codes() == ["KV101", "KV102"]
    assert codes("--select", "KV101, KV102") == ["KV101", "KV102"]
    assert codes("--select", "KV1", "--ignore", "KV102") == ["KV101"]
    assert codes("--select", "KV101", "--select", "KV102") == ["KV101", "KV102"]


def test_the_last_line_counts_what_the_options_would_show(kvlint, here, found):
    found(claim(span("a.py")), guarded(span("a.py", 2)), conditional(span("a.py", 3)))

    def last(*arguments):
        return kvlint("check", *arguments).out.splitlines()[-1]

    assert last() == "1 assumption in 1 file; 1 guarded, 1 conditional hidden"
    assert last("--min-confidence", "medium") == "1 assumption in 1 file; 1 guarded hidden"
    assert last("--show-guarded") == "1 assumption in 1 file; 1 conditional hidden"
    assert last("--show-guarded", "pkg") == "All checks passed!"
    assert last("--statistics") == "1 assumption in 1 file; 1 guarded, 1 conditional hidden"


def test_a_program_that_gets_an_empty_list_is_told_what_is_hidden(kvlint, here, found):
    found(conditional(span("a.py")))
    for options in ([], ["--statistics"]):
        code, out, err = kvlint("check", "--output-format", "json", *options)
        assert (code, json.loads(out) == []) == (0, not options)
        assert err == (
            "Nothing certain found; 1 conditional hidden (--min-confidence medium shows them)\n"
        )


def test_guarded_findings_are_shown_and_do_not_fail(kvlint, here, found):
    found(guarded(span("a.py", 2)))
    code, out, _ = kvlint("check", "--show-guarded")
    assert code == 0
    assert "guarded by   all counts are compared (a.py:9)" in out


def test_a_line_tells_why_it_is_silent(kvlint, here, found, monkeypatch):
    found(claim(span("a.py")), guarded(span("a.py", 2)), claim(span("pkg/b.py")))
    code, out, _ = kvlint("check", "--show-guarded=a.py:2", "--output-format", "concise")
    assert code == 0
    assert out.startswith("a.py:2:1: KV900 [guarded by a.py:9] ")
    assert "pkg/b.py" not in out
    code, out, _ = kvlint("check", "--show-guarded=a.py:5")
    assert code == 0
    assert out == "kvlint sees no assumption at a.py:5; the nearest in this file is at line 2\n"
    monkeypatch.chdir(here / "pkg")
    assert kvlint("check", "--show-guarded=../a.py:2", "..").out.startswith("../a.py:2:1: ")


def test_paths_read_from_the_working_directory(kvlint, here, found, monkeypatch):
    found(claim(span("pkg/b.py")))
    monkeypatch.chdir(here / "pkg")
    for path in ("b.py", here / "pkg/b.py", "..", "."):
        assert kvlint("check", "--output-format", "concise", path).out.startswith("b.py:1:1: ")


def test_no_file_to_check_is_said(kvlint, here, found):
    found()
    (here / "empty").mkdir()
    code, out, err = kvlint("check", "empty")
    assert (code, out) == (0, "No file checked\n")
    assert err == "kvlint: no Python files under the given paths\n"


def test_statistics_have_a_form_for_programs(kvlint, here, found):
    found(claim(span("a.py")))
    code, out, _ = kvlint("check", "--statistics", "--output-format", "json")
    assert code == 1
    assert json.loads(out)[0]["shown"] == 1


def test_no_cache_is_accepted(kvlint, here, found):
    found()
    assert kvlint("check", "--no-cache").code == 0


def test_without_the_parser_nothing_is_said_to_be_checked(here, kvlint, monkeypatch):
    # As where the companion is installed without what only this command needs.
    monkeypatch.setattr("kvlint.commands._needs.find_spec", {"rich": True}.get)
    ran = kvlint("check")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"kvlint: kvlint check needs libcst, not installed beside {sys.executable}\n"
