"""What it costs to tell the other side of a transfer what was moved and what it held.

    python benchmarks/exchange_cost.py [--messages 200] [--write FILE]

Two agents of one process on real NIXL, without threads of NIXL's own, over host memory. For each
size of transfer both messages are sent, its rows and its tags, and received; the time of each call
is told, and of one that finds nothing. NIXL moves records of one process to itself by its fastest
way: by a network they take longer to arrive, and nobody waits for that.
"""

import argparse
import datetime
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from kvlint.runtime_checks.digests.rows import Rows
from kvlint.runtime_checks.exchange.channel import Channel
from kvlint.runtime_checks.exchange.messages import Stage
from kvlint.runtime_checks.exchange.records import parts_of

REGIONS = 61
PAGES = (1, 16, 128, 2048)
IDLE = 10
"""Microseconds that a call may take which finds nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=200, metavar="N", help="of each size")
    parser.add_argument("--write", type=Path, metavar="FILE")
    asked = parser.parse_args()
    pair = Pair()
    lines = [line(pair, pages, asked.messages) for pages in PAGES]
    idle = statistics.median(timed(pair.there.receive)[0] for _ in range(5000))
    text = report(lines, idle, asked.messages)
    print(text, end="")
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")


class Pair:
    """Two agents, the first of which knows the second, and their channels."""

    def __init__(self) -> None:
        from nixl import _api

        how = _api.nixl_agent_config(backends=["UCX"], enable_prog_thread=False)
        self.agents = [_api.nixl_agent(name, how) for name in ("here", "there")]
        self.here, self.there = (Channel(a, _api.nixlBind, b"key") for a in self.agents)
        for channel in (self.here, self.there):
            refused = channel.open()
            if refused is not None:
                sys.exit(refused)
        self.agents[0].add_remote_agent(self.agents[1].get_agent_metadata())


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Microseconds, and what the call gives back."""
    began = time.perf_counter_ns()
    given = call()
    return (time.perf_counter_ns() - began) / 1000, given


def line(pair: Pair, pages: int, messages: int) -> str:
    """One line of the table: medians of as many transfers."""
    random = np.random.default_rng(pages)
    count = REGIONS * pages
    rows = Rows(
        random.integers(0, 1 << 47, count).astype(np.uint64),
        np.full(count, 9216),
        np.repeat(random.integers(0, 1 << 63, REGIONS, np.uint64), pages),
    )
    tags = random.integers(0, 1 << 63, count, np.uint64)
    records = parts_of(8 + 24 * REGIONS + 8 * count), parts_of(8 * count)
    taken: list[tuple[float, float, float]] = []
    for number in range(messages):
        transfer = number.to_bytes(16)
        announcing, told = timed(partial(pair.here.announce, "there", transfer, "WRITE", rows))
        digesting, also = timed(partial(pair.here.digested, "there", transfer, Stage.POST, tags))
        receiving, arrived = 0.0, 0
        while arrived < told + also:
            for agent in pair.agents:
                agent.get_new_notifs()
            spent, found = timed(pair.there.receive)
            arrived += len(found)
            # What finds nothing is told by itself.
            receiving += spent if spent > IDLE or found else 0
        taken.append((announcing, digesting, receiving))
        pair.here.receive()
    middle = [statistics.median(column) for column in zip(*taken, strict=True)]
    times = " | ".join(f"{microseconds:.0f}" for microseconds in middle)
    return f"| {pages} x {REGIONS} | {records[0]} + {records[1]} | {times} |"


def report(lines: list[str], idle: float, messages: int) -> str:
    # Others on the same machine show in the longest rows first.
    load = f"{os.cpu_count()} cores with a load of {os.getloadavg()[1]:.0f}"
    where = f"{platform.machine()}, {load}"
    what = f"python {platform.python_version()}, nixl {version('nixl')}, numpy {np.__version__}"
    return "\n".join(
        [
            "# What it costs to tell the other side",
            "",
            f"{datetime.date.today()}, {where};",
            f"{what}. Microseconds, medians of {messages}:",
            "",
            f"    python benchmarks/exchange_cost.py --messages {messages}",
            "",
            "| pages x regions | records | announce | digested | receive both |",
            "|---|---:|---:|---:|---:|",
            *lines,
            "",
            f"A call that finds nothing: {idle:.1f} (aim {IDLE}).",
            "",
        ]
    )


if __name__ == "__main__":
    main()
