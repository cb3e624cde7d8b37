"""What the runtime companion adds to NIXL's calls, in host memory: off, log and assert in turn.

    python benchmarks/transport_cost.py [--rounds 9] [--write FILE]

Each round goes once through the modes, from another one on each time: the companion is armed, an
agent made, the lists prepared and every call timed. The peer's agent is made before anything is
armed, so the companion knows of it what it knows of a peer in another process. Figures are
medians over all rounds; what is added is against `off`.
"""

import argparse
import datetime
import gc
import itertools
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("NIXL_LOG_LEVEL", "WARN")

from kvlint.runtime_checks import arm, disarm, status
from kvlint.runtime_checks.columns import uneven
from kvlint.runtime_checks.destinations import written_twice
from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.pairing import mispaired, unequal_counts
from kvlint.runtime_checks.selection import Selection, select

if TYPE_CHECKING:
    from kvlint.geometry import Region

MODES = ("off", "log", "assert")
NAMES = itertools.count()


@dataclass
class Pool:
    """Regions, each its own memory, listed in either form.

    shapes  slots and bytes a slot, of each region
    kind    DRAM, or VRAM of the current CUDA device
    """

    shapes: list[tuple[int, int]]
    kind: str = "DRAM"
    buffers: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        if self.kind == "VRAM":
            import torch

            make = {"dtype": torch.uint8, "device": "cuda"}
            self.buffers = [torch.zeros(shape, **make) for shape in self.shapes]
            self.addresses = [buffer.data_ptr() for buffer in self.buffers]
            self.device = torch.cuda.current_device()
        else:
            self.buffers = [np.zeros(shape, np.uint8) for shape in self.shapes]
            self.addresses = [buffer.ctypes.data for buffer in self.buffers]
            self.device = 0
        self.starts = np.cumsum([0, *(slots for slots, _ in self.shapes)])[:-1]

    def register(self, agent: Any) -> None:
        for address, (slots, size) in zip(self.addresses, self.shapes, strict=True):
            agent.register_memory([(address, slots * size, self.device, "")], self.kind)

    def rows3(self) -> np.ndarray:
        tables = []
        for address, (slots, size) in zip(self.addresses, self.shapes, strict=True):
            table = np.zeros((slots, 3), np.uint64)
            table[:, 0] = address + np.arange(slots) * size
            table[:, 1:] = size, self.device
            tables.append(table)
        return np.concatenate(tables)

    def rows5(self) -> np.ndarray:
        both = zip(self.addresses, self.shapes, strict=True)
        rows = [(address, size, self.device, size, slots) for address, (slots, size) in both]
        return np.array(rows, np.uint64)

    def indices(self, pages: np.ndarray, dtype: str) -> np.ndarray:
        """Of `pages` in every region, region after region."""
        return (self.starts[:, None] + pages).ravel().astype(dtype)


@dataclass
class Times:
    """Microseconds by what was timed and by mode."""

    of: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    @contextmanager
    def timed(self, what: str, mode: str) -> Iterator[None]:
        began = time.perf_counter_ns()
        yield
        took = (time.perf_counter_ns() - began) / 1e3
        self.of.setdefault(what, {}).setdefault(mode, []).append(took)

    def median(self, what: str, mode: str) -> float:
        return statistics.median(self.of[what][mode])


def agent_of(name: str) -> Any:
    """Without NIXL's thread for progress, which spins beside what is timed."""
    from nixl._api import nixl_agent, nixl_agent_config

    how = nixl_agent_config(backends=["UCX"], enable_prog_thread=False)
    return nixl_agent(f"{name}{next(NAMES)}", how)


@contextmanager
def armed(mode: str) -> Iterator[None]:
    if mode != "off":
        arm(mode)
    try:
        yield
        said = {key: status().get(key) for key in ("violations", "tool_errors")}
        assert not any(said.values()), said
    finally:
        disarm()


