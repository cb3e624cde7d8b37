"""Two processes, a third party that writes what it likes, and a peer that sleeps or dies."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvlint.runtime_checks.exchange.region import CELLS
from tests.runtime_checks.programs import WITHOUT_TORCH

ROOT = Path(__file__).parents[3]
PROGRAM = "import tests.runtime_checks.exchange.peers as peers\n"


@pytest.fixture(scope="module", params=["all", "tcp"])
def seen(nixl, request, tmp_path_factory):
    """What each scenario of `peers.py` has seen, with NIXL's own choice of transports and by TCP,
    where bytes arrive only when both sides get on."""
    program = tmp_path_factory.mktemp("peers") / "program.py"
    program.write_text(f"{WITHOUT_TORCH}{PROGRAM}if __name__ == '__main__':\n    peers.main()\n")
    environment = {"PYTHONPATH": str(ROOT), "UCX_TLS": request.param, "UCX_LOG_LEVEL": "fatal"}
    ran = subprocess.run(
        [sys.executable, str(program)],
        env=os.environ | environment | {"NIXL_LOG_LEVEL": "FATAL"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    return {"transport": request.param, **json.loads(ran.stdout.splitlines()[-1])}


def test_messages_arrive_and_the_engine_is_notified_of_none(seen):
    assert seen["right"] == {"same": True, "counts": {"received": 4}, "notified": []}


def test_noise_all_over_the_region_is_refused_and_messages_come_through(seen):
    assert seen["noise"]["same"]
    refused = seen["noise"]["counts"]["refused.magic"]
    assert CELLS - 18 <= refused <= CELLS


def test_records_that_are_written_again_elsewhere_are_refused(seen):
    assert seen["replay"]["found"] == []
    # Those of the last three messages: noise was written over the older ones.
    assert seen["replay"]["counts"]["refused.replay"] >= 17


def test_a_peer_that_sleeps_is_waited_for_by_nobody(seen):
    asleep = seen["asleep"]
    assert asleep["same"]
    assert asleep["sent"] + asleep["dropped"] == 100
    assert (asleep["dropped"] > 0) == (seen["transport"] == "tcp")
    assert (asleep["afterwards"], asleep["in use"]) == ([1, 1], 0)


def test_under_a_flood_what_arrives_was_sent(seen):
    flood = seen["flood"]
    assert (flood["made up"], flood["twice"]) == (0, 0)
    assert flood["counts"]["refused.magic"] > seen["replay"]["counts"]["refused.magic"]


def test_a_peer_that_dies_raises_nothing_here(seen):
    assert seen["killed"]["counts"]["dropped.unreachable"] == 1
