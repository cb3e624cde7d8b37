"""examples/dsv4_slots: what a real transfer does with `i * S0`, and what it says about it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVE = "examples/dsv4_slots/serve.py"

pytestmark = pytest.mark.usefixtures("nixl")


def ran(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        env=os.environ | {"NIXL_LOG_LEVEL": "WARN"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(SERVE, *arguments)


def watched(mode: str, report: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["-m", "kvlint", "run", "--mode", mode, "--report", report]
    return ran(*command, "--", sys.executable, SERVE, *arguments)


def test_with_one_stride_pages_land_elsewhere_and_nobody_says_so():
    done = serve()
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "12 of 24 pages are right"
    shown = [line.strip() for line in (ROOT / "examples/README.md").read_text().splitlines()]
    assert [line for line in done.stdout.splitlines() if line.strip() not in shown] == []


def test_with_cumulative_starts_every_page_lands_right_and_no_other_is_written():
    done = serve("--repaired")
    assert done.returncode == 0
    *table, last = done.stdout.splitlines()[3:]
    assert last == "24 of 24 pages are right"
    assert [line.split()[2:] for line in table] == [[*["right"] * 4, "-"]] * 6


def test_in_mode_assert_the_request_fails_before_a_byte_has_moved(tmp_path):
    done = watched("assert", tmp_path / "report")
    assert done.returncode == 70
    assert (
        "request 1 failed: local index 497 (at 12) is 3 * 164 + 5 and meant for region 3 slot 5, "
        "but local region 3 starts at 489: it is local region 3 slot 8 (byte 2048)"
    ) in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "0 of 24 pages are right"


def test_in_mode_log_the_same_bytes_move_and_the_exit_status_tells(tmp_path):
    done = watched("log", tmp_path / "report")
    assert done.returncode == 70
    assert done.stdout == serve().stdout
    (file,) = (tmp_path / "report").glob("violations*.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(r["check"], r["code"], r["side"], r["region"], r["slot"]) for r in records] == [
        ("column", "KV103", "local", 3, 8),
        ("column", "KV103", "remote", 3, 43),
    ]
    assert [(r["list"], r["index"], r["meant"]) for r in records] == [
        (1, 497, {"region": 3, "slot": 5, "index": 494}),
        (2, 532, {"region": 3, "slot": 40, "index": 529}),
    ]


def test_repaired_nothing_is_said(tmp_path):
    done = watched("assert", tmp_path / "report", "--repaired")
    assert done.returncode == 0
    assert done.stdout == serve("--repaired").stdout
    assert "violation:" not in done.stderr
