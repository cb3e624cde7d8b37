"""The checked transport on a GPU: faults and their messages, bytes, and what checking costs.

    PYTHONPATH=. python benchmarks/gpu/transport.py [--rounds 5] [--write FILE]

Two NIXL agents in one process, and the three pools of DeepSeek-V4 for 40,960 tokens of 256 a page
as sglang 0.5.21 makes them: 21 buffers of 164 pages, 21 of 161 and 20 of 288, of 37,440, 8,448 and
1,728 bytes a page. It needs torch, numpy, nixl and wrapt. Without CUDA, or where NIXL's UCX takes
no GPU memory, it says so and goes on in host memory.
"""

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("NIXL_LOG_LEVEL", "ERROR")

from transport_cost import Bench, agent_of, machine, table

from kvlint.runtime_checks import arm, arming, disarm

C4, INDEX_K, C128 = (164, 37440), (161, 8448), (288, 1728)
SHAPES = [C4] * 21 + [INDEX_K] * 21 + [C128] * 20
SRC_PAGES = np.array([5, 6, 7, 100])
DST_PAGES = np.array([40, 41, 42, 99])
PRINTED = [sys.stdout]


def say(line: str = "") -> None:
    """At once, and to the file, too: what comes next may end the process."""
    for stream in PRINTED:
        print(line, file=stream, flush=True)


def memory_kind() -> str:
    """VRAM where there is CUDA and NIXL takes its memory, else DRAM, and it is said why."""
    if not torch.cuda.is_available():
        say("No CUDA here: all of this ran in host memory.")
        return "DRAM"
    try:
        probe = torch.zeros(4096, dtype=torch.uint8, device="cuda")
        agent_of("probe").register_memory([probe])
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        say(f"NIXL's UCX takes no GPU memory here ({why}): all of this ran in host memory.")
        return "DRAM"
    return "VRAM"


class Rank:
    """One side: the buffers of three pools, registered each by itself, with an agent."""

    def __init__(self, name: str, kind: str) -> None:
        self.kind, self.agent = kind, agent_of(name)
        self.device = torch.cuda.current_device() if kind == "VRAM" else 0
        where = "cuda" if kind == "VRAM" else "cpu"
        self.buffers = [torch.zeros(shape, dtype=torch.uint8, device=where) for shape in SHAPES]
        self.registered = [self.agent.register_memory(buffer) for buffer in self.buffers]
        self.counts = [slots for slots, _ in SHAPES]

    def rows(self, counts: list[int] | None = None) -> np.ndarray:
        rows = [
            (buffer.data_ptr(), buffer.shape[1], self.device, buffer.shape[1], count)
            for buffer, count in zip(self.buffers, counts or self.counts, strict=True)
        ]
        return np.array(rows, np.uint64)

    def by_starts(self, pages: np.ndarray) -> np.ndarray:
        firsts = np.cumsum([0, *self.counts[:-1]])
        return (firsts[:, None] + pages).ravel().astype(np.int32)

    def by_stride(self, pages: np.ndarray) -> np.ndarray:
        firsts = np.arange(len(self.counts)) * self.counts[0]
        return (firsts[:, None] + pages).ravel().astype(np.int32)