class Bench:
    """`pages` of all regions of two pools of these shapes."""

    def __init__(
        self, shapes: list[tuple[int, int]], pages: int, repeats: int, kind: str = "DRAM"
    ) -> None:
        self.mine, self.theirs, self.kind = Pool(shapes, kind), Pool(shapes, kind), kind
        self.repeats, self.times = repeats, Times()
        self.peer = agent_of("peer")
        self.theirs.register(self.peer)
        self.metadata = self.peer.get_agent_metadata()
        random = np.random.default_rng(1)
        slots = min(count for count, _ in shapes)
        self.scattered = [random.permutation(slots)[:pages] for _ in range(8)]
        self.run = np.arange(slots - pages, slots)

    def all(self, rounds: int) -> None:
        self.round("off")  # what is first is slower than it ever is again
        self.times = Times()
        for number in range(rounds):
            for mode in MODES[number % 3 :] + MODES[: number % 3]:
                self.round(mode)
        self.alone()

    def round(self, mode: str) -> None:
        with armed(mode):
            agent = agent_of("initiator")
            self.mine.register(agent)
            agent.add_remote_agent(self.metadata)
            local, remote = self.lists(agent, mode)
            self.making(agent, mode, local, remote)
            self.moving(agent, mode, local, remote)
            for handle in (local, remote):
                agent.release_dlist_handle(handle)
            agent.remove_remote_agent(self.peer.name)
        del agent
        gc.collect()

    def lists(self, agent: Any, mode: str) -> tuple[Any, Any]:
        """Both lists as Nx3, after each form of each side was prepared and timed."""
        for side, name, pool in (("local", "", self.mine), ("remote", self.peer.name, self.theirs)):
            for form, rows in (("Nx3", pool.rows3()), ("Nx5", pool.rows5())):
                for _ in range(3 if form == "Nx3" else self.repeats):
                    with self.times.timed(f"prep_xfer_dlist {form} {side}", mode):
                        handle = agent.prep_xfer_dlist(name, rows, self.kind)
                    agent.release_dlist_handle(handle)
        return (
            agent.prep_xfer_dlist("", self.mine.rows3(), self.kind),
            agent.prep_xfer_dlist(self.peer.name, self.theirs.rows3(), self.kind),
        )

    def making(self, agent: Any, mode: str, local: Any, remote: Any) -> None:
        for dtype in ("int32", "int64"):
            for order, chosen in (("random order", self.scattered), ("one run", [self.run] * 8)):
                for number in range(self.repeats):
                    here = self.mine.indices(chosen[number % 8], dtype)
                    there = self.theirs.indices(chosen[(number + 3) % 8], dtype)
                    with self.times.timed(f"make_prepped_xfer {order} {dtype}", mode):
                        handle = agent.make_prepped_xfer("WRITE", local, here, remote, there, b"x")
                    handle.release()

    def moving(self, agent: Any, mode: str, local: Any, remote: Any) -> None:
        """Post, poll until done, release; few bytes, so that they do not hide the rest."""
        for what, pages in (("1 page", self.run[:1]), ("a run", self.run)):
            here, there = self.mine.indices(pages, "int32"), self.theirs.indices(pages, "int32")
            for _ in range(self.repeats):
                handle = agent.make_prepped_xfer("WRITE", local, here, remote, there, b"x")
                with self.times.timed(f"transfer to release, {what}", mode):
                    agent.transfer(handle)
                    while agent.check_xfer_state(handle) != "DONE":
                        self.peer.get_new_notifs()
                    agent.release_xfer_handle(handle)

    def alone(self) -> None:
        """The exact check of both sides without NIXL, as `make_prepped_xfer` is checked."""
        names: list[Region | None] = [None] * len(self.mine.shapes)
        pieces = np.arange(len(self.mine.shapes))
        ours, theirs = (
            DescriptorList(n, side, side, self.kind, fold(pool.rows5()), names, lambda: pieces)
            for n, side, pool in ((1, "local", self.mine), (2, "remote", self.theirs))
        )
        for number in range(10 * self.repeats):
            here = self.mine.indices(self.scattered[number % 8], "int32")
            there = self.theirs.indices(self.scattered[(number + 3) % 8], "int32")
            with self.times.timed("check alone", "log"):
                one, other = select(ours, here), select(theirs, there)
                assert isinstance(one, Selection)
                assert isinstance(other, Selection)
                found = [
                    unequal_counts(one, other),
                    uneven(one, other),
                    uneven(other, one),
                    mispaired(one, other, by_number=True),
                    written_twice(other, one),
                ]
            assert found == [None] * 5


def table(times: Times) -> str:
    lines = ["| microseconds, median | off | log | assert | log adds | of the call |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for what in times.of:
        if "off" in times.of[what]:
            off, log, raising = (times.median(what, mode) for mode in MODES)
            lines.append(
                f"| {what} | {off:,.0f} | {log:,.0f} | {raising:,.0f} | {log - off:+,.0f} "
                f"| {log / off - 1:+.1%} |"
            )
    return "\n".join(lines)


def goals(times: Times) -> str:
    """What was aimed at, and what came out."""
    scattered = "make_prepped_xfer random order int32"
    off = times.median(scattered, "off")
    worst = max(times.median(scattered, mode) - off for mode in ("log", "assert"))
    lines = ["| aim | here |", "|---|---|"]
    alone = times.median("check alone", "log")
    lines.append(f"| exact check of both sides, at most 200 microseconds | {alone:,.0f} |")
    lines.append(f"| added to `make_prepped_xfer`, at most 15 % of it | {worst / off:.1%} |")
    for side in ("local", "remote"):
        nx3, nx5 = (f"prep_xfer_dlist {form} {side}" for form in ("Nx3", "Nx5"))
        ratio = times.median(nx3, "log") / times.median(nx3, "off")
        added = times.median(nx5, "log") - times.median(nx5, "off")
        lines.append(f"| preparing Nx3, {side}, at most 1.25 x | {ratio:.2f} x |")
        lines.append(f"| preparing Nx5, {side}, at most 150 microseconds more | {added:,.0f} |")
    return "\n".join(lines)


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    versions = []
    for name in ("kvlint-geometry", "nixl", "nixl-cu13", "numpy"):
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    day = datetime.datetime.now(datetime.UTC).date()
    python = platform.python_version()
    return f"{day}, {cpu}, {os.cpu_count()} cores; python {python}; {'; '.join(versions)}."


def main() -> None:
    parser = argparse.ArgumentParser(description="What the companion adds to NIXL's calls.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=16, help="of each call in a round")
    parser.add_argument("--regions", type=int, default=62)
    parser.add_argument("--slots", type=int, default=4096)
    parser.add_argument("--bytes", type=int, default=256, help="of a slot")
    parser.add_argument("--pages", type=int, default=2048)
    parser.add_argument("--write", type=Path, help="file for the result")
    asked = parser.parse_args()
    bench = Bench([(asked.slots, asked.bytes)] * asked.regions, asked.pages, asked.repeats)
    bench.all(asked.rounds)
    text = "\n".join(
        [
            "# What the companion adds to NIXL's calls",
            "",
            machine(),
            f"Medians of {asked.rounds} rounds, modes interleaved; {asked.pages:,} pages over "
            f"lists of {asked.regions} regions x {asked.slots:,} slots of {asked.bytes} bytes:",
            "",
            f"    python benchmarks/transport_cost.py --rounds {asked.rounds}",
            "",
            table(bench.times),
            "",
            goals(bench.times),
        ]
    )
    print(text)
    if asked.write:
        asked.write.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
