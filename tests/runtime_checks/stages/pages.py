"""Pools and notes for tests of the ledger: no memory, no digests of bytes."""

from collections.abc import Sequence

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.stages.memory import Memory
from kvlint.runtime_checks.stages.notes import Note, Stage
from kvlint.runtime_checks.stages.noting import WRITING


def memory(pool: str = "kv", regions: int = 2, slots: int = 16, at: int = 1 << 20) -> Memory:
    return Memory(
        pool,
        tuple(
            Region(
                name=f"layer {number} key",
                address=at + number * slots * 64,
                length=slots * 64,
                stride=64,
                transfer_length=64,
                memory_kind="DRAM",
                device=0,
                list="kv",
                layer=number,
                role="key",
            )
            for number in range(regions)
        ),
    )


def note(
    stage: str,
    owner: str,
    of: Memory,
    slots: Sequence[int],
    digests: object,
    first: int = 0,
    time: int = 0,
) -> Note:
    """digests  (R, n), or (n,) that each region adds its number to, times a thousand"""
    found = np.array(digests, np.uint64)
    if found.ndim == 1:
        found = found[None, :] + 1000 * np.arange(len(of.regions), dtype=np.uint64)[:, None]
    return Note(
        Stage(stage),
        owner,
        of,
        np.array(slots, np.int64),
        first + np.arange(len(slots)),
        found,
        Stage(stage) in WRITING,
        time,
    )
