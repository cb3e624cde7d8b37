"""In a real terminal, and away from one."""

import os
import pty
import subprocess
import sys

import pytest

RUN = """
import sys
from kvlint.commands._progress import progress
with progress(patience={patience}) as on_progress:
    print(on_progress is None)
    for done in range(3):
        if on_progress:
            on_progress(done, 2)
    if {fail}:
        raise KeyboardInterrupt
"""
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"


def script(patience=0.0, fail=False):
    return [sys.executable, "-c", RUN.format(patience=patience, fail=fail)]


def environment(**changes):
    plain = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
    return {**plain, "TERM": "xterm", **changes}


def in_terminal(arguments, env, **options):
    """What the process writes to a terminal that is its standard error, and to a pipe that is
    its standard output."""
    ours, theirs = pty.openpty()
    try:
        ran = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=theirs, env=env, **options)
    finally:
        os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 4096):
            written += chunk
    except OSError:  # Linux says so when the other end is closed
        pass
    finally:
        os.close(ours)
    return ran, written


def test_a_terminal_sees_a_bar_that_goes_away():
    ran, seen = in_terminal(script(), environment())
    assert ran.stdout == b"False\n"
    assert b"Checking" in seen
    # The cursor is there again, and the line of the bar is empty.
    assert seen.rindex(SHOW) > seen.rindex(HIDE)
    assert seen.rindex(b"\x1b[2K") > seen.rindex(b"Checking")


def test_the_bar_goes_away_on_interruption():
    _, seen = in_terminal(script(fail=True), environment())
    assert seen.rindex(SHOW) > seen.rindex(HIDE)


def test_a_short_run_shows_nothing():
    ran, seen = in_terminal(script(patience=60.0), environment())
    assert (ran.stdout, seen) == (b"False\n", b"")


@pytest.mark.parametrize("changes", [{"TERM": "dumb"}, {"CI": "true"}])
def test_where_nobody_watches_nothing_is_shown(changes):
    ran, seen = in_terminal(script(), environment(**changes))
    assert (ran.stdout, seen) == (b"True\n", b"")


def test_a_pipe_gets_no_escape_codes():
    ran = subprocess.run(script(), capture_output=True, env=environment(FORCE_COLOR="1"))
    assert (ran.stdout, ran.stderr) == (b"True\n", b"")


def test_check_has_a_bar_on_long_runs_and_the_output_none_of_it(project):
    # Nothing is long enough to wait for here: patience is taken away.
    root = project({f"m{number}.py": "x = 1\n" for number in range(3)})
    impatient = (
        "import functools, sys, kvlint.commands.check as c, kvlint.commands._progress as p\n"
        "c.progress = functools.partial(p.progress, patience=0.0)\n"
        "sys.argv = ['kvlint', 'check']\n"
        "from kvlint.cli import main\n"
        "main()\n"
    )
    ran, seen = in_terminal([sys.executable, "-c", impatient], environment(), cwd=root)
    assert ran.stdout == b"All checks passed!\n"
    assert b"Checking" in seen


def test_colours_are_for_the_stream_that_is_a_terminal(project):
    root = project({"broken.py": "x = (\n"})
    check = [sys.executable, "-m", "kvlint", "check"]
    # Standard error is a terminal, standard output is not.
    ran, _ = in_terminal(check, environment(), cwd=root)
    assert b"invalid-syntax" in ran.stdout
    assert b"\x1b" not in ran.stdout
    ours, theirs = pty.openpty()
    subprocess.run(check, stdout=theirs, stderr=subprocess.PIPE, env=environment(), cwd=root)
    os.close(theirs)
    shown = os.read(ours, 4096)
    os.close(ours)
    assert b"\x1b[" in shown
