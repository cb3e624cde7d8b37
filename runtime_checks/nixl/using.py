"""Which pages a transfer in flight reads or writes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kvlint.runtime_checks.destinations import Rows
from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.selection import Selection
from kvlint.runtime_checks.transfers import Transfer


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """
    transfer   its name
    writes     whether it writes the pages; else it reads them
    positions  (k,) of these among the pages asked about
    posted     nanoseconds since the epoch
    """

    transfer: str
    writes: bool
    positions: Integers
    posted: int


class Transport(Protocol):
    """What knows of transfers in flight."""

    def using(self, pages: Pages) -> list[Use]:
        """Uses of any byte of these pages by transfers of this process whose end nobody has
        seen."""


def uses(transfer: Transfer, pages: Pages, is_here: Callable[[str], bool]) -> Iterator[Use]:
    """By one transfer in flight.

    is_here  whether an agent's memory is this process's: addresses elsewhere say nothing
    """
    sides = [transfer.local] if transfer.local is not None else []
    if transfer.remote is not None and is_here(transfer.peer):
        sides.append(transfer.remote)
    for side in sides:
        if side.of.kind == pages.kind:
            positions = _touched(side, pages)
            if len(positions):
                name = transfer.name or f"{transfer.agent}>{transfer.peer} {transfer.number}"
                written = transfer.remote if transfer.operation == "WRITE" else transfer.local
                yield Use(name, side is written, positions, transfer.posted or 0)


def _touched(side: Selection, pages: Pages) -> Integers:
    """Positions of the pages that share a byte with what is selected."""
    rows = Rows.of(side)
    if not len(rows.begins):
        return np.zeros(0, np.int64)
    order = np.argsort(rows.begins, kind="stable")
    begins, furthest = rows.begins[order], np.maximum.accumulate(rows.ends[order])
    ours = pages.addresses
    ends = ours + pages.page_lengths.astype(np.uint64)
    at = np.searchsorted(begins, ends, side="left") - 1
    return np.flatnonzero((at >= 0) & (furthest[at] > ours)).astype(np.int64)
