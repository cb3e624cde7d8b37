"""What all parts of the measurement share: two workers with their pools, the time that is left, and
the report."""

import argparse
import datetime
import itertools
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from two_processes.costs import PAGE_TOKENS
from two_processes.faults import KEY, MLA, V4
from two_processes.workers import LostError, Workers

SHAPES = [(164, 37_440)] * 21 + [(161, 8_448)] * 21 + [(288, 1_728)] * 20
NAMES = [
    f"layer {n} {part}"
    for part, layers in (("c4", 21), ("index", 21), ("c128", 20))
    for n in range(layers)
]
LAYERS, PAGE_BYTES = 61, 73_728
SHARES = {"faults": 2, "clean": 3, "cost": 5}
KNOWN = ("python", "torch", "triton", "nixl", "nixl-cu13", "numpy", "kvlint-geometry")


class Report:
    """What is printed, and kept in a file at once: what comes next may end the process.

    draft  what is known so far of what is said later
    """

    def __init__(self, file: Path | None) -> None:
        self._file, self._lines = file, list[str]()
        self.draft: Callable[[], list[str]] = list

    def say(self, line: str = "") -> None:
        self._lines.append(line)
        print(line, flush=True)
        self.keep()

    def keep(self) -> None:
        if self._file is not None:
            text = "\n".join([*self._lines, *self.draft()]) + "\n"
            self._file.write_text(text, encoding="utf-8")

    def say_draft(self) -> None:
        """The draft, which is none any longer."""
        lines, self.draft = self.draft(), list
        for line in lines:
            self.say(line)

    def progress(self, line: str) -> None:
        print(f"    {line}", file=sys.stderr, flush=True)


class Session:
    """
    asked     the options
    kind      of memory: VRAM where NIXL takes it in both processes
    problems  how much was not as it should be
    numbers   of agents, none of which has the name of another
    """

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.report = asked, Report(asked.write)
        self.deadline = time.monotonic() + asked.budget
        self.kind, self.problems, self.numbers = "DRAM", 0, itertools.count(1)
        self.tokens: list[int] = []
        self._workers: Workers | None = None

    @property
    def in_vram(self) -> bool:
        return self.kind == "VRAM"

    @property
    def pages(self) -> int:
        """Of MLA, of the longest request."""
        return max(4, max(self.tokens) // PAGE_TOKENS[MLA])

    def look(self) -> None:
        """What there is. Everything else goes by it."""
        self._workers = workers = Workers({}, self.deadline)
        ours, theirs = workers.both(("machine",), ("machine",))
        why = ours["why"] or theirs["why"]
        self.kind = "DRAM" if why else "VRAM"
        say = self.report.say
        say(_machine(ours))
        if why:
            say(f"{why}: all of this ran in host memory.")
        else:
            say(f"Prefill on {ours['device']}, decode on {theirs['device']}.")
            if ours["devices"] == 1:
                say("There is one GPU: both processes use it.")
            elif not ours["peer"]:
                say("The GPUs do not reach each other's memory directly.")
        say(f"`python benchmarks/gpu/two_gpus.py{_options()}`")
        say(f"UCX_TLS={os.environ.get('UCX_TLS', 'unset')}; memory: {self.kind}.")
        self.tokens = self.asked.tokens or ([1024] if why else [1024, 8192, 49152])
        self._allot(workers, self.pages)

    def shapes(self, pages: int | None = None) -> dict[str, list[tuple[int, int]]]:
        """(slots, bytes) of each region; MLA's for requests of so many pages."""
        return {V4: SHAPES, MLA: [((pages or self.pages) + 8, PAGE_BYTES)] * LAYERS}

    def _allot(self, workers: Workers, pages: int) -> None:
        names = {V4: NAMES, MLA: [f"layer {n} kv" for n in range(LAYERS)]}
        call = "allot", self.kind, self.shapes(pages), names
        workers.both(call, call)

    @contextmanager
    def workers(self) -> Iterator[Workers]:
        """Those of before, or new ones where they are lost."""
        if self._workers is None:
            self._workers = Workers({}, self.deadline)
            self._workers.both(("machine",), ("machine",))
            self._allot(self._workers, self.pages)
        try:
            yield self._workers
        except LostError:
            self._workers = None
            raise

    @contextmanager
    def others(self, environment: Mapping[str, str], pages: int) -> Iterator[Workers]:
        """Workers of another environment, for one purpose."""
        with Workers(environment, self.deadline) as workers:
            workers.both(("machine",), ("machine",))
            self._allot(workers, pages)
            yield workers

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def begin(self, workers: Workers, mode: str) -> None:
        """NIXL's own thread is there as engines have it, and does not spin where cores are few."""
        how = mode, next(self.numbers), self.in_vram, KEY
        decode = workers.ask("decode", "begin", *how)
        workers.ask("prefill", "begin", *how)
        workers.ask("prefill", "meet", *decode)

    def ends(self, part: str) -> float:
        """When this part has had its share of the time, by what is still to come."""
        parts = self.asked.parts
        left = sum(SHARES[one] for one in parts[parts.index(part) :])
        now = time.monotonic()
        return now + (self.deadline - 15 - now) * SHARES[part] / left

    def problem(self, line: str) -> None:
        self.problems += 1
        self.report.say(line)


def _machine(found: Mapping[str, Any]) -> str:
    info = Path("/proc/cpuinfo")
    names = info.read_text().splitlines() if info.exists() else []
    cpu = next((n.partition(":")[2].strip() for n in names if n.startswith("model name")), "?")
    versions = "; ".join(f"{name} {found[name]}" for name in KNOWN if name in found)
    when = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
    return f"{when}, {cpu}, {os.cpu_count()} cores; {versions}."


def _options() -> str:
    """As they were given; where the file goes says nothing."""
    kept = sys.argv[1:]
    if "--write" in kept:
        at = kept.index("--write")
        del kept[at : at + 2]
    kept = [one for one in kept if not one.startswith("--write=")]
    return f" {shlex.join(kept)}" if kept else ""
