"""Guarded pools in GPU memory: what kvlint says where NIXL sees one registration and no regions.

    PYTHONPATH=. python benchmarks/gpu/pools.py [--write FILE]

Two NIXL agents in one process. Each has one arena, registered as a whole, with six regions of 164,
161 and 288 slots, which `guard_pool` names. It needs torch, numpy, nixl and wrapt. Without CUDA it
says so and goes on in host memory.
"""

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("NIXL_LOG_LEVEL", "ERROR")

from transport_cost import agent_of, machine

from kvlint.runtime_checks import Violation, arm, guard_pool, status

SLOTS = (164, 164, 161, 161, 288, 288)
NAMES = tuple(f"layer {n} {what}" for what in ("c4", "index key", "c128") for n in (0, 1))
ITEM = 2048
PAGES = np.array([5, 40, 100])
STARTS = np.cumsum((0, *SLOTS[:-1]))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KIND = "VRAM" if DEVICE == "cuda" else "DRAM"


@dataclass
class Side:
    """An agent, and its regions: consecutive parts of one registered arena."""

    agent: Any
    regions: list[torch.Tensor]

    @classmethod
    def of(cls, name: str) -> "Side":
        agent = agent_of(name)
        arena = torch.randint(1, 255, (sum(SLOTS), ITEM), dtype=torch.uint8, device=DEVICE)
        agent.register_memory(arena)
        regions = list(arena.split(SLOTS))
        guard_pool(dict(zip(NAMES, regions, strict=True)), name=name, agent=agent.name)
        return cls(agent, regions)

    def rows(self, slots: tuple[int, ...] = SLOTS) -> np.ndarray:
        """Nx5: (address, bytes, device, stride, count), one row a region."""
        each = zip(self.regions, slots, strict=True)
        return np.array([(part.data_ptr(), ITEM, 0, ITEM, n) for part, n in each], np.uint64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="keep what is printed in this file")
    told: list[str] = []
    out = parser.parse_args().write

    def say(line: str) -> None:
        told.append(line)
        print(line, flush=True)

    arm("assert")
    here, there = Side.of("prefill"), Side.of("decode")
    here.agent.add_remote_agent(there.agent.get_agent_metadata())
    local = here.agent.prep_xfer_dlist("", here.rows(), KIND)
    remote = here.agent.prep_xfer_dlist(there.agent.name, there.rows(), KIND)
    cumulative = (STARTS[:, None] + PAGES).ravel().astype(np.int32)
    by_stride = (np.arange(len(SLOTS))[:, None] * SLOTS[0] + PAGES).ravel().astype(np.int32)

    def one_count_for_all() -> None:
        slots = (*SLOTS[:2], SLOTS[0], SLOTS[0], *SLOTS[4:])
        rows = here.agent.prep_xfer_dlist(there.agent.name, there.rows(slots), KIND)
        here.agent.make_prepped_xfer("WRITE", local, cumulative, rows, by_stride)

    def one_stride() -> None:
        here.agent.make_prepped_xfer("WRITE", local, by_stride, remote, by_stride)

    def one_byte_an_element() -> None:
        keys = torch.zeros(64, 16, 128, dtype=torch.bfloat16, device=DEVICE)
        said = {"layer 0 key": (keys.data_ptr(), keys.nbytes, keys[0].numel())}
        guard_pool(keys, name="keys", said=said)
        here.agent.register_memory(keys)
        rows = np.array([(keys.data_ptr(), keys[0].numel(), 0, keys[0].numel(), 128)], np.uint64)
        own = here.agent.prep_xfer_dlist("", rows, KIND)
        here.agent.make_prepped_xfer("WRITE", own, [1], remote, [1])

    say("# Guarded pools in one registration\n")
    where = torch.cuda.get_device_name() if DEVICE == "cuda" else "no CUDA, so in host memory"
    say(f"{machine()}\ntorch {torch.__version__}, {where}; mode assert.\n")
    handle = here.agent.make_prepped_xfer("WRITE", local, cumulative, remote, cumulative, b"done")
    here.agent.transfer(handle)
    while here.agent.check_xfer_state(handle) != "DONE":
        there.agent.get_new_notifs()
    pairs = zip(here.regions, there.regions, strict=True)
    right = sum(bool((a[n] == b[n]).all()) for a, b in pairs for n in PAGES.tolist())
    say(f"* cumulative starts: {right} of {len(cumulative)} slots right, kvlint says nothing")
    assert not status()["violations"]
    faults = {
        "one stride for all regions": one_stride,
        "one count for all regions": one_count_for_all,
        "one byte an element": one_byte_an_element,
    }
    for name, fault in faults.items():
        try:
            fault()
            say(f"* {name}: kvlint says nothing")
        except Violation as violation:
            say(f"* {name}: {violation.record['check']}: {violation}")
    say(f"\nInternal errors of kvlint: {status()['tool_errors'] or 'none'}.")
    if out is not None:
        out.write_text("\n".join(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
