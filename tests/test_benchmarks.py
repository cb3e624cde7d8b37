"""The benchmarks of the companion run, on a small scale and without a GPU."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rule_cost import table

ROOT = Path(__file__).parent.parent
WHY = "the wheel {} is missing"


def printed(*command: str, seconds: float = 120) -> list[str]:
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout.splitlines()


def test_the_cost_is_told_for_every_call_and_every_aim():
    pytest.importorskip("nixl", reason=WHY.format("nixl"))
    small = ["--rounds", "1", "--repeats", "2", "--regions", "4", "--slots", "64", "--pages", "16"]
    lines = printed("benchmarks/transport_cost.py", *small)
    assert sum(line.startswith("| prep_xfer_dlist") for line in lines) == 4
    assert sum(line.startswith("| make_prepped_xfer") for line in lines) == 4
    assert sum("at most" in line for line in lines) == 6


def test_what_a_plug_in_costs_is_told_for_both_engines():
    lines = printed("benchmarks/door_cost.py", "--processes", "2")
    assert (
        sum(line.startswith(("| `sglang.srt.plugins`", "| `vllm.general")) for line in lines) == 2
    )
    assert lines[-1].startswith("Aim: at most 1,000 more. Here: ")


def test_faults_are_told_and_pages_counted_in_host_memory_where_there_is_no_gpu():
    for wheel in ("nixl", "torch"):
        pytest.importorskip(wheel, reason=WHY.format(wheel))
    lines = printed("benchmarks/gpu/transport.py", "--rounds", "0")
    assert "No CUDA here: all of this ran in host memory." in lines
    told = "\n".join(lines).split("log: ")
    assert "248 of 248 pages right, 0 others" in told[1]
    assert "kvlint says      nothing" in told[1]
    assert "88 of 248 pages right, 158 others" in told[2]
    assert "kvlint says      column [KV103]" in told[2]
    assert "faults of kvlint itself" not in "".join(lines)


def test_guarded_pools_are_told_by_name_in_host_memory_where_there_is_no_gpu():
    for wheel in ("nixl", "torch", "wrapt"):
        pytest.importorskip(wheel, reason=WHY.format(wheel))
    told = [line[2:] for line in printed("benchmarks/gpu/pools.py") if line.startswith("* ")]
    assert told[0] == "cumulative starts: 18 of 18 slots right, kvlint says nothing"
    assert [line.split(": ")[:2] for line in told[1:]] == [
        ["one stride for all regions", "column"],
        ["one count for all regions", "out-of-region"],
        ["one byte an element", "item-length"],
    ]


def test_digests_are_right_in_the_interpreter_where_there_is_no_gpu():
    for wheel in ("torch", "triton"):
        pytest.importorskip(wheel, reason=WHY.format(wheel))
    lines = printed("benchmarks/gpu/digests.py", "--quick")
    assert sum(line.startswith("* right: ") for line in lines) == 1
    assert lines[-1] == "No CUDA here: this was Triton's interpreter, and nothing is timed."


def test_the_cost_of_rules_is_told_as_a_ratio_to_the_first_group():
    runs = {"one": [(1.0, 2.0), (3.0, 2.0)], "other": [(4.0, 3.0), (4.0, 3.0)]}
    assert table(runs).splitlines()[2:] == [
        "| one | 2.0 | 2.0 | 1.00 | 1.00 |",
        "| other | 4.0 | 3.0 | 2.00 | 1.50 |",
    ]


def test_launches_are_measured_on_a_gpu_only():
    for wheel in ("triton", "torch", "wrapt"):
        pytest.importorskip(wheel, reason=WHY.format(wheel))
    assert "There is no GPU here: nothing was measured." in printed("benchmarks/gpu/launches.py")


def test_each_fault_of_a_stage_is_called_what_it_is_in_host_memory_where_there_is_no_gpu():
    for wheel in ("torch", "wrapt"):
        pytest.importorskip(wheel, reason=WHY.format(wheel))
    lines = printed("benchmarks/gpu/stages.py", "--rounds", "2")
    assert "No CUDA here: all of this ran in host memory." in lines
    assert "NOT AS EXPECTED" not in "\n".join(lines)
    assert lines[-2:] == [
        "2 rounds of right pages: 0 findings. No call has waited.",
        "Faults of kvlint itself: none.",
    ]


@pytest.fixture
def costs(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks" / "gpu")
    return importlib.import_module("two_processes.costs")


def timed(**steps: float) -> dict[str, float]:
    """A transfer as `measure` gives it, in milliseconds."""
    every = {"make": 0, "post": 60, "to the end": 0, "afterwards": 0, "notification": 0} | steps
    whole = sum(every.values())
    seconds = {step: each / 1000 for step, each in every.items()}
    ours = sum(seconds[step] for step in ("make", "post", "to the end", "afterwards"))
    return seconds | {
        "whole": whole / 1000,
        "prefill": ours,
        "calls": seconds["notification"],
        "idle": 0.0,
        "compared": 1.0,
    }


def test_what_two_processes_take_is_told_as_a_share_of_the_bare_transfer(costs):
    (case,) = costs.cases([8192], {"MLA": [(136, 73_728)] * 61})[1:]
    assert str(case) == "MLA, 8,192 tokens, random order"
    assert case.size == "7,808 pages, 576 MB"
    told = costs.Costs([case], in_vram=True)
    assert told.lines() == ["Nothing was measured in all modes."]
    for mode, make in (("off", 0), ("log", 0.3), ("assert", 0.6), ("paranoid", 3)):
        told.add(case, mode, [timed(make=make)] * 3, right=True)
    (aim,) = (line for line in told.lines() if line.startswith(f"| {case} |"))
    assert "| +600 (+1.0%) | +600 (+1.0%) | +0 (+0.0%) | 1% | met: make +600," in aim
    told.add(case, "assert", [timed(make=6)] * 9, right=True)
    (aim,) = (line for line in told.lines() if line.startswith(f"| {case} |"))
    assert "| 1% | 10.0%: make +6,000," in aim
    assert told.lines()[-1] == "26 transfers; wrong bytes, findings, not compared: 0."


def test_a_transfer_that_nobody_compared_or_that_brought_other_bytes_is_told(costs):
    (case, _) = costs.cases([64], {"MLA": [(9, 64)] * 2})
    told = costs.Costs([case], in_vram=False)
    told.add(case, "assert", [timed() | {"compared": 0.0}], right=False)
    told.ended([{"found": [{"check": "column", "message": "m"}], "tool_errors": {}}])
    assert told.wrong == 3
    assert told.lines()[:3] == [
        "* MLA, 64 tokens, in order, assert: not the bytes that were sent",
        "* MLA, 64 tokens, in order, assert: 1 of 1 not compared",
        "* FALSE: column: m",
    ]


def test_two_processes_name_each_fault_and_nothing_else_in_host_memory_where_there_is_no_gpu():
    for wheel in ("nixl", "torch", "wrapt"):
        pytest.importorskip(wheel, reason=WHY.format(wheel))
    small = ["--tokens", "256", "--transfers", "6", "--rounds", "1", "--repeats", "1"]
    lines = printed("benchmarks/gpu/two_gpus.py", *small, "--budget", "560", seconds=590)
    assert "no CUDA here: all of this ran in host memory." in lines
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    told = {row[0]: row[2] for row in rows if row[1:2] in (["assert"], ["paranoid"])}
    assert list(told.values())[:10] == [
        "nothing is said, as it should be",
        "column [KV103]",
        "pairing [KV303]",
        "early-read",
        "arrived-wrong",
        "arrived-wrong",
        "nothing is said, as it should be",
        "source-changed",
        "page-reused",
        "released-in-flight [KV504]",
    ]
    # Transfers, WRITE and READ, compared, pages, findings, errors.
    clean = {row[0]: row[1:] for row in rows if row[1:3] == ["6", "4 / 2"]}
    assert set(clean) == {"assert", "paranoid"}
    assert all(row[2] == "6" and row[4:6] == ["0", "none"] for row in clean.values())
    assert sum(line.startswith(("| DeepSeek-V4, 256", "| MLA, 256")) for line in lines) == 4
    assert lines[-1] == "32 transfers; wrong bytes, findings, not compared: 0."
