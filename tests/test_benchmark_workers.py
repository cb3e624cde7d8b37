"""Two worker processes of a benchmark: whatever one of them does, both end, and why is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks" / "gpu"
SIDE = """
import os

class Side:
    def __init__(self, name, number, link):
        self.link = link

    def pid(self):
        return os.getpid()

    def hear(self):
        self.link.hear("ready")

    def tell(self):
        self.link.tell("ready")
        return "told"

    def fail(self):
        raise ValueError("this is wrong")
"""
PROGRAM = """
import sys, time
from two_processes.workers import LostError, Workers

if __name__ == "__main__":
    workers = Workers({}, time.monotonic() + 60, "side")
    print(*workers.both(("pid",), ("pid",)), flush=True)
    calls = sys.stdin.readline().split()
    workers.patience, workers.deadline = 3, time.monotonic() + float(sys.argv[1])
    try:
        print(workers.both(*(call.split("=") for call in calls)))
        workers.close()
    except LostError as error:
        print(f"{type(error).__name__}: {error}")
    print([process.exitcode is not None for process in workers._processes.values()])
"""


@pytest.fixture
def program(tmp_path):
    """A program that has both, tells their ids and asks them what it is told to."""
    (tmp_path / "side.py").write_text(SIDE)
    (tmp_path / "program.py").write_text(PROGRAM)
    running = []

    def start(seconds=60):
        program = subprocess.Popen(
            [sys.executable, "program.py", str(seconds)],
            cwd=tmp_path,
            env=os.environ
            | {"PYTHONPATH": f"{FOLDER}{os.pathsep}{tmp_path}", "TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(program)
        pids = [int(word) for word in program.stdout.readline().split()]
        return program, pids

    yield start
    for program in running:
        program.kill()
        program.wait()


def asked(program, line):
    said, _ = program.communicate(f"{line}\n", timeout=60)
    *told, ended = said.splitlines()
    assert ended == "[True, True]"
    return "\n".join(told)


def test_both_are_asked_at_the_same_time_and_hear_each_other(program):
    assert asked(program()[0], "hear tell") == "(None, 'told')"


def test_what_fails_in_a_worker_is_told_with_its_place(program):
    assert asked(program()[0], "fail tell") == (
        "LostError: prefill, asked for 'fail': ValueError: this is wrong (side.py:19)"
    )


def test_of_a_worker_that_is_killed_the_other_one_does_not_live_on(program):
    running, (_, decode) = program()
    os.kill(decode, signal.SIGKILL)
    assert "decode ended with -9" in asked(running, "hear tell")


def test_a_worker_that_does_not_answer_is_ended_and_named(program):
    # Prefill waits for a word of decode's that never comes.
    running, (_, decode) = program()
    os.kill(decode, signal.SIGSTOP)
    assert asked(running, "hear tell") == (
        "LostError: no answer for 3 s: prefill (hear) and decode (tell)"
    )


def test_when_the_time_is_over_nobody_is_waited_for(program):
    running, (_, decode) = program(seconds=1)
    os.kill(decode, signal.SIGSTOP)
    assert asked(running, "pid tell").startswith("OverError: the time for all of it is over")


def test_nobody_is_left_when_the_process_that_asks_is_killed(program):
    running, both = program()
    running.kill()
    running.wait()
    end = time.monotonic() + 30
    while any(map(alive, both)):
        assert time.monotonic() < end, "a worker lives on"
        time.sleep(0.05)


def alive(pid):
    try:
        # One that has ended and that nobody has asked for yet is a zombie.
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
