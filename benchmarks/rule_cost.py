"""What groups of rules add to a cold `kvlint check` of a tree: one interleaved run.

    python benchmarks/rule_cost.py TREE [--runs N]

Each group is asked together with the first one, so that what several rules need is counted once.
Ratios are of medians, to the first group alone.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

FIRST = "KV101,KV102,KV103"
GROUPS = {
    "KV101 to KV103": FIRST,
    "and KV105": f"{FIRST},KV105",
    "and KV201, KV202": f"{FIRST},KV201,KV202",
    "and KV205": f"{FIRST},KV205",
    "all by default": "ALL",
}


def once(tree: Path, select: str) -> tuple[float, float]:
    """Wall and processor seconds of one run without cache; fails where kvlint does."""
    command = [
        sys.executable,
        "-m",
        "kvlint",
        "check",
        "--no-cache",
        "--project",
        ".",
        "--exit-zero",
    ]
    before, started = os.times(), time.perf_counter()
    subprocess.run(
        [*command, "--statistics", "--select", select, "."],
        cwd=tree, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wall, after = time.perf_counter() - started, os.times()
    spent = after.children_user + after.children_system
    return wall, spent - before.children_user - before.children_system


def table(runs: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Medians, and ratios to the first row."""
    medians = {
        name: tuple(statistics.median(column) for column in zip(*seconds, strict=True))
        for name, seconds in runs.items()
    }
    first = next(iter(medians.values()))
    rows = ["| rules | wall s | CPU s | x wall | x CPU |", "|---|---|---|---|---|"]
    for name, (wall, spent) in medians.items():
        ratios = f"{wall / first[0]:.2f} | {spent / first[1]:.2f}"
        rows.append(f"| {name} | {wall:.1f} | {spent:.1f} | {ratios} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, metavar="TREE")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in GROUPS}
    for _ in range(options.runs):
        for name, select in GROUPS.items():
            runs[name].append(once(options.tree, select))
    print(table(runs))


if __name__ == "__main__":
    main()
