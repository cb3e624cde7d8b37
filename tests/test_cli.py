"""The command as a process of its own: what it imports, and how it ends."""

import os
import subprocess
import sys

import pytest

import kvlint


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "kvlint", *arguments], capture_output=True, text=True, **options
    )


def test_the_version_is_the_packages():
    assert run("--version").stdout == f"kvlint {kvlint.__version__}\n"


def test_help_lists_the_commands():
    shown = run("--help")
    assert shown.returncode == 0
    for command in ("check", "explain", "report", "rules", "run"):
        assert f"  {command} " in shown.stdout


@pytest.mark.parametrize(
    "arguments", [["--help"], ["check", "--help"], ["rules"], ["explain", "KV101"]]
)
def test_what_only_reads_documents_needs_neither_parser_nor_colours(arguments):
    script = f"""
import sys
sys.argv = ["kvlint", *{arguments!r}]
from kvlint.cli import run
try:
    run()
finally:
    loaded = {{name.partition(".")[0] for name in sys.modules}}
    print("heavy:", sorted(loaded & {{"libcst", "rich", "torch"}}), file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "heavy: []" in ran.stderr


def test_a_reader_that_leaves_early_causes_no_traceback(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-m", "kvlint", "rules"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    os.close(writing)
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr


@pytest.mark.parametrize(
    ("streams", "code", "err"),
    [
        (">&-", 2, "kvlint: cannot write to standard output: it is closed\n"),
        (">/dev/full", 2, "kvlint: cannot write to standard output: No space left on device\n"),
        ("2>&-", 1, ""),
        ("2>/dev/full", 1, ""),
        (">&- 2>&- <&-", 2, ""),
    ],
)
def test_streams_that_take_nothing_cost_one_line_and_no_exit_code(tmp_path, streams, code, err):
    (tmp_path / "broken.py").write_text("x = (\n")
    command = f"{sys.executable} -m kvlint check --no-cache broken.py {streams}"
    ran = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (ran.returncode, ran.stderr) == (code, err)


def test_a_complaint_that_nobody_can_read_is_still_an_exit_code(tmp_path):
    command = f"{sys.executable} -m kvlint check missing.py 2>/dev/full"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 2


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("chekc", "did you mean check?"),
        ("a.py", "did you mean `kvlint check a.py`?"),
        ("nonsense", "there are check, explain, geometry, report, rules, run, verify"),
    ],
)
def test_an_unknown_command_gets_a_suggestion(tmp_path, monkeypatch, capsys, command, hint):
    from kvlint.cli import run as command_line

    (tmp_path / "a.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["kvlint", command])
    with pytest.raises(SystemExit, match="2"):
        command_line()
    assert capsys.readouterr().err == f"kvlint: no such command: {command}; {hint}\n"


def test_a_failure_of_kvlint_itself_is_one_line_and_a_traceback_on_demand(monkeypatch, capsys):
    from kvlint.cli import run as command_line

    def fail():
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("kvlint.commands.rules.all_rules", fail)
    monkeypatch.setattr("sys.argv", ["kvlint", "rules"])
    monkeypatch.delenv("KVLINT_DEBUG", raising=False)
    with pytest.raises(SystemExit, match="2"):
        command_line()
    assert capsys.readouterr().err == (
        "kvlint: internal error: RuntimeError: two lines (KVLINT_DEBUG=1 shows where)\n"
    )
    monkeypatch.setenv("KVLINT_DEBUG", "1")
    with pytest.raises(SystemExit, match="2"):
        command_line()
    assert "Traceback" in capsys.readouterr().err
