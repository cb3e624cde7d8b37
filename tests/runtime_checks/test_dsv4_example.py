"""examples/dsv4_slots: what a real transfer does with `i * S0`, and what it says about it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVE = "examples/dsv4_slots/serve.py"

pytestmark = pytest.mark.usefixtures("nixl")


def serve(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SERVE, *arguments],
        cwd=ROOT,
        env=os.environ | {"NIXL_LOG_LEVEL": "WARN"} | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_with_one_stride_pages_land_elsewhere_and_nobody_says_so():
    ran = serve()
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[-1] == "12 of 24 pages are right"
    shown = [line.strip() for line in (ROOT / "examples/README.md").read_text().splitlines()]
    assert [line for line in ran.stdout.splitlines() if line.strip() not in shown] == []


def test_with_cumulative_starts_every_page_lands_right_and_no_other_is_written():
    ran = serve("--repaired")
    assert ran.returncode == 0
    *table, last = ran.stdout.splitlines()[3:]
    assert last == "24 of 24 pages are right"
    assert [line.split()[2:] for line in table] == [[*["right"] * 4, "-"]] * 6
