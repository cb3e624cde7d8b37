"""A program that has nothing but kernels, under `kvlint run`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

for wheel in ("triton", "torch", "wrapt"):
    pytest.importorskip(wheel, reason=f"the wheel {wheel} is missing")

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
import torch, triton, triton.language as tl

@triton.jit
def store(cache, slots, stride, width: tl.constexpr):
    slot = tl.load(slots + tl.program_id(0))
    tl.store(cache + slot * stride + tl.arange(0, width), 1.0)

cache = torch.zeros(16, 32)
slots = torch.tensor([3, int(sys.argv[1])])
store[(2,)](cache, slots, cache.stride(0), width=32)
print(int(cache.sum()))
"""


@pytest.fixture
def run(tmp_path):
    def run(*arguments, mode="assert", **variables):
        (tmp_path / "program.py").write_text(PROGRAM)
        options = ["--mode", mode, "--report", str(tmp_path / "out")]
        program = [sys.executable, str(tmp_path / "program.py"), *arguments]
        return subprocess.run(
            [sys.executable, "-m", "kvlint", "run", *options, "--", *program],
            cwd=ROOT,
            env=os.environ | {"TRITON_INTERPRET": "1", **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_a_right_program_is_told_so(run):
    ran = run("15")
    assert (ran.returncode, ran.stdout) == (0, "64\n"), ran.stderr
    last = "kvlint: no violations in 1 process that had Triton's kernels alone"
    assert ran.stderr.splitlines()[-1] == last


def test_a_wrong_program_ends_at_its_launch(run, tmp_path):
    ran = run("16")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "program.py:8: 16, loaded from slots in program (1, 0, 0)" in ran.stderr
    told = subprocess.run(
        [sys.executable, "-m", "kvlint", "report", str(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "violation 1 of 1: launch-index-range" in told.stdout
    assert "launch of store called in" in told.stdout
    assert "program.py:12 in <module>" in told.stdout


def test_kernels_are_not_all_that_is_required(run):
    ran = run("15", KVLINT_REQUIRE="all")
    assert ran.returncode == 78
    assert "required, and never imported: all" in ran.stderr
