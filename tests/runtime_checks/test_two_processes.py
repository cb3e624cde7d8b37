"""Two processes of a run, real transfers between them, and the one story of what happened."""

import json
import sys

import pytest

from tests.runtime_checks.programs import WITHOUT_TORCH, kvlint

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

# The parent sends two pages of regions of 4, 3 and 3 slots, with starts cumulative or i * 4.
PROGRAM = """
import multiprocessing, sys, time
import numpy as np
from tests.runtime_checks.hosts import Host, indices, neighbours, rows3

def decode(pipe):
    host = Host("decode", neighbours([4, 3, 3]))
    host.register()
    pipe.send((host.name, host.agent.get_agent_metadata(), rows3(host.regions)))
    end = time.monotonic() + 20
    arrived = []
    while len(arrived) < 2 and time.monotonic() < end:
        arrived += [m for texts in host.agent.get_new_notifs().values() for m in texts]
    pipe.send(arrived)

def main(starts):
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=decode, args=(theirs,))
    process.start()
    host = Host("prefill", neighbours([4, 3, 3]))
    host.register()
    name, metadata, rows = ours.recv()
    host.agent.add_remote_agent(metadata)
    lists = host.prepare(None, rows3(host.regions)), host.agent.prep_xfer_dlist(name, rows, "DRAM")
    index = indices(starts, [0, 1])
    for _ in range(2):
        handle = host.agent.make_prepped_xfer("WRITE", lists[0], index, lists[1], index, b"pages")
        host.agent.transfer(handle)
        host.finish(handle)
        host.agent.release_xfer_handle(handle)
    assert ours.recv() == [b"pages"] * 2
    process.join()

if __name__ == "__main__":
    main([int(start) for start in sys.argv[1:]])
"""


@pytest.fixture
def run(nixl, tmp_path):
    (tmp_path / "program.py").write_text(WITHOUT_TORCH + PROGRAM)

    def run(*starts):
        command = (sys.executable, "program.py", *map(str, starts))
        return kvlint(tmp_path, "run", "--report", "out", "--require", "all", "--", *command)

    return run


def test_a_right_program_is_silent_in_both_processes(run, tmp_path):
    ran = run(0, 4, 7)
    assert (ran.returncode, ran.stdout) == (0, "")
    armed, again, last = ran.stderr.splitlines()
    assert armed.startswith("kvlint: armed: mode=log ")
    assert again.startswith("kvlint: armed: mode=log ")
    assert last == "kvlint: no violations in 2 processes that used NIXL"
    shown = kvlint(tmp_path, "report", "out")
    assert (shown.returncode, shown.stdout) == (0, "no violations, 2 transfers recorded\n")


def test_a_violation_is_shown_with_what_both_processes_saw_of_the_transfers(run, tmp_path):
    ran = run(0, 4, 8)
    assert ran.returncode == 70, ran.stderr
    shown = kvlint(tmp_path, "report", "out", "--output-format", "json")
    assert shown.returncode == 1
    told = json.loads(shown.stdout)
    assert told["unread"] == []
    first = told["violations"][0]
    assert (first["check"], first["count"]) == ("column", 2)
    assert first["sites"][-1]["stack"][-1].endswith("in main")
    assert len(first["transfers"]) == 2
    for number, transfer in enumerate(first["transfers"], 1):
        assert transfer["id"].startswith("prefill1>decode1:")
        assert transfer["id"].endswith(f"#{number}")
        steps = {(event["agent"], event["what"]) for event in transfer["events"]}
        assert steps == {
            ("prefill1", "made"),
            ("prefill1", "posted"),
            ("prefill1", "done"),
            ("decode1", "notified"),
        }
        times = [event["time"] for event in transfer["events"]]
        assert times == sorted(times)
