"""Digests of pages in GPU memory: right first, then at what part of the read bandwidth.

    PYTHONPATH=. python benchmarks/gpu/digests.py [--write benchmarks/gpu/digests.md] [--quick]
    PYTHONPATH=. python benchmarks/gpu/digests.py --sweep

Everything of a row, ceilings included, is timed in one run, in turn: by CUDA events, the L2 cache
flushed before each, medians. A *plain sum* is the same kernel over the same pages without the
weights: what any kernel of that shape takes to read them. `--sweep` prints the rates of several
forms instead. It needs torch, Triton and numpy; cupy for the comparison with Adler-32. Without
CUDA it says so and only checks, in Triton's interpreter.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# The second decides whether Triton interprets, before anything imports it.
from digest_checks import right
from digest_timing import GPU, SEED, Clock, Memory, Run, Shape, rate, read_sum
from serial_adler import SerialAdler
from transport_cost import machine
from triton import __version__ as triton_version

from kvlint.runtime_checks.digests import device
from kvlint.runtime_checks.digests.launches import Form, form_of, launch_of

# Measured between two H200 of one host, apart from this run.
NVLINK = 392e9
NETWORK = 400e9 / 8
PREFILL = 2 * 37e9 * 8192 / (8 * 989e12 * 0.4)
PREFILL_SAID = (
    "8,192 tokens of a model with 37e9 active parameters (DeepSeek-V3), 2 operations a parameter "
    "and token, on 8 H200 at 40 % of 989 TFLOP/s in bf16, of which each keeps the latents of all "
    "heads: computed, not run"
)


MHA = Shape("MHA, 16 KiB x 160, 8k tokens", 160, 16384, 128)
MLA = Shape("MLA, 73,728 B x 61, 8k tokens", 61, 73728, 128)
LONG = Shape("MLA, 73,728 B x 61, 48k tokens", 61, 73728, 768)
INDEX = Shape("indexer-K, 16 KiB x 43, 8k tokens", 43, 16384, 128)
SLOTS = Shape("MLA slots, 1,152 B x 61, 8k tokens", 61, 1152, 8192)
SMALL = Shape("4 KiB x 64, 16,384 each", 64, 4096, 16384)
LARGE = Shape("16 KiB x 64, 1,024 each", 64, 16384, 1024)
SHAPES = (MHA, MLA, LONG, INDEX, SLOTS, SMALL, LARGE)


# What is timed together.


def timed(clock: Clock, shape: Shape) -> dict[str, float]:
    memory, form = Memory(shape), form_of(shape.length)
    kernels = {
        "plain": memory.run(form, 0),
        "digest": memory.run(form, 1),
        "other": memory.run(form_of(1152 if form.slots == 1 else 1 << 16), 1),
        "wide": memory.run(form, 2),
    }
    for name in ("digest", "other", "wide"):
        kernels[name].check(memory)
    runs: dict[str, Run] = {"copy": memory.copy(), **kernels}
    runs |= {f"read {at}": run for at, run in enumerate(memory.read())}
    adler = adler_of(memory)
    if adler is not None:
        runs["adler"] = adler
    times = clock.medians(runs)
    times["read"] = min(times.pop(name) for name in list(times) if name.startswith("read "))
    return times


def adler_of(memory: Memory) -> Run | None:
    try:
        adler = SerialAdler(torch, memory.pages.addresses, memory.pages.page_lengths)
        adler()
    except Exception as error:  # what cupy lacks on a machine has many names
        print(f"no Adler-32: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    for page in (0, len(memory.pages) - 1):
        assert adler.is_right(page, memory.content(page).tobytes()), page
    return adler


def three(clock: Clock, shape: Shape) -> dict[str, float]:
    """Source, source again and destination, against plain sums of the same pages."""
    source, target = Memory(shape), Memory(shape)
    form = form_of(shape.length)

    def thrice(lanes: int) -> Run:
        runs = [memory.run(form, lanes) for memory in (source, source, target)]
        return lambda: [run() for run in runs]

    return clock.medians({"plain": thrice(0), "digest": thrice(1)})


def host(calls: int) -> dict[str, list[float]]:
    """Microseconds of the calling thread: a call for 61 regions of 128 pages, its parts, and
    bare launches of a kernel that does nothing to speak of."""
    memory = Memory(replace(MLA, length=1152))
    pages, words = memory.pages, memory.arena[:4096]
    found = torch.empty(1, dtype=torch.int32, device=GPU)
    compiled = read_sum[1, 1, 1](words, found, 4096, num_warps=8)
    launch, numbers = launch_of(pages, SEED), np.zeros(1 << 14, np.int64)
    staged = torch.zeros(2048, dtype=torch.int64, pin_memory=True)
    table, done = staged.to(GPU), torch.cuda.Event()

    def again() -> None:
        launch_of(pages, SEED).write(numbers)

    parts: dict[str, Run] = {
        "a digest call, enqueued": lambda: device.start(pages, SEED),
        "a digest call, waited for": lambda: device.start(pages, SEED).digests(),
        "- its table": again,
        "- a copy to or from pinned memory": lambda: table.copy_(staged, non_blocking=True),
        "- a launch of what is compiled": lambda: compiled[1, 1, 1](words, found, 4096),
        "- an event": lambda: done.record(),
        "a bare Triton launch": lambda: read_sum[1, 1, 1](words, found, 4096, num_warps=8),
    }
    assert launch.size < len(numbers)
    times: dict[str, list[float]] = {name: [] for name in parts}
    for call in range(calls + 20):
        for name, part in parts.items():
            begin = time.perf_counter_ns()
            kept = part()
            taken = (time.perf_counter_ns() - begin) / 1e3
            if isinstance(kept, device.OnDevice):
                kept.digests()
            torch.cuda.synchronize()
            if call >= 20:
                times[name].append(taken)
    return times


# What is said of it.


def of_bandwidth(found: dict[Shape, dict[str, float]]) -> list[str]:
    lines = [
        "| pages | bytes | number | copy | read in one piece | plain sum of the pages | digest "
        "| of plain | of read | other form | 128 bits |",
        "|---|" + "---:|" * 10,
    ]
    for shape, times in found.items():
        plain, read = (times[name] / times["digest"] for name in ("plain", "read"))
        rates = {name: f"{rate(shape.bytes, taken):.2f}" for name, taken in times.items()}
        lines.append(
            f"| {shape.name} | {shape.bytes / 1e6:,.0f} MB | {shape.regions * shape.pages:,} "
            f"| {rate(2 * shape.bytes, times['copy']):.2f} | {rates['read']} | {rates['plain']} "
            f"| {rates['digest']} | {plain:.3f} | {read:.3f} | {rates['other']} | {rates['wide']} |"
        )
    return lines


def of_adler(found: dict[Shape, dict[str, float]]) -> list[str]:
    lines = ["| pages | Adler-32, ms | TB/s | digest, ms | times |", "|---|---:|---:|---:|---:|"]
    for shape, times in found.items():
        if "adler" in times:
            lines.append(
                f"| {shape.name} | {times['adler']:.3f} | {rate(shape.bytes, times['adler']):.2f} "
                f"| {times['digest']:.3f} | {times['adler'] / times['digest']:.1f} |"
            )
    return (
        lines if len(lines) > 2 else ["cupy is missing, so there is no comparison with Adler-32."]
    )


def of_shares(shape: Shape, times: dict[str, float]) -> list[str]:
    taken = times["digest"]
    shares = {
        "a copy of the same bytes on this GPU": times["copy"],
        "moving them over NVLink at 392 GB/s (measured between two H200, not in this run)": 1e3
        * shape.bytes
        / NVLINK,
        "moving them at 400 Gb/s (computed)": 1e3 * shape.bytes / NETWORK,
        f"prefill ({PREFILL_SAID})": 1e3 * PREFILL,
    }
    lines = [f"One digest of {shape.name} takes {taken:.3f} ms. That is, of", ""]
    return lines + [
        f"* {what}, {other:.3f} ms: {taken / other:.2%}" for what, other in shares.items()
    ]


def of_three(found: dict[Shape, dict[str, float]]) -> list[str]:
    return [
        f"* {shape.name}: three digests {times['digest']:.3f} ms, three plain sums of the same "
        f"pages {times['plain']:.3f} ms: {times['digest'] / times['plain']:.3f} x"
        for shape, times in found.items()
    ]


def of_host(times: dict[str, list[float]]) -> list[str]:
    lines = ["| microseconds | median | 95 % within |", "|---|---:|---:|"]
    return lines + [
        f"| {name} | {statistics.median(taken):.1f} | {np.percentile(taken, 95):.1f} |"
        for name, taken in times.items()
    ]


def of_goals(
    found: dict[Shape, dict[str, float]],
    thrice: dict[Shape, dict[str, float]],
    enqueued: float,
) -> list[str]:
    def least(of: str, *shapes: Shape) -> str:
        return f"{min(found[shape][of] / found[shape]['digest'] for shape in shapes):.3f}"

    by_name = {shape.name: shape for shape in found}
    mha, mla, slots, large, long, small = (
        by_name[shape.name] for shape in (MHA, MLA, SLOTS, LARGE, LONG, SMALL)
    )
    worst = max(times["digest"] / times["plain"] for times in thrice.values())
    return [
        "| goal | here |",
        "|---|---:|",
        f"| at least 0.95 of a plain sum of the same pages, the worst shape | "
        f"{least('plain', *found)} |",
        f"| at least 0.95 of reading in one piece, 1 GB and more of pages of 16 KiB and more | "
        f"{least('read', large, long)} |",
        f"| at least 0.8 of it, slots of 1,152 bytes | {least('read', slots)} |",
        f"| at least 0.8 of it, 0.3 GB | {least('read', mha)} |",
        f"| (pages of 4 KiB) | {least('read', small)} |",
        f"| at least 10 x a serial Adler-32, MLA, 8k tokens | "
        f"{least('adler', mla) if 'adler' in found[mla] else '-'} |",
        f"| three digests at most 1.05 x three plain sums, the worst shape | {worst:.3f} |",
        f"| a digest call enqueued in at most 60 microseconds | {enqueued:.1f} |",
    ]


# Forms side by side.

PAGES_ALONE = [
    Form(1, words, warps, stages)
    for words, warps, stages in (
        (512, 4, 1),
        (1024, 4, 3),
        (2048, 4, 3),
        (2048, 4, 4),
        (2048, 8, 4),
    )
]
PARTS = [Form(1, 2048, 4, 3, 36864), Form(1, 2048, 8, 4, 36864)]
TILES = [
    Form(slots, words, warps, stages)
    for slots, words, warps, stages in (
        (16, 32, 4, 3),
        (32, 32, 4, 1),
        (8, 64, 2, 1),
        (4, 128, 1, 1),
        (4, 128, 2, 1),
        (4, 128, 2, 2),
        (8, 128, 2, 1),
        (2, 512, 2, 2),
        (4, 256, 4, 3),
    )
]


def sweep(clock: Clock, shapes: Iterable[Shape]) -> Iterable[str]:
    for shape in shapes:
        memory = Memory(shape)
        forms = TILES if shape.length < 8192 else PAGES_ALONE
        forms = [*forms, *PARTS] if shape is MLA else forms
        read = clock.medians({str(at): run for at, run in enumerate(memory.read())})
        ceiling = rate(shape.bytes, min(read.values()))
        yield f"\n{shape.name}: read in one piece {ceiling:.2f} TB/s"
        yield (
            "  slots words warps stages   part: plain, digest, 128 bits in TB/s; digest of "
            "plain, of read"
        )
        lines = []
        for form in forms:
            runs = {str(lanes): memory.run(form, lanes) for lanes in (0, 1, 2)}
            for lanes in ("1", "2"):
                runs[lanes].check(memory)
            times = [rate(shape.bytes, taken) for taken in clock.medians(dict(runs)).values()]
            part = form.part if form.part < shape.length else 0
            lines.append(
                (
                    times[1],
                    f"  {form.slots:5} {form.words:5} {form.warps:5} {form.stages:6} {part:6}"
                    f": {times[0]:.2f} {times[1]:.2f} {times[2]:.2f}  "
                    f"{times[1] / times[0]:.3f} {times[1] / ceiling:.3f}",
                )
            )
        yield from [line for _, line in sorted(lines, reverse=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="keep what is printed in this file")
    parser.add_argument("--quick", action="store_true", help="small and few: does it run at all")
    parser.add_argument("--sweep", action="store_true", help="forms side by side, nothing else")
    asked = parser.parse_args()
    told: list[str] = []

    def say(*lines: str) -> None:
        told.extend(lines)
        print("\n".join(lines), flush=True)

    say("# Digests of pages in GPU memory", "")
    name = torch.cuda.get_device_name() if GPU == "cuda" else "no CUDA"
    say(f"{machine()}", f"torch {torch.__version__}, triton {triton_version}, {name}.", "")
    if not asked.sweep:
        say(*(f"* right: {line}" for line in right(GPU)), "")
    if GPU == "cpu":
        say("No CUDA here: this was Triton's interpreter, and nothing is timed.")
        return
    clock = Clock(1, 3) if asked.quick else Clock(5, 8)
    small = [replace(shape, pages=shape.pages // 8) for shape in SHAPES]
    shapes = small if asked.quick else list(SHAPES)
    if asked.sweep:
        for line in sweep(Clock(2, 6), small if asked.quick else (MHA, MLA, SLOTS, SMALL, LARGE)):
            say(line)
        return
    found = {shape: timed(clock, shape) for shape in shapes}
    thrice = {shape: three(clock, shape) for shape in shapes[:2]}
    calls = host(50 if asked.quick else 500)
    enqueued = statistics.median(calls["a digest call, enqueued"])
    say("TB/s; of a copy bytes read and written.", "", *of_bandwidth(found), "")
    say("## Beside a checksum of the form that SGLang has", "")
    say("Our own re-implementation of its kernel (`serial_adler.py`), without its host's part.", "")
    say(*of_adler(found), "", "## Three digests of a transfer", "", *of_three(thrice), "")
    say("## The calling thread", "", "61 regions of 128 pages.", "", *of_host(calls), "")
    say("## What a digest is part of", "", *of_shares(shapes[1], found[shapes[1]]), "")
    say("## Goals", "", *of_goals(found, thrice, enqueued))
    if asked.write is not None:
        command = "PYTHONPATH=. python benchmarks/gpu/digests.py --write benchmarks/gpu/digests.md"
        asked.write.write_text("\n".join([*told, "", f"`{command}`"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
