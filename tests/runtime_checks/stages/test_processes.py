"""Two processes of a run, pages between them over real NIXL, and the stage at which one changed."""

import json
import sys

import pytest

from tests.runtime_checks.programs import WITHOUT_TORCH, kvlint

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="process_vm_readv is Linux's")

# Pages 3 and 4 of two layers go to 6 and 7. "swap" sends them the wrong way round.
PROGRAM = """
import contextlib, multiprocessing, sys, time
from kvlint import runtime_checks
from kvlint.geometry import Geometry, Region
from tests.runtime_checks.hosts import Host, fill, indices, neighbours, rows3

def host_of(name):
    host = Host(name, neighbours([8, 8]))
    host.register_bytes(host.regions[0].ctypes.data, sum(part.nbytes for part in host.regions))
    regions = [
        Region(
            name=f"layer {n} key", address=part.ctypes.data, length=part.nbytes, stride=64,
            transfer_length=64, memory_kind="DRAM", device=0, list="kv", layer=n, role="key",
        )
        for n, part in enumerate(host.regions)
    ]
    runtime_checks.declare(Geometry(tuple(regions)), host.name)
    return host

def note(host, name, slots):
    with contextlib.suppress(runtime_checks.Violation):
        runtime_checks.stage(name, owner="A", pool="kv", slots=slots, agent=host.name)

def decode(pipe, fault):
    runtime_checks.arm_from_environment()
    host = host_of("decode")
    pipe.send((host.name, host.agent.get_agent_metadata(), rows3(host.regions)))
    if fault == "early":
        note(host, "read", [6, 7])
    pipe.send("go")
    end = time.monotonic() + 20
    while not host.agent.get_new_notifs() and time.monotonic() < end:
        pass
    note(host, "arrival", [6, 7])
    if fault == "changed":
        host.regions[1][7, 5] ^= 1
    note(host, "read", [6, 7])
    pipe.send("done")

def main(fault):
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=decode, args=(theirs, fault))
    process.start()
    host = host_of("prefill")
    fill(host.regions)
    note(host, "store", [3, 4])
    name, metadata, rows = ours.recv()
    host.agent.add_remote_agent(metadata)
    lists = host.prepare(None, rows3(host.regions)), host.agent.prep_xfer_dlist(name, rows, "DRAM")
    note(host, "send", [3, 4])
    assert ours.recv() == "go"
    sources = indices([0, 8], [4, 3] if fault == "swap" else [3, 4])
    handle = host.agent.make_prepped_xfer(
        "WRITE", lists[0], sources, lists[1], indices([0, 8], [6, 7]), b"pages"
    )
    host.agent.transfer(handle)
    host.finish(handle)
    host.agent.release_xfer_handle(handle)
    assert ours.recv() == "done"
    process.join()

if __name__ == "__main__":
    main(sys.argv[1])
"""


@pytest.fixture
def run(nixl, tmp_path):
    (tmp_path / "program.py").write_text(WITHOUT_TORCH + PROGRAM)

    def run(fault, mode="assert"):
        command = (sys.executable, "program.py", fault)
        ran = kvlint(tmp_path, "run", "--mode", mode, "--report", "out", "--", *command)
        return ran, kvlint(tmp_path, "report", "out")

    return run


def test_right_pages_are_silent_in_both_processes(run):
    ran, shown = run("none")
    assert ran.returncode == 0, ran.stderr
    assert shown.stdout == "no violations, 1 transfer recorded\n"


def test_pages_sent_the_wrong_way_round_are_found_where_both_processes_meet(run):
    # In each process all is right: the sender's list of slots is one, and who receives knows none.
    ran, shown = run("swap")
    assert ran.returncode == 70
    *_, last = ran.stderr.splitlines()
    assert last == "kvlint: pages of 1 request changed; kvlint report out shows where"
    assert shown.returncode == 1
    lines = shown.stdout.splitlines()
    assert any(
        line.startswith("request A, layer 0 key, page 0: first differs at arrival (kv, process ")
        and line.endswith(" (and 3 more pages)")
        for line in lines
    ), shown.stdout
    assert "  there it holds what belongs to page 1, layer 0 key" in lines


def test_a_page_that_changes_between_arrival_and_read_is_told_in_its_process_and_in_the_report(
    run, tmp_path
):
    ran, _ = run("changed")
    assert "page-changed: layer 1 key slot 7 (page 1 of request A) changed between arrival" in (
        ran.stderr
    )
    shown = kvlint(tmp_path, "report", "out", "--output-format", "json")
    (change,) = json.loads(shown.stdout)["changes"]
    assert (change["differs_from"], change["differs_at"]) == ("arrival", "read")
    # The transfer has seen the pages as well.
    stages = [step["stage"] for step in change["steps"]]
    assert stages == ["store", "send", "send", "arrival", "read"]
    assert len({step["pid"] for step in change["steps"]}) == 2


def test_a_read_before_the_arrival_is_told(run):
    ran, shown = run("early")
    assert "early-read: layer 0 key slot 6 (page 0 of request A) was read before" in ran.stderr
    assert "  it was read before an arrival of it was noted" in shown.stdout.splitlines()
