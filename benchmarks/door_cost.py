"""What the plug-in costs an engine's process that is not armed, against one that does nothing.

    python benchmarks/door_cost.py [--processes 101] [--write FILE]

Both are installed in a folder as an installer leaves them: kvlint's wheel, and a distribution of
one module with one empty function. Processes of either kind take turns. In each, what engines do
first is done first (`importlib.metadata` is imported and both plug-ins are found); then the entry
point is loaded and called as the engines do it, and that is timed. What kvlint costs is the
difference, pair by pair: finding, reading and running three modules where the other has one.
"""

import argparse
import compileall
import datetime
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.building import install

GROUPS = ("sglang.srt.plugins", "vllm.general_plugins")
AIM = 1000

IN_PROCESS = """
import sys, time
from importlib.metadata import entry_points
(plugin,) = entry_points(group=sys.argv[1], name=sys.argv[2])
began = time.perf_counter_ns()
plugin.load()()
took = time.perf_counter_ns() - began
assert not [name for name in sys.modules if name.startswith("kvlint.runtime_checks.a")]
print(took / 1000)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=101, metavar="N", help="of each kind")
    parser.add_argument("--write", type=Path, metavar="FILE")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = install(Path(folder))
        add_empty(site)
        compileall.compile_dir(site, quiet=2)  # as installers do
        # Once for the disk's cache.
        for name in ("nothing", "kvlint"):
            microseconds(site, GROUPS[0], name)
        taken = {group: pairs(site, group, asked.processes) for group in GROUPS}
    text = report(taken)
    print(text, end="")
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")


def add_empty(site: Path) -> None:
    """A distribution with a plug-in that does nothing."""
    (site / "nothing.py").write_text("def plug():\n    pass\n")
    metadata = site / "nothing-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: nothing\nVersion: 1\n")
    points = "".join(f"[{group}]\nnothing = nothing:plug\n" for group in GROUPS)
    (metadata / "entry_points.txt").write_text(points)


def pairs(site: Path, group: str, count: int) -> list[tuple[float, float]]:
    """Microseconds without and with kvlint, in turn, either one first as often."""
    taken = []
    for number in range(count):
        names = ("nothing", "kvlint") if number % 2 else ("kvlint", "nothing")
        times = {name: microseconds(site, group, name) for name in names}
        taken.append((times["nothing"], times["kvlint"]))
    return taken


def microseconds(site: Path, group: str, name: str) -> float:
    environ = {key: value for key, value in os.environ.items() if key[:7] != "KVLINT_"}
    ran = subprocess.run(
        [sys.executable, "-c", IN_PROCESS, group, name],
        env=environ | {"PYTHONPATH": str(site)},
        cwd=site,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(ran.stdout)


def report(taken: dict[str, list[tuple[float, float]]]) -> str:
    # Others on the same machine show in the last column first.
    load = f"{os.cpu_count()} cores with a load of {os.getloadavg()[1]:.0f}"
    machine = f"{platform.machine()}, {load}; python {platform.python_version()}"
    count = len(taken[GROUPS[0]])
    lines = [
        "# What a plug-in costs that is not armed",
        "",
        f"{datetime.date.today()}, {machine}. Microseconds to load and call the entry point where",
        f"KVLINT_RUNTIME is unset; {count} processes of each kind, in turn:",
        "",
        f"    python benchmarks/door_cost.py --processes {count}",
        "",
        "| plug-in | empty one, median | kvlint, median | kvlint adds, median | 9 in 10 below |",
        "|---|---:|---:|---:|---:|",
    ]
    for group, both in taken.items():
        added = [ours - empty for empty, ours in both]
        empty, ours = (statistics.median(column) for column in zip(*both, strict=True))
        most = statistics.quantiles(added, n=10)[-1] if len(added) > 1 else added[0]
        lines.append(
            f"| `{group}` | {empty:,.0f} | {ours:,.0f} | {statistics.median(added):,.0f} "
            f"| {most:,.0f} |"
        )
    added = [ours - empty for both in taken.values() for empty, ours in both]
    lines += ["", f"Aim: at most {AIM:,} more. Here: {statistics.median(added):,.0f}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
