"""Three digests of real transfers: clean ones by the thousand, planted faults, and what they cost.

    PYTHONPATH=. python benchmarks/gpu/three_digests.py [--transfers N] [--write FILE]

Two NIXL agents in one process, over GPU memory. It needs torch, triton, numpy, nixl and wrapt.
Without CUDA it says so and goes on in host memory, with smaller pages.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("NIXL_LOG_LEVEL", "ERROR")

from nixl._api import nixl_agent, nixl_agent_config
from transport_cost import machine

from kvlint.runtime_checks import Violation, arm, arming, disarm, status

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KIND = "VRAM" if DEVICE == "cuda" else "DRAM"
SLOTS = (164, 164, 161, 161, 288, 288)
ITEM = 2048
# An 8k-token request of 61 layers, 64 tokens a page, of 1,152 bytes each; fewer on a CPU.
LAYERS, PAGES, PAGE = (61, 128, 73_728) if DEVICE == "cuda" else (8, 16, 4096)
ATTEMPTS = 200
MODES = ("off", "log", "sample", "assert", "paranoid")


@dataclass
class Side:
    """An agent and its regions, each a registration."""

    agent: Any
    regions: list[torch.Tensor]

    @classmethod
    def of(cls, name: str, regions: list[torch.Tensor]) -> "Side":
        agent = nixl_agent(name, nixl_agent_config(backends=["UCX"], enable_prog_thread=True))
        for region in regions:
            agent.register_memory(region)
        return cls(agent, regions)

    def rows(self) -> np.ndarray:
        """Nx5: (address, bytes, device, stride, count), one row a region."""
        each = [(r.data_ptr(), r.shape[1], 0, r.shape[1], r.shape[0]) for r in self.regions]
        return np.array(each, np.uint64)

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum([0, *(len(region) for region in self.regions[:-1])])

    def indices(self, slots: np.ndarray) -> np.ndarray:
        return (self.starts[:, None] + slots).ravel().astype(np.int32)


@dataclass
class Pair:
    one: Side
    other: Side
    lists: tuple[Any, Any]

    @classmethod
    def of(cls, name: str, shapes: list[tuple[int, int]]) -> "Pair":
        def full() -> list[torch.Tensor]:
            return [torch.randint(1, 255, s, dtype=torch.uint8, device=DEVICE) for s in shapes]

        one, other = Side.of(f"p-{name}", full()), Side.of(f"d-{name}", full())
        one.agent.add_remote_agent(other.agent.get_agent_metadata())
        other.agent.add_remote_agent(one.agent.get_agent_metadata())
        local = one.agent.prep_xfer_dlist("", one.rows(), KIND)
        remote = one.agent.prep_xfer_dlist(other.agent.name, other.rows(), KIND)
        return cls(one, other, (local, remote))

    def post(
        self, operation: str, ours: np.ndarray, theirs: np.ndarray, message: bytes
    ) -> tuple[Any, str]:
        """The handle, and its state when the call was over."""
        local, remote = self.lists
        handle = self.one.agent.make_prepped_xfer(
            operation, local, self.one.indices(ours), remote, self.other.indices(theirs), message
        )
        return handle, self.one.agent.transfer(handle)

    def finish(self, handle: Any) -> None:
        while self.one.agent.check_xfer_state(handle) != "DONE":
            pass

    def notice(self) -> None:
        while not self.other.agent.get_new_notifs():
            pass

    def settle(self) -> None:
        """What digests still show is asked for, and raised."""
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        self.other.agent.get_new_notifs()


def clean(transfers: int, mode: str, say: Callable[[str], None]) -> None:
    arm(mode)
    pair = Pair.of(mode, [(slots, ITEM) for slots in SLOTS])
    random, began = np.random.default_rng(7), time.monotonic()
    for number in range(transfers):
        count = int(random.integers(1, 17))
        ours, theirs = (random.choice(min(SLOTS), count, replace=False) for _ in range(2))
        operation = "READ" if number % 3 == 0 else "WRITE"
        handle, _ = pair.post(operation, ours, theirs, b"room %d" % number)
        pair.finish(handle)
        pair.notice()
        pair.one.agent.release_xfer_handle(handle)
        if number % 100 == 0:
            source = pair.one if operation == "WRITE" else pair.other
            source.regions[number // 100 % len(SLOTS)].random_(1, 255)
    pair.settle()
    found = status()
    compared = found["digests"].get("transfers compared", 0)
    say(
        f"| {mode} | {transfers:,} | {compared:,} | {found['digests'].get('pages digested', 0):,} "
        f"| {found['violations']} | {found['tool_errors'] or 'none'} "
        f"| {(time.monotonic() - began) / transfers * 1000:.2f} |"
    )
    disarm()
    if found["violations"] or found["tool_errors"] or compared != transfers:
        raise SystemExit(f"not clean: {found}")


def faults(say: Callable[[str], None]) -> None:
    ours, theirs = np.array([5, 40, 100]), np.array([9, 60, 7])

    def changed(pair: Pair) -> None:
        pair.other.regions[2][60, 77] ^= 1

    def exchanged(pair: Pair) -> None:
        one, other = pair.other.regions[3][7].clone(), pair.other.regions[4][7].clone()
        pair.other.regions[3][7], pair.other.regions[4][7] = other, one

    def mutated(pair: Pair) -> None:
        pair.one.regions[1][40, 3] ^= 1

    planted: dict[str, tuple[Callable[[Pair], None], bool, str]] = {
        "a byte of the destination changes before the commit": (changed, True, "arrived-wrong"),
        "pages of two regions are exchanged": (exchanged, True, "arrived-wrong"),
        "a byte of the source changes in flight": (mutated, False, "source-changed"),
    }
    for name, (plant, arrives_first, check) in planted.items():
        arm("paranoid")
        pair = Pair.of("faulty", [(slots, ITEM) for slots in SLOTS])
        said: list[str] = []
        in_flight = False
        try:
            for attempt in range(1 if arrives_first else ATTEMPTS):
                handle, state = pair.post("WRITE", ours, theirs, b"%d" % attempt)
                in_flight = state == "PROC"
                if arrives_first or not in_flight:
                    pair.finish(handle)
                if arrives_first or in_flight:
                    plant(pair)
                pair.finish(handle)
                pair.notice()
                pair.settle()
                pair.settle()
                if in_flight:
                    break
        except Violation as violation:
            said.append(f"raised {violation.record['check']}: {violation}")
        records = list(arming._armed.policy.violations)
        said = said or [f"{record['check']}: {record['message']}" for record in records]
        named = [record["check"] for record in records]
        disarm()
        if not arrives_first and not in_flight:
            said = ["not played: each post was over when the call came back"]
        elif check not in named:
            raise SystemExit(f"{name}: {named}, not {check}")
        say(f"* {name}: {' / '.join(said)}")


def cost(rounds: int, say: Callable[[str], None]) -> None:
    """Host time of each of NIXL's calls, by mode, in rotating order; agents anew each time."""
    shapes = [(PAGES + 8, PAGE)] * LAYERS
    order = np.random.default_rng(3).permutation(PAGES)
    took: dict[tuple[str, str, str], list[float]] = {}
    for number in range(rounds):
        for mode in (*MODES[number % len(MODES) :], *MODES[: number % len(MODES)]):
            if mode != "off":
                arm(mode)
            pair = Pair.of(mode, shapes)
            for case, pages in (("in order", np.arange(PAGES)), ("random order", order)):
                for again in range(4):
                    message = b"cost %d %d" % (number, again)
                    if DEVICE == "cuda":
                        torch.cuda.synchronize()
                    marks = [time.perf_counter()]
                    local, remote = pair.lists
                    handle = pair.one.agent.make_prepped_xfer(
                        "WRITE",
                        local,
                        pair.one.indices(pages),
                        remote,
                        pair.other.indices(pages),
                        message,
                    )
                    marks.append(time.perf_counter())
                    pair.one.agent.transfer(handle)
                    marks.append(time.perf_counter())
                    pair.finish(handle)
                    marks.append(time.perf_counter())
                    pair.notice()
                    marks.append(time.perf_counter())
                    pair.one.agent.release_xfer_handle(handle)
                    if again:
                        names = ("make", "post", "to the end", "notification")
                        for call, spent in zip(names, np.diff(marks), strict=True):
                            took.setdefault((case, call, mode), []).append(spent * 1e6)
                        whole = (marks[-1] - marks[0]) * 1e6
                        took.setdefault((case, "whole", mode), []).append(whole)
            pair.settle()
            if mode != "off":
                disarm()
            del pair, handle
    say(f"| microseconds, median of {rounds * 3} | {' | '.join(MODES)} |")
    say(f"|---|{'---:|' * len(MODES)}")
    for case in ("in order", "random order"):
        for call in ("make", "post", "to the end", "notification", "whole"):
            each = [statistics.median(took[case, call, mode]) for mode in MODES]
            say(f"| {case}: {call} | {' | '.join(f'{value:,.0f}' for value in each)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transfers", type=int, default=5000, help="clean ones, in each mode")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="keep what is printed in this file")
    asked = parser.parse_args()
    told: list[str] = []

    def say(line: str) -> None:
        told.append(line)
        print(line, flush=True)
        if asked.write is not None:
            asked.write.write_text("\n".join(told) + "\n", encoding="utf-8")

    say("# Three digests of real transfers\n")
    where = torch.cuda.get_device_name() if DEVICE == "cuda" else "no CUDA, so in host memory"
    say(f"{machine()}\ntorch {torch.__version__}, {where}.")
    how = f"--transfers {asked.transfers} --rounds {asked.rounds}"
    say(f"`python benchmarks/gpu/three_digests.py {how}`\n")
    say("## Clean transfers\n")
    say(
        "| mode | transfers | compared | pages digested | violations | internal errors | ms each |"
        "\n|---|---:|---:|---:|---:|---|---:|"
    )
    for mode in ("assert", "paranoid"):
        clean(asked.transfers, mode, say)
    say("\n## Planted faults\n")
    faults(say)
    say(f"\n## Cost: {LAYERS * PAGES:,} pages of {PAGE:,} bytes, two agents of one process\n")
    cost(asked.rounds, say)


if __name__ == "__main__":
    main()
