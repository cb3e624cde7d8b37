"""Whole-tree time of `kvlint check` as a multiple of `ruff check --select B905`.

    python benchmarks/speed.py TREE [--runs 5]

The two run in turn (A B A B ...), after one warm-up of each, so that both see the same noise.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

KVLINT = [
    *(sys.executable, "-m", "kvlint", "check", "--select", "KV101,KV102,KV103"),
    *("--output-format", "json", "--no-cache", "."),
]
RUFF = [
    str(Path(sys.executable).with_name("ruff")),
    "check",
    "--isolated",
    "--no-cache",
    "--select",
    "B905",
    "-q",
    ".",
]


def seconds(command: list[str], tree: Path) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{command[0]} failed: {done.stderr.decode()[-500:]}")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    for command in (RUFF, KVLINT):
        seconds(command, options.tree)
    pairs = [
        (seconds(KVLINT, options.tree), seconds(RUFF, options.tree)) for _ in range(options.runs)
    ]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"kvlint {ours:.1f} s, ruff B905 {theirs:.2f} s, ratio {ratio:.1f}")
    print(f"peak memory of one process {peak:.0f} MiB; {options.runs} pairs")


if __name__ == "__main__":
    main()