class Scene:
    """Prefill and decode, made under what is armed; every page of prefill is its own."""

    def __init__(self, kind: str) -> None:
        self.prefill, self.decode = Rank("prefill", kind), Rank("decode", kind)
        for number, buffer in enumerate(self.prefill.buffers):
            words = buffer.view(torch.int32)
            words[:, 0::2] = number + 1
            words[:, 1::2] = torch.arange(len(buffer), device=buffer.device, dtype=torch.int32)[
                :, None
            ]
        self.agent, self.peer = self.prefill.agent, self.decode.agent
        self.agent.add_remote_agent(self.peer.get_agent_metadata())
        self.src = self.agent.prep_xfer_dlist("", self.prefill.rows(), kind)
        self.dst = self.agent.prep_xfer_dlist(self.peer.name, self.decode.rows(), kind)
        self.src_indices = self.prefill.by_starts(SRC_PAGES)
        self.dst_indices = self.decode.by_starts(DST_PAGES)

    def make(self) -> Any:
        return self.agent.make_prepped_xfer(
            "WRITE", self.src, self.src_indices, self.dst, self.dst_indices, b"request"
        )

    def wait(self, handle: Any) -> None:
        while self.agent.check_xfer_state(handle) != "DONE":
            self.peer.get_new_notifs()

    def send(self) -> None:
        handle = self.make()
        self.agent.transfer(handle)
        self.wait(handle)
        self.agent.release_xfer_handle(handle)

    def right(self) -> int:
        """How many pages of the request are where they were meant to be, compared on the device."""
        if self.prefill.kind == "VRAM":
            torch.cuda.synchronize()
        right = 0
        for sent, got in zip(self.prefill.buffers, self.decode.buffers, strict=True):
            right += int((sent[SRC_PAGES.tolist()] == got[DST_PAGES.tolist()]).all(dim=1).sum())
        return right

    def strays(self) -> int:
        """How many other pages of decode were written."""
        asked = DST_PAGES.tolist()
        written = 0
        for buffer in self.decode.buffers:
            touched = buffer.any(dim=1)
            touched[asked] = False
            written += int(touched.sum())
        return written


# The faults. Each makes what it takes and goes as far as NIXL lets it.


def nothing(scene: Scene) -> None:
    scene.send()


def one_stride(scene: Scene) -> None:
    scene.src_indices = scene.prefill.by_stride(SRC_PAGES)
    scene.dst_indices = scene.decode.by_stride(DST_PAGES)
    scene.send()


def one_count(scene: Scene) -> None:
    counts = [scene.decode.counts[0]] * len(SHAPES)
    rows = scene.decode.rows(counts)
    scene.dst = scene.agent.prep_xfer_dlist(scene.peer.name, rows, scene.decode.kind)
    scene.dst_indices = scene.decode.by_stride(DST_PAGES)
    scene.send()


def exchanged(scene: Scene) -> None:
    blocks = scene.dst_indices.reshape(len(SHAPES), -1).copy()
    blocks[[3, 4]] = blocks[[4, 3]]
    scene.dst_indices = blocks.ravel()
    scene.send()


def twice(scene: Scene) -> None:
    scene.dst_indices = scene.decode.by_starts(np.array([40, 41, 41, 99]))
    scene.send()


def floating(scene: Scene) -> None:
    scene.dst_indices = scene.dst_indices - 0.25
    scene.send()


def wide(scene: Scene) -> None:
    scene.dst_indices = scene.dst_indices.astype(np.int64)
    scene.dst_indices[7] = 2**32 + 43
    scene.send()


def stale(scene: Scene) -> None:
    scene.peer.deregister_memory(scene.decode.registered[22])
    scene.agent.add_remote_agent(scene.peer.get_agent_metadata())
    scene.send()


def dropped(scene: Scene) -> None:
    kept = scene.prefill.buffers[2].clone()
    scene.prefill.buffers[2] = kept  # the registered one is gone
    gc.collect()
    scene.send()


def at_once(scene: Scene) -> None:
    handles = [scene.make(), scene.make()]
    states = [scene.agent.transfer(handle) for handle in handles]
    if states[0] == "DONE":
        say("  the first was done at once, so there was no fault")
    for handle in handles:
        scene.wait(handle)
        scene.agent.release_xfer_handle(handle)


def let_go(scene: Scene) -> None:
    handle = scene.make()
    if scene.agent.transfer(handle) == "DONE":
        say("  it was done at once, so there was no fault")
    scene.agent.release_xfer_handle(handle)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        scene.peer.get_new_notifs()
        scene.agent.get_new_notifs()


