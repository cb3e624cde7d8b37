"""Pages of a request's shape in GPU memory, what reads them, and what times that."""

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

import triton
import triton.language as tl

from kvlint.runtime_checks.digests.kernels import digest_pages
from kvlint.runtime_checks.digests.launches import Form, launch_of
from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.reference import digests_of_rows, seeds

GPU = "cuda" if torch.cuda.is_available() else "cpu"
SEED = 0x0123_4567_89AB_CDEF
Run = Callable[[], Any]


@dataclass(frozen=True)
class Shape:
    """Pages of a request: `pages` random ones of twice as many in each of `regions`."""

    name: str
    regions: int
    length: int
    pages: int

    @property
    def bytes(self) -> int:
        return self.regions * self.length * self.pages


@triton.jit
def read_sum(words, found, WORDS: tl.constexpr):
    """A plain sum of what lies in one piece, the ceiling of reading: a program a block."""
    program = tl.program_id(0)
    block = words + program.to(tl.int64) * WORDS + tl.arange(0, WORDS)
    tl.store(found + program, tl.sum(tl.load(block)))


class Memory:
    """The regions of a shape, one after the other in one arena of random bytes."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        slots = 2 * shape.pages
        size = shape.regions * slots * shape.length
        self.arena = torch.randint(-(2**31), 2**31 - 1, (size // 4,), dtype=torch.int32, device=GPU)
        begins = self.arena.data_ptr() + np.arange(shape.regions) * slots * shape.length
        each = np.ones(shape.regions, np.int64)
        self.slots = np.random.default_rng(1).permutation(slots)[: shape.pages]
        self.pages = Pages(
            begins.astype(np.uint64),
            each * shape.length,
            each * shape.length,
            each * 0,
            each * shape.pages,
            self.slots,
            "VRAM",
        )

    def run(self, form: Form, lanes: int) -> "Kernel":
        return Kernel(self.pages, form, lanes)

    def read(self) -> list[Run]:
        """Plain sums of as many bytes in one piece, several blocks each."""
        words = self.arena[: self.shape.bytes // 4]
        return [_reading(words, block) for block in (4096, 8192, 16384)]

    def copy(self) -> Run:
        source = self.arena[: self.shape.bytes // 4]
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    def content(self, page: int) -> np.ndarray:
        """(1, length) of a page by its number."""
        region, at = divmod(page, self.shape.pages)
        first = (region * 2 * self.shape.pages + int(self.slots[at])) * self.shape.length // 4
        words = self.arena[first : first + self.shape.length // 4]
        return words.cpu().numpy().view(np.uint8).reshape(1, -1)


def _reading(words: torch.Tensor, block: int) -> Run:
    programs = words.numel() // block
    found = torch.empty(programs, dtype=torch.int32, device=GPU)
    compiled = read_sum[programs, 1, 1](words, found, block, num_warps=8)
    return lambda: compiled[programs, 1, 1](words, found, block)


class Kernel:
    """The digest kernel on some pages, its table on the device already."""

    def __init__(self, pages: Pages, form: Form, lanes: int) -> None:
        launch = launch_of(pages, SEED, max(1, lanes), form)
        table = np.zeros(launch.size, np.int64)
        launch.write(table)
        self.lanes, self.pages = lanes, launch.pages
        self.found = torch.zeros(max(1, lanes) * launch.pages, dtype=torch.int64, device=GPU)
        self._grid = (launch.programs, 1, 1)
        self._arguments = (
            torch.from_numpy(table).to(GPU),
            self.found,
            launch.tiles,
            form.slots,
            form.words,
            launch.align,
            lanes,
            launch.split,
            form.stages,
        )
        self._compiled = digest_pages[self._grid](*self._arguments, num_warps=form.warps)
        torch.cuda.synchronize()

    def __call__(self) -> None:
        self._compiled[self._grid](*self._arguments)

    def check(self, memory: Memory) -> None:
        """Some digests against the reference. Of the first launch: parts add up once only."""
        found = self.found.cpu().numpy().view(np.uint64).reshape(self.lanes, -1)
        for page in np.random.default_rng(2).integers(0, self.pages, 24).tolist():
            content = memory.content(page)
            for lane, seed in enumerate(seeds(SEED, self.lanes)):
                assert found[lane, page] == digests_of_rows(content, seed)[0], (page, lane)


class Clock:
    """Times by events; the cache is flushed before each."""

    def __init__(self, rounds: int, repeats: int) -> None:
        self.rounds, self.repeats = rounds, repeats
        self._flush = torch.empty(1 << 28, dtype=torch.uint8, device=GPU)

    def medians(self, runs: dict[str, Run]) -> dict[str, float]:
        """Milliseconds of each, taken in turn."""
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for run in runs.values():
            run()
        for _ in range(self.rounds):
            for name, run in runs.items():
                taken[name] += self._times(run)
        return {name: statistics.median(times) for name, times in taken.items()}

    def _times(self, run: Run) -> list[float]:
        pairs = []
        for _ in range(self.repeats):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._flush.zero_()
            begin.record()
            run()
            end.record()
            pairs.append((begin, end))
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) for begin, end in pairs]


def rate(size: int, milliseconds: float) -> float:
    """TB/s."""
    return size / milliseconds / 1e9
