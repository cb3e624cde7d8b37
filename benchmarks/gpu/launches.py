"""What looking at each Triton launch costs, and that wrong ones are found on a GPU.

    PYTHONPATH=. python benchmarks/gpu/launches.py [--write FILE]

Time on the host, a launch: without kvlint, where the same launch was seen before, where only the
addresses are new, where sizes are, and where the loaded indices are looked at as well. It needs a
GPU, torch, triton, numpy and wrapt.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from transport_cost import machine

from kvlint.runtime_checks import Violation, arm, disarm, guard_pool, status

SLOTS, WIDTH, TOKENS = 4096, 512, 128
LAUNCHES, ROUNDS = 400, 9


@triton.jit
def scale(out, x, n, factor, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


@triton.jit
def store(cache, x, slots, stride, x_stride, width: tl.constexpr, block: tl.constexpr):
    """One program a token: its row goes to the slot that the mapping has for it."""
    token = tl.program_id(0)
    slot = tl.load(slots + token).to(tl.int64)
    if slot < 0:
        return
    lanes = tl.arange(0, block)
    value = tl.load(x + token * x_stride + lanes, mask=lanes < width)
    tl.store(cache + slot * stride + lanes, value, mask=lanes < width)


@triton.jit
def gather(out, cache, slots, stride, width: tl.constexpr, block: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(slots + token)
    lanes = tl.arange(0, block)
    value = tl.load(cache + slot * stride + lanes, mask=lanes < width)
    tl.store(out + token * width + lanes, value, mask=lanes < width)


def rows(count: int, width: int = WIDTH, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.zeros(count, width, dtype=dtype, device="cuda")


def numbers(*values: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, device="cuda")


def each(launch: Callable[[int], object]) -> float:
    """Microseconds on the host, of a launch; it is given other numbers each time. Whoever waits
    for the device in between fails."""
    taken = []
    for turn in range(ROUNDS):
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        begun = time.perf_counter()
        for number in range(turn * LAUNCHES, (turn + 1) * LAUNCHES):
            launch(number)
        taken.append((time.perf_counter() - begun) / LAUNCHES * 1e6)
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    return statistics.median(taken)


def costs(say: Callable[[str], None]) -> None:
    many = LAUNCHES * ROUNDS
    cache, x = rows(SLOTS + many), rows(TOKENS)
    slots = torch.randperm(SLOTS, device="cuda")[:TOKENS]
    views = [cache[at:] for at in range(many)]
    out, flat = torch.zeros(1 << 20, device="cuda"), torch.zeros(1 << 20, device="cuda")
    parts = [flat[4 * at :] for at in range(many)]

    def stores(number: int) -> None:
        store[(TOKENS,)](cache, x, slots, WIDTH, WIDTH, width=WIDTH, block=512)

    def elsewhere(number: int) -> None:
        store[(TOKENS,)](views[number], x, slots, WIDTH, WIDTH, width=WIDTH, block=512)

    def scales(number: int) -> None:
        scale[(16,)](out, flat, 16_384, 2.0, block=1024)

    def parts_of(number: int) -> None:
        scale[(16,)](out, parts[number], 16_384, 2.0, block=1024)

    def sizes(number: int) -> None:
        scale[(16,)](out, flat, 16_384 - number, 2.0, block=1024)

    cases = {
        "scale (2 pointers), seen before": (scales, "log"),
        "scale, other addresses": (parts_of, "log"),
        "scale, other sizes": (sizes, "log"),
        "store (3 pointers, an index), seen before": (stores, "log"),
        "store, other addresses": (elsewhere, "log"),
        "store in assert, seen before": (stores, "assert"),
        "store in paranoid: its index looked up each time": (stores, "paranoid"),
    }
    say("| launch | without | with | added |\n|---|---|---|---|")
    for name, (launch, mode) in cases.items():
        each(launch)
        without = each(launch)
        arm(mode)
        each(launch)
        armed = each(launch)
        said = status()
        disarm()
        assert not said["violations"], said
        assert not said["tool_errors"], said
        again = each(launch)
        base = min(without, again)
        say(f"| {name} | {base:.1f} us | {armed:.1f} us | {armed - base:+.1f} us |")
    arm("log")
    begun = time.perf_counter()
    stores(0)
    torch.cuda.synchronize()
    taken = (time.perf_counter() - begun) * 1e3
    say(f"\nFirst launch of a kernel, its source read: {taken:.1f} ms.")
    disarm()


def told(launch: Callable[[], object]) -> str:
    try:
        launch()
        # What is found on the device is told by a later launch.
        torch.cuda.synchronize()
        out = torch.zeros(64, device="cuda")
        scale[(1,)](out, out, 64, 1.0, block=64)
    except Violation as violation:
        return f"{violation.record['check']}: {violation}"
    return "nothing"


def wrong() -> dict[str, Callable[[], object]]:
    """Launches that are refused in assert; none of them may be made."""
    cache, x = rows(64), rows(8)
    pool = rows(64)
    guard_pool({"layer 0 index key": pool}, name="index keys")

    def stored(into: torch.Tensor, count: int, stride: int) -> None:
        slots = torch.arange(count, device="cuda")
        given = rows(count, dtype=into.dtype) if into.dtype != x.dtype else x
        store[(count,)](into, given, slots, stride, WIDTH, width=WIDTH, block=512)

    far = torch.zeros(1, device="cuda")
    return {
        "a source one row short": lambda: stored(cache, 9, WIDTH),
        "an index of 32 bits": lambda: scale[(1 << 22,)](far, far, (1 << 31) - 1, 1.0, block=1024),
        "a stride of bytes' pool in elements": lambda: stored(pool.view(torch.uint8), 4, WIDTH),
    }


def verdicts(say: Callable[[str], None]) -> None:
    arm("assert")
    for name, launch in wrong().items():
        say(f"* assert, {name}: {told(launch)}")
    say(f"* tool errors: {status()['tool_errors'] or 'none'}")
    disarm()
    # Reads past a storage of 2 KiB, within the allocator's segment of 2 MiB: nothing faults.
    small, out = rows(4, 256), rows(8, 256)
    beyond = numbers(0, 3, 4, 5)
    for mode in ("log", "assert"):
        arm(mode)
        launch = lambda: gather[(4,)](out, small, beyond, 256, width=256, block=256)  # noqa: E731
        answer = told(launch)
        said = status()
        say(f"* {mode}, slots 4 and 5 of 4: {answer}; counted {said['violations']}")
        assert said["violations"] == 1, said
        assert not said["tool_errors"], said
        disarm()
    arm("log")
    copied = rows(5, 256)
    gather[(5,)](copied, small, numbers(0, 1, 2, 3, 3), 256, width=256, block=256)
    scale[(1,)](torch.zeros(64, device="cuda"), torch.zeros(60, device="cuda"), 64, 1.0, block=64)
    torch.cuda.synchronize()
    say(f"* log, 4 numbers too many read: found {status()['violations']}, and it went on")
    disarm()


def clean(say: Callable[[str], None]) -> None:
    arm("assert")
    cache, x = rows(SLOTS), rows(TOKENS)
    out = rows(TOKENS)
    for number in range(5000):
        count = number % TOKENS + 1
        slots = (torch.arange(TOKENS, device="cuda") * 31 + number) % SLOTS
        store[(count,)](cache, x[:count], slots, WIDTH, WIDTH, width=WIDTH, block=512)
        gather[(count,)](out, cache, slots, WIDTH, width=WIDTH, block=512)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gather[(TOKENS,)](out, cache, slots, WIDTH, width=WIDTH, block=512)
    graph.replay()
    torch.cuda.synchronize()
    gather[(TOKENS,)](out, cache, slots, WIDTH, width=WIDTH, block=512)
    said = status()
    say(f"* 10,001 right launches, one captured in a graph: {said['violations']} findings")
    assert not said["violations"], said
    assert not said["tool_errors"], said
    disarm()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="keep what is printed in this file")
    out = parser.parse_args().write
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    say("# Triton launches looked at\n")
    if not torch.cuda.is_available():
        say("There is no GPU here: nothing was measured.")
        return
    name = torch.cuda.get_device_name()
    say(f"{machine()}\n{name}, torch {torch.__version__}, triton {triton.__version__}.\n")
    costs(say)
    say("")
    verdicts(say)
    clean(say)
    if out is not None:
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