Fault = Callable[[Scene], None]
FAULTS: dict[str, Fault] = {
    "nothing: cumulative starts on both sides": nothing,
    "one stride for all buffers, i * 164 + page": one_stride,
    "one count for all buffers, 164, in decode's list": one_count,
    "two buffers of one pool exchanged": exchanged,
    "a page is the destination of two": twice,
    "indices in floating point": floating,
    "an index of 2**32 + 43": wide,
    "two transfers to the same pages at a time": at_once,
    "a registered tensor is gone": dropped,
}
# Left to itself NIXL may crash here, so these come last.
LAST: dict[str, Fault] = {
    "a handle released in flight": let_go,
    "decode has deregistered a buffer": stale,
}


def tell(name: str, fault: Fault, kind: str, mode: str) -> None:
    say(f"{mode}: {name}")
    arm(mode)
    try:
        scene = Scene(kind)
        try:
            fault(scene)
            said = "every call is accepted"
        except Exception as error:
            notes = "".join(f"; note: {note}" for note in getattr(error, "__notes__", ()))
            said = f"{type(error).__name__}: {str(error) or 'no text'}{notes}"
        companion = arming._armed
        found = list(companion.policy.violations) if companion else []
        faults = dict(companion.policy.faults) if companion else {}
        pages = len(SHAPES) * len(SRC_PAGES)
        say(f"  the engine sees  {said}")
        say(f"  bytes            {scene.right()} of {pages} pages right, {scene.strays()} others")
        for record in found[:2]:
            code = f" [{record['code']}]" if record["code"] else ""
            say(f"  kvlint says      {record['check']}{code}: {record['message']}")
        if not found:
            say("  kvlint says      nothing")
        if len(found) > 2:
            say(f"                   and {len(found) - 2} more")
        if faults:
            say(f"  faults of kvlint itself: {faults}")
    finally:
        disarm()


def main() -> None:
    parser = argparse.ArgumentParser(description="The checked transport on a GPU.")
    parser.add_argument("--rounds", type=int, default=5, help="0: no cost is measured")
    parser.add_argument("--repeats", type=int, default=8, help="of each call in a round")
    parser.add_argument("--pages", type=int, default=2048)
    parser.add_argument("--slots", type=int, default=4096, help="of the even lists timed")
    parser.add_argument("--write", type=Path, help="file for the result")
    asked = parser.parse_args()
    if asked.write:
        PRINTED.append(asked.write.open("w", encoding="utf-8"))
    say("# The checked transport on a GPU")
    say()
    say(machine())
    if torch.cuda.is_available():
        name, driver = torch.cuda.get_device_name(), torch.version.cuda
        say(f"{name}, CUDA {driver}, torch {torch.__version__}.")
    else:
        say(f"torch {torch.__version__}.")
    kind = memory_kind()
    say(f"UCX_TLS={os.environ.get('UCX_TLS', 'unset')}; memory: {kind}.")
    say()
    say("## Faults")
    say()
    say("```")
    for name, fault in FAULTS.items():
        tell(name, fault, kind, "log")
    for name in list(FAULTS)[:2]:
        tell(name, FAULTS[name], kind, "assert")
    say("```")
    even, pages = [(asked.slots, 256)] * 62, min(asked.pages, asked.slots)
    lists = [
        (f"{pages:,} pages of 62 regions x {asked.slots:,} slots of 256 bytes", even, pages),
        ("160 pages of the three pools", SHAPES, 160),
    ]
    for title, shapes, count in lists if asked.rounds else ():
        say()
        say(f"## Cost: {title}")
        say()
        bench = Bench(shapes, count, asked.repeats, kind)
        bench.all(asked.rounds)
        say(table(bench.times))
        say()
        alone = bench.times.median("check alone", "log")
        say(f"The exact check of both sides alone: {alone:,.0f} microseconds.")
        del bench
        gc.collect()
    say()
    say("## Faults that NIXL may not survive")
    say()
    say("```")
    for name, fault in LAST.items():
        tell(name, fault, kind, "log")
    say("```")


if __name__ == "__main__":
    main()
