"""`kvlint check` under configuration files: which one is in force, and what it changes."""

import json

import pytest

from kvlint.analysis.vocabulary import use
from kvlint.analysis.vocabulary.own import Own
from tests.samples import claim, conditional, rule, span

FILES = dict.fromkeys(("a.py", "pkg/b.py", "pkg/deep/c.py", "tests/t.py"), "num_slots = 1\n")
RULES = ("KV101", "KV102")


@pytest.fixture
def here(project, monkeypatch):
    root = project(FILES)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def found(rules):
    """Registers two rules, each with a finding in every file that the project knows."""

    def register(made=claim):
        def everywhere(code):
            return rule(lambda _: iter([made(span(p), code=code) for p in FILES]), code)

        rules(*map(everywhere, RULES))

    register()
    return register


@pytest.fixture
def told(kvlint):
    """The places and codes that a run tells, as `a.py 1`, `pkg/b.py 12`."""

    def run(*arguments):
        ran = kvlint("check", "--output-format", "json", *arguments)
        assert ran.code in (0, 1), ran.err
        places = {}
        for item in json.loads(ran.out):
            places.setdefault(item["path"], []).append(item["code"][-1])
        return [f"{path} {''.join(sorted(codes))}" for path, codes in sorted(places.items())]

    return run


ALL = ["a.py 12", "pkg/b.py 12", "pkg/deep/c.py 12", "tests/t.py 12"]


def test_the_nearest_configuration_decides_alone(here, found, told):
    assert told() == ALL
    (here / "pyproject.toml").write_text('[tool.kvlint]\nignore = ["KV101"]\n')
    (here / "pkg/pyproject.toml").write_text('[tool.kvlint]\nignore = ["KV102"]\n')
    # Without a table of ours it is none, whatever is wrong with it.
    (here / "pkg/deep/pyproject.toml").write_text("[project\n")
    assert told() == ["a.py 2", "pkg/b.py 1", "pkg/deep/c.py 1", "tests/t.py 2"]
    (here / "pkg/kvlint.toml").write_text('select = ["KV102"]\n')
    assert told() == ["a.py 2", "pkg/b.py 2", "pkg/deep/c.py 2", "tests/t.py 2"]


def test_a_configuration_above_the_project_counts(here, found, told, monkeypatch):
    (here.parent / "kvlint.toml").write_text('ignore = ["KV101"]\n')
    assert told("a.py") == ["a.py 2"]


def test_the_command_line_is_stronger(here, found, told):
    (here / "kvlint.toml").write_text('select = ["KV101"]\nignore = ["KV102"]\n')
    (here / "pkg/kvlint.toml").write_text('ignore = ["ALL"]\n')
    assert told() == ["a.py 1", "tests/t.py 1"]
    assert told("--select", "KV102", "a.py", "pkg/b.py") == ["a.py 2", "pkg/b.py 2"]
    assert told("--ignore", "KV101", "--select", "ALL", "a.py") == ["a.py 2"]
    (here / "kvlint.toml").write_text('ignore = ["KV102"]\n')
    (here / "pkg/kvlint.toml").unlink()
    assert told("--isolated") == ALL
    (here / "ci.toml").write_text('ignore = ["KV101"]\nexclude = ["tests/t.py"]\n')
    assert told("--config", "ci.toml") == ["a.py 2", "pkg/b.py 2", "pkg/deep/c.py 2"]


def test_files_without_a_rule_are_no_error_and_are_spoken_of(here, found, kvlint):
    (here / "kvlint.toml").write_text('ignore = ["ALL"]\n')
    code, _, err = kvlint("check")
    assert (code, err) == (0, "kvlint: no rule is selected for these files\n")


def test_rules_are_left_out_by_file(here, found, told):
    (here / "kvlint.toml").write_text(
        '[per-file-ignores]\n"tests" = ["ALL"]\n"pkg/**/c.py" = ["KV102"]\n"!pkg" = ["KV101"]\n'
    )
    assert told() == ["a.py 2", "pkg/b.py 12", "pkg/deep/c.py 1"]


def test_a_preview_rule_runs_where_its_full_code_is_selected(here, rules, told):
    preview = rule(lambda _: iter([claim(span(p), code="KV301") for p in FILES]), "KV301")
    type(preview).preview = True
    rules(preview, rule(lambda _: iter(()), "KV101"))
    (here / "pkg/kvlint.toml").write_text('select = ["KV301"]\n')
    (here / "tests/kvlint.toml").write_text('select = ["KV3", "KV1"]\n')
    assert told() == ["pkg/b.py 1", "pkg/deep/c.py 1"]


def test_how_sure_is_sure_enough_is_said_by_file(here, found, told):
    found(conditional)
    (here / "pkg/kvlint.toml").write_text('min-confidence = "medium"\n')
    assert told() == ["pkg/b.py 12", "pkg/deep/c.py 12"]
    assert told("--min-confidence", "high") == []
    assert told("--min-confidence", "low") == ALL


