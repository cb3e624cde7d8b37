"""`--output FORMAT:TARGET`: several formats of one run, each in its place."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kvlint.reporters import DATA
from tests.samples import claim, conditional, rule, span


@pytest.fixture
def here(project, monkeypatch):
    root = project({"a.py": "n = num_slots[0]\n" * 9})
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def found(rules):
    return lambda *claims: rules(rule(lambda program: iter(claims)))


def test_one_run_writes_several_formats(kvlint, here, found):
    found(claim(span("a.py")))
    expected = kvlint("check", "--output-format", "json").out
    code, out, err = kvlint(
        "check", "--output", "json:a.json", "--output", "concise:-", "--output", "junit:b:c.xml"
    )
    assert (code, err) == (1, "")
    assert out.startswith("a.py:1:1: KV900 ")
    assert (here / "a.json").read_text() == expected
    assert ElementTree.parse(here / "b:c.xml").getroot().tag == "testsuites"


def test_without_a_text_for_people_the_last_line_goes_to_standard_error(kvlint, here, found):
    found(conditional(span("a.py")))
    last = "Nothing certain found; 1 conditional hidden (--min-confidence medium shows them)\n"
    for name in DATA:
        assert kvlint("check", "--output-format", name).err == last
        code, out, err = kvlint("check", "--output", f"{name}:out")
        assert (code, out, err) == (0, "", last)


def test_a_file_has_no_colours(kvlint, here, found, monkeypatch):
    found(claim(span("a.py")))
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = kvlint("check", "--output", "full:-", "--output", "concise:a.txt").out
    assert "\x1b[" in out
    assert "\x1b" not in (here / "a.txt").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["sarf:a"], "unknown format 'sarf'; did you mean sarif?"),
        (["a.json"], "unknown format 'a.json'; "),
        (["sarif"], "--output takes FORMAT:TARGET, as sarif:FILE or sarif:-"),
        (["sarif:"], "--output takes FORMAT:TARGET, as sarif:FILE or sarif:-"),
        (["json:-", "full:-"], "only one format can go to standard output"),
        (["json:a", "full:./a"], "two outputs go to a"),
        (["json:folder"], "cannot write folder: it is a folder"),
        (["json:gone/a"], "cannot write gone/a: there is no folder "),
        (["json:loop"], "cannot write loop: "),
        ([f"json:{'a' * 300}"], f"cannot write {'a' * 300}: File name too long"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_run(kvlint, here, rules, options, message):
    ran = []
    rules(rule(lambda program: ran.append(program) or iter(())))
    (here / "folder").mkdir()
    (here / "loop").symlink_to("loop")
    code, out, err = kvlint("check", *(part for o in options for part in ("--output", o)))
    assert (code, out, ran) == (2, "", [])
    assert err.startswith(f"kvlint: {message}")
    assert err.count("\n") == 1


def test_output_format_is_one_output_to_standard_output(kvlint, here, found):
    found()
    code, _, err = kvlint("check", "--output-format", "json", "--output", "full:-")
    assert (code, err) == (2, "kvlint: only one format can go to standard output\n")
    code, _, err = kvlint("check", "--output-format", "json-line")
    assert (code, err) == (2, "kvlint: unknown format 'json-line'; did you mean json-lines?\n")


def test_statistics_have_few_formats(kvlint, here, found):
    found(claim(span("a.py")))
    code, out, _ = kvlint("check", "--statistics", "--output", "json:a", "--output", "full:-")
    assert code == 1
    assert out.startswith("1  KV900")
    assert json.loads((here / "a").read_text())[0]["shown"] == 1
    code, _, err = kvlint("check", "--statistics", "--output", "sarif:a")
    assert (code, err) == (2, "kvlint: --statistics comes as full, concise or json, not sarif\n")


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode_and_its_link(kvlint, here, found):
    found(claim(span("a.py")))
    real = here / "real.json"
    real.write_text("old" * 10_000)
    real.chmod(0o640)
    (here / "link.json").symlink_to("real.json")
    with real.open() as reader:
        assert kvlint("check", "--output", "json:link.json").code == 1
        assert reader.read() == "old" * 10_000
    assert json.loads(real.read_text())[0]["code"] == "KV900"
    assert (here / "link.json").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(path.name for path in here.iterdir()) == [
        "a.py",
        "link.json",
        "pyproject.toml",
        "real.json",
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_what_fails_late_costs_no_other_output(kvlint, here, found):
    found(claim(span("a.py")))
    code, out, err = kvlint(
        "check", "--output", "json:/dev/full", "--output", "json:a", "--output", "concise:-"
    )
    assert code == 2
    assert out.startswith("a.py:1:1: KV900 ")
    assert err == "kvlint: cannot write /dev/full: No space left on device\n"
    assert json.loads((here / "a").read_text())


def test_a_reader_of_standard_output_that_leaves_early_costs_no_file(here):
    (here / "broken.py").write_text("x = (\n")
    reading, writing = os.pipe()
    os.close(reading)
    script = [sys.executable, "-m", "kvlint", "check", "--output", "full:-", "--output", "json:a"]
    ran = subprocess.run(script, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert ran.stderr == b""
    assert json.loads((here / "a").read_text())


def test_a_pipe_that_has_a_name_is_written_through(here):
    script = [sys.executable, "-m", "kvlint", "check", "--output", "json:/dev/stdout"]
    ran = subprocess.run(script, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "[]\n")


@pytest.mark.parametrize("name", DATA)
def test_formats_for_programs_are_utf_8_whatever_the_locale(here, name):
    (here / "é.py").write_text("x = (\n", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "kvlint", "check", "--output", f"{name}:-", "--output", "json:a"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert ran.returncode == 1
    text = ran.stdout.decode("utf-8")
    assert "é.py" in text or "\\u00e9.py" in text or "%C3%A9.py" in text
