"""Stages of pages in GPU memory, and of their copies in pinned host memory: what each planted
fault is called, that right pages are silent, that no call waits for the device, and what one costs.

    PYTHONPATH=. python benchmarks/gpu/stages.py [--rounds N] [--write FILE]

It needs torch, triton, numpy and wrapt. Without CUDA it says so and goes on in host memory, with
smaller pages.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from transport_cost import machine

from kvlint.runtime_checks import arm, arming, disarm, guard_pool, stage, status
from kvlint.runtime_checks.engines.sglang_host_pages import HostPages
from kvlint.runtime_checks.stages.copying import Copies

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
# An 8k-token request of 61 layers, 64 tokens a page, of 1,152 bytes each; fewer on a CPU.
LAYERS, PAGES, WORDS = (61, 128, 18_432) if GPU else (4, 8, 256)
SLOTS = 2 * PAGES


def pool(name: str, pages: int = SLOTS) -> list[torch.Tensor]:
    shape = (pages, WORDS)
    made = [torch.randint(1, 99, shape, dtype=torch.int32, device=DEVICE) for _ in range(LAYERS)]
    guard_pool({f"layer {n} key": one for n, one in enumerate(made)}, name=name)
    return made


def settle() -> None:
    """What was begun is compared."""
    if GPU:
        torch.cuda.synchronize()
    arming._armed.digests.drain(wait=True)


def found() -> list[str]:
    settle()
    policy = arming._armed.policy
    told = [f"{one['check']}: {one['message']}" for one in policy.violations]
    policy.violations.clear()
    return told


class Request:
    """Pages of a request from store to read, with what somebody does in between."""

    def __init__(self, owner: str, seed: int = 0) -> None:
        self.prefill, self.decode = pool("prefill"), pool("decode")
        random = np.random.default_rng(seed)
        self.here, self.there = (random.permutation(SLOTS)[:PAGES] for _ in range(2))
        self.owner = owner

    def note(self, name: str) -> None:
        of = "prefill" if name in ("store", "send") else "decode"
        slots = self.here if of == "prefill" else self.there
        stage(name, owner=self.owner, pool=of, slots=slots)

    def moved(self, sources: np.ndarray | None = None) -> None:
        sources = self.here if sources is None else sources
        for ours, theirs in zip(self.prefill, self.decode, strict=True):
            theirs[torch.from_numpy(self.there).to(DEVICE)] = ours[
                torch.from_numpy(sources).to(DEVICE)
            ]

    def play(self, fault: str = "none") -> None:
        self.note("store")
        if fault == "a word of a stored page changes":
            self.prefill[-1][int(self.here[3]), 7] += 1
        if fault == "another request is stored in the same page":
            self.prefill[-1][int(self.here[3])] = 5
            stage("store", owner="another", pool="prefill", slots=[int(self.here[3])])
        self.note("send")
        if fault == "read before it arrives":
            self.note("read")
        wrong = self.here.copy()
        if fault == "two pages are exchanged on the way":
            wrong[[2, 3]] = wrong[[3, 2]]
        self.moved(wrong)
        if fault == "a layer is sent in place of the next":
            self.decode[1][int(self.there[0])] = self.prefill[0][int(self.here[0])]
        self.note("arrival")
        if fault == "an arrived page is overwritten":
            self.decode[0][int(self.there[5])].zero_()
        self.note("read")


FAULTS = {
    "a word of a stored page changes": "page-changed",
    "another request is stored in the same page": "page-misplaced",
    "read before it arrives": "early-read",
    "two pages are exchanged on the way": "page-misplaced",
    "a layer is sent in place of the next": "page-misplaced",
    "an arrived page is overwritten": "page-changed",
}


def faults(tell: Callable[[str], None]) -> int:
    wrong = 0
    for number, (fault, check) in enumerate(FAULTS.items()):
        Request(f"R{number}").play(fault)
        told = found()
        right = bool(told) and told[0].startswith(f"{check}: ")
        wrong += not right
        tell(f"{fault}:")
        tell(f"    {told[0] if told else 'nothing'}{'' if right else '   NOT AS EXPECTED'}")
    return wrong


class Host:
    """A host pool shaped like SGLang's, in pinned memory where there is a device."""

    def __init__(self) -> None:
        self.size, self.page_size, self.layout = SLOTS, 1, "layer_first"
        shape = (LAYERS, SLOTS, WORDS)
        self.kv_buffer = torch.zeros(shape, dtype=torch.int32, pin_memory=GPU)
        self.data_refs = list(self.kv_buffer)

    def free(self, indices: torch.Tensor) -> None: ...