def test_what_is_excluded_is_not_walked_into_and_read_when_named(here, found, told, kvlint):
    (here / "kvlint.toml").write_text('exclude = ["deep", "tests/*.py"]\n')
    assert told() == ["a.py 12", "pkg/b.py 12"]
    assert told("--exclude", "{a,z}.py, pkg/b*") == []
    assert told("tests/t.py", "pkg/deep/c.py") == ["pkg/deep/c.py 12", "tests/t.py 12"]
    assert told("pkg/deep") == ["pkg/deep/c.py 12"]
    assert told("--force-exclude", "pkg/deep", "tests/t.py", "a.py") == ["a.py 12"]
    assert kvlint("check", "tests").err == "kvlint: no Python files under the given paths\n"
    ran = kvlint("check", "--force-exclude", "tests/t.py", "pkg/deep")
    assert (ran.code, ran.out) == (0, "No file checked\n")
    assert ran.err.splitlines() == [
        "kvlint: skipped tests/t.py: it is excluded",
        "kvlint: skipped pkg/deep: it is excluded",
    ]
    assert kvlint("check", "--force-exclude", "pkg/deep", "a.py").err == ""


def test_a_file_that_is_too_large_is_skipped_in_one_line(here, found, kvlint):
    (here / "a.py").write_text("#" * 2000)
    (here / "pkg/kvlint.toml").write_text("max-file-size = 14\n")
    (here / "pkg/b.py").write_text("#" * 15)
    code, out, err = kvlint("check", "--max-file-size", "1 KiB", "a.py")
    assert (code, out) == (0, "No file checked\n")
    assert err == ("kvlint: skipped a.py: 2.0 KiB is over max-file-size (1.0 KiB)\n")
    _, out, err = kvlint("check", "--output-format", "concise")
    assert err == "kvlint: skipped pkg/b.py: 15 bytes is over max-file-size (14 bytes)\n"
    assert not [line for line in out.splitlines() if line.startswith("pkg/b.py")]
    # What nobody asked for is not spoken of.
    assert kvlint("check", "tests").err == ""


def test_a_broken_configuration_is_an_error_where_it_is_needed(here, found, kvlint):
    (here / "pkg/kvlint.toml").write_text("select = 1\n")
    code, out, err = kvlint("check")
    assert (code, out) == (2, "")
    assert err == "kvlint: pkg/kvlint.toml:1: select must be a list of strings, not a number\n"
    assert kvlint("check", "--project", ".", "tests").code == 1
    assert kvlint("check", "--isolated").code == 1
    (here / "pkg/kvlint.toml").write_text('\nignore = ["KV103"]\n')
    assert kvlint("check").err.startswith("kvlint: pkg/kvlint.toml:2: unknown rule 'KV103'; did")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "gone.toml"], "no such file: gone.toml"),
        (["--config", "pyproject.toml"], "pyproject.toml has no [tool.kvlint]"),
        (["--config", "a.py", "--isolated"], "--config gives a configuration, --isolated takes"),
        (["--exclude", "[a"], "--exclude: '[a' is no pattern: [ without ]"),
        (["--max-file-size", "big"], "--max-file-size: 'big' is no size"),
    ],
)
def test_wrong_options_are_one_line(here, found, kvlint, arguments, message):
    code, out, err = kvlint("check", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"kvlint: {message}")
    assert err.count("\n") == 1


def test_an_unknown_option_gets_a_suggestion(here, found, kvlint):
    code, _, err = kvlint("check", "--max-file-siez", "1")
    assert code == 2
    assert "--max-file-size" in err


@pytest.fixture
def _own_names_afterwards():
    yield
    use(Own())


@pytest.mark.usefixtures("_own_names_afterwards")
def test_own_names_are_of_the_whole_project(here, kvlint):
    code = """
def build(agent, arenaHeads, rowBytes, rows, dev):
    width = rowBytes[0]
    out = [(head + row * width, width, dev) for head in arenaHeads for row in rows]
    return agent.get_xfer_descs(out, "VRAM")
"""
    words = '[vocabulary]\naddresses = ["arenaHeads"]\nitem-lengths = ["rowBytes"]\n'
    (here / "pkg/b.py").write_text(code)
    (here / "kvlint.toml").write_text(words)
    assert "pkg/b.py:3:13: KV101" in kvlint("check", "--output-format", "concise").out
    # A nested configuration takes nothing from the rest, and is not silently of no use.
    (here / "kvlint.toml").write_text("")
    (here / "pkg/kvlint.toml").write_text(words)
    code, _, err = kvlint("check")
    assert (code, err) == (
        0,
        "kvlint: pkg/kvlint.toml: vocabulary not used: what is of the whole project stands in the "
        f"configuration of its root, {here}\n",
    )
    assert kvlint("check", "pkg").code == 1


def test_the_baseline_can_be_configured(here, found, kvlint, monkeypatch):
    (here / "kvlint.toml").write_text('baseline = "known.json"\n')
    assert kvlint("check", "--write-baseline", "known.json").code == 0
    monkeypatch.chdir(here / "pkg")
    assert kvlint("check").code == 0
    assert kvlint("check", "--isolated").code == 1


def test_what_is_left_out_makes_no_baseline_stale(here, found, kvlint):
    assert kvlint("check", "--write-baseline", "known.json").code == 0
    for options in (["--exclude", "pkg"], ["--ignore", "KV101"]):
        code, _, err = kvlint("check", "--baseline", "known.json", *options)
        assert (code, err) == (0, "")
