"""What the documents show is what the companion has and says."""

import subprocess
import sys
from pathlib import Path

import pytest

from kvlint.runtime_checks.checks import CHECKS

ROOT = Path(__file__).parents[2]


def between(path: Path, name: str) -> str:
    text = path.read_text(encoding="utf-8")
    return text.split(f"<!-- {name}:start -->")[1].split(f"<!-- {name}:end -->")[0].strip()


def test_the_table_of_checks_is_the_catalogue():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in between(ROOT / "runtime_checks/README.md", "checks").splitlines()[2:]
    ]
    assert rows == [
        [
            f"`{check.name}`",
            check.summary,
            "(NIXL refuses it)" if check.refused else check.code or "",
        ]
        for check in CHECKS.values()
    ]


@pytest.mark.usefixtures("nixl")
def test_the_violation_in_the_readme_is_real(tmp_path):
    example = [sys.executable, "examples/dsv4_slots/serve.py"]
    options = ["--mode", "log", "--report", str(tmp_path / "report"), "--"]
    run = subprocess.run(
        [sys.executable, "-m", "kvlint", "run", *options, *example],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert between(ROOT / "README.md", "violation").strip("`").strip() in run.stderr
    assert run.returncode == 70


@pytest.mark.usefixtures("torch")
def test_the_pool_in_the_readme_is_told_so(tmp_path):
    pytest.importorskip("wrapt", reason="the wheel wrapt is missing")
    shown = between(ROOT / "README.md", "pool").removeprefix("```python").strip("`")
    (tmp_path / "pool.py").write_text(shown)
    options = ["--mode", "log", "--report", str(tmp_path / "report"), "--"]
    run = subprocess.run(
        [sys.executable, "-m", "kvlint", "run", *options, sys.executable, tmp_path / "pool.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert between(ROOT / "README.md", "pool-violation").strip("`").strip() in run.stderr
    assert run.returncode == 70