class Device:
    """The pool that it is a copy of."""

    def __init__(self) -> None:
        self.size, self.page_size, self.kv_buffer = SLOTS, 1, pool("device")


def copies(tell: Callable[[str], None]) -> int:
    """Back to host memory and forth on streams of their own, as a host cache does."""
    host, device = Host(), Device()
    pages = HostPages(Copies(lambda: arming._armed.stages))
    pages.watched.add(Host)
    here, there = np.arange(PAGES) + 1, np.arange(PAGES)[::-1].copy()
    stream = torch.cuda.Stream() if GPU else None

    def copied(*, back: bool) -> None:
        at, to = torch.from_numpy(here), torch.from_numpy(there).to(DEVICE)
        for ours, theirs in zip(host.data_refs, device.kv_buffer, strict=True):
            if back:
                theirs[to] = ours[at].to(DEVICE)
            else:
                for one, other in zip(here.tolist(), there.tolist(), strict=True):
                    ours[one].copy_(theirs[other], non_blocking=True)

    wrong = 0
    for fault in ("none", "a word in host memory changes"):
        if stream is not None:
            stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            copied(back=False)
            pages.written_back(host, device, here, there)
        if fault != "none":
            if stream is not None:
                stream.synchronize()
            host.data_refs[-1][int(here[-1]), 3] += 1
        with torch.cuda.stream(stream):
            copied(back=True)
            pages.loaded_back(host, device, here, there, LAYERS - 1)
        told = found()
        right = not told if fault == "none" else bool(told) and told[0].startswith("page-changed")
        wrong += not right
        tell(f"{fault}:")
        tell(f"    {told[0] if told else 'nothing'}{'' if right else '   NOT AS EXPECTED'}")
    looked = [note.digests.size for note in arming._armed.stages.ledger.notes()[-8:]]
    return wrong + (looked != [LAYERS * PAGES] * 8)


def cost(rounds: int) -> tuple[list[str], int]:
    """Microseconds of a call, and what right pages are told: nothing."""
    request = Request("warm")
    request.play()
    settle()
    if GPU:
        torch.cuda.set_sync_debug_mode("error")
    spent: dict[str, list[float]] = {}
    try:
        for number in range(rounds):
            request.owner = f"right {number}"
            for name in ("store", "send"):
                begin = time.perf_counter()
                request.note(name)
                spent.setdefault(name, []).append((time.perf_counter() - begin) * 1e6)
            if not number % 16:
                if GPU:
                    torch.cuda.set_sync_debug_mode("default")
                settle()
                if GPU:
                    torch.cuda.set_sync_debug_mode("error")
    finally:
        if GPU:
            torch.cuda.set_sync_debug_mode("default")
    told = found()
    rows = [f"| `{name}` | {statistics.median(each):,.0f} |" for name, each in spent.items()]
    return rows, len(told)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    lines: list[str] = []

    def tell(line: str = "") -> None:
        lines.append(line)
        print(line, flush=True)

    tell(f"# Stages of pages\n\n{machine()}\n")
    if not GPU:
        tell("No CUDA here: all of this ran in host memory.\n")
    arm("sample")
    # Everything is looked at, and nothing raised.
    arming._armed.digests.wants = lambda owner: True
    try:
        tell("## Planted faults, and what the first finding says\n")
        wrong = faults(tell)
        tell("\n## Copies to pinned host memory and back, on a stream of their own\n")
        wrong += copies(tell)
        rows, clean = cost(given.rounds)
        tell(f"\n## Microseconds of host time for one call of `stage`, {LAYERS} x {PAGES} pages\n")
        tell("| stage | median |\n|---|---:|")
        for row in rows:
            tell(row)
        tell(f"\n{given.rounds} rounds of right pages: {clean} findings. No call has waited.")
        now = status()
        tell(f"Faults of kvlint itself: {now['tool_errors'] or 'none'}.")
        wrong += clean + len(now["tool_errors"])
    finally:
        disarm()
    if given.write is not None:
        given.write.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
