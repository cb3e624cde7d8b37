"""A short campaign; `python -m tests.runtime_checks.campaign` runs a long one."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def result(nixl: Any) -> dict[str, Any]:
    """In a process of its own: what UCX is told counts for all agents of a process."""
    command = [sys.executable, "-m", "tests.runtime_checks.campaign", "--json"]
    ran = subprocess.run(
        [*command, "--transfers", "1500", "--mutants", "400", "--each", "16", "--seed", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.stdout, ran.stderr[-2000:]
    return json.loads(ran.stdout.splitlines()[-1])


def test_right_transfers_are_silent_and_their_bytes_right(result):
    assert result["transfers"] >= 1500
    assert result["alarms"] == []


def test_every_fault_is_found_by_its_check_at_its_region_and_slot(result):
    assert result["missed"] == []
    assert {kind: counts for kind, counts in result["kinds"].items() if len(set(counts)) > 1} == {}


def test_every_kind_of_fault_was_tried(result):
    untried = {kind for kind, (mutants, _, _) in result["kinds"].items() if mutants < 5}
    assert untried <= (set() if importlib.util.find_spec("torch") else {"collected tensor"})


def test_the_companion_has_no_faults_of_its_own(result):
    assert result["errors"] == {}
