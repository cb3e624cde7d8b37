"""Two processes that share a key: each transfer is judged where it arrives, or where it is read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

ROOT = Path(__file__).parents[2]
KEY = "a key that two sides share"

# The parent moves three pages of three regions, five times. The child is armed or not, and spoils
# a page of its own after the bytes are there and before it reads the notification.
PROGRAM = """
import json, multiprocessing, os, sys, time
from contextlib import suppress
import numpy as np
from tests.runtime_checks.hosts import Host, fill, indices, regions, rows5, starts

OPERATION, SPOILS, CHILD_KEY = sys.argv[1:4]
PAGES = [1, 2, 3]

def counts(where):
    from kvlint.runtime_checks import arming, status
    told = status()
    violations = [] if arming._armed is None else list(arming._armed.policy.violations)
    return {
        "compared": told.get("digests", {}).get("transfers compared", 0),
        "exchange": told.get("exchange", {}),
        "digests": told.get("digests", {}),
        "said": [record["message"] for record in violations],
        "errors": told.get("tool_errors", {}),
    }

def child(pipe):
    from kvlint.runtime_checks import arm_from_environment
    arm_from_environment()
    host = Host("child", regions([8, 8, 8]))
    if OPERATION == "READ":
        fill(host.regions, 5)
    host.register()
    pipe.send((host.name, host.agent.get_agent_metadata(), rows5(host.regions)))
    for number in range(5):
        assert pipe.recv() == "done"
        if SPOILS == str(number):
            host.regions[1][2, 7] ^= 1
        texts, end = [], time.monotonic() + 20
        while not texts and time.monotonic() < end:
            texts = [m for m in host.agent.get_new_notifs().values()]
        assert texts, number
        pipe.send("read")
        # Until what the parent says of it has come, too.
        assert pipe.recv() == "told"
        for _ in range(20):
            with suppress(RuntimeError):
                host.agent.get_new_notifs()
            time.sleep(0.005)
        pipe.send("ready")
    pipe.send(counts(host))
    pipe.recv()

def main():
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    os.environ["KVLINT_DIGEST_KEY"], key = CHILD_KEY, os.environ["KVLINT_DIGEST_KEY"]
    if not CHILD_KEY:
        os.environ["KVLINT_RUNTIME"], mode = "off", os.environ["KVLINT_RUNTIME"]
    process = context.Process(target=child, args=(theirs,))
    process.start()
    theirs.close()
    os.environ["KVLINT_DIGEST_KEY"] = key
    if not CHILD_KEY:
        os.environ["KVLINT_RUNTIME"] = mode
    from kvlint.runtime_checks import arm_from_environment
    arm_from_environment()
    host = Host("parent", regions([8, 8, 8]))
    fill(host.regions)
    host.register()
    name, metadata, rows = ours.recv()
    host.agent.add_remote_agent(metadata)
    lists = host.prepare(None, rows5(host.regions)), host.agent.prep_xfer_dlist(name, rows, "DRAM")
    index = indices(starts(host.regions), PAGES)
    for number in range(5):
        handle = host.agent.make_prepped_xfer(
            OPERATION, lists[0], index, lists[1], index, b"room %d" % number
        )
        host.agent.transfer(handle)
        host.finish(handle)
        ours.send("done")
        assert ours.recv() == "read"
        host.agent.release_xfer_handle(handle)
        ours.send("told")
        assert ours.recv() == "ready"
    found = ours.recv()
    ours.send("end")
    process.join()
    print(json.dumps({"parent": counts(host), "child": found}))

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def run(nixl, tmp_path):
    def go(operation, spoils="", child_key=KEY, mode="paranoid"):
        (tmp_path / "program.py").write_text(PROGRAM)
        ran = subprocess.run(
            [sys.executable, "program.py", operation, spoils, child_key],
            cwd=tmp_path,
            env=os.environ
            | {
                "PYTHONPATH": str(ROOT),
                "KVLINT_RUNTIME": mode,
                "KVLINT_DIGEST_KEY": KEY,
                "NIXL_LOG_LEVEL": "ERROR",
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    return go


@pytest.mark.parametrize("operation", ["WRITE", "READ"])
def test_clean_transfers_are_compared_by_the_other_side(run, operation):
    found = run(operation)
    assert found["child"]["compared"] == 5
    assert found["child"]["said"] == found["parent"]["said"] == []
    assert found["child"]["errors"] == found["parent"]["errors"] == {}
    assert found["parent"]["exchange"]["sent"] >= 10
    assert "refused" not in json.dumps(found["child"])


def test_what_arrived_wrong_is_told_where_it_arrived(run):
    found = run("WRITE", spoils="3", mode="assert")
    (message,) = found["child"]["said"]
    assert message.startswith("page 1 of region 1 (at 4) holds other bytes than were sent")
    assert found["parent"]["said"] == []


@pytest.mark.parametrize("key", ["", "another key of some length"])
def test_nothing_is_sent_to_a_peer_that_is_not_armed_or_has_another_key(run, key):
    found = run("WRITE", child_key=key)
    assert found["parent"]["exchange"].get("sent", 0) == 0
    assert found["child"]["compared"] == 0
    assert found["parent"]["said"] == found["child"]["said"] == []
