"""Geometry of memory that nobody has declared, as far as prepared lists show it.

A program without an adapter says nowhere what its regions are. But where each region of a list
lies in a registration of its own, from its first byte on, the registration is a buffer and the
list says how it is cut into slots. Any other list may be anything: runs of pages of one request,
say, or parts of one large buffer. What a list holds nobody knows: each is a list of its own, which
counts only for the code that has used it.
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from kvlint.geometry import Geometry, Region
from kvlint.runtime_checks.capture import FOLDED
from kvlint.runtime_checks.nixl.preparing import Prepared
from kvlint.runtime_checks.registrations import Registration

# As it stands among what was switched off.
MODULE: Final = "folding"

MOST_REGIONS: Final = 1024
_LISTS: Final = 16
_AGENTS: Final = 64


class Folded:
    """Of each agent its different lists, at most 16.

    keep  takes what is known of an agent so far
    """

    def __init__(self, keep: Callable[[str, Geometry], None]) -> None:
        self._keep = keep
        self._agents: dict[str, dict[bytes, tuple[int, list[Region]]]] = {}

    def note(self, prepared: Prepared) -> None:
        """A list was prepared. One like an earlier one gets that one's number."""
        buffers = _buffers(prepared)
        owner = prepared.of.owner
        if not buffers or (owner not in self._agents and len(self._agents) == _AGENTS):
            return
        lists = self._agents.setdefault(owner, {})
        # The same buffers cut in the same way, however many slots a list has of each.
        regions = prepared.of.regions
        columns = (regions.addresses, regions.strides, regions.lengths, regions.devices)
        key = b"".join(column.tobytes() for column in columns)
        if key in lists:
            prepared.number = lists[key][0]
        elif len(lists) < _LISTS:
            lists[key] = prepared.number, list(_as_regions(prepared, buffers, bool(lists)))
            self._keep(owner, _geometry(owner, [found for _, found in lists.values()]))


def _buffers(prepared: Prepared) -> list[Registration]:
    """The registration that each region is cut from; none, where the list shows no buffers."""
    of, owner = prepared.of, prepared.owner
    regions = of.regions
    if owner is None or of.known or of.kind not in ("DRAM", "VRAM") or of.breaches:
        return []
    if not 0 < len(regions) <= MOST_REGIONS or bool((regions.slots < 2).any()):
        return []
    numbers = of.pieces()
    if bool((numbers < 0).any()) or len(np.unique(numbers)) < len(numbers):
        return []
    live = owner.registrations.live
    held = [live[number] for number in numbers.tolist() if number in live]
    if [one.address for one in held] != regions.addresses.tolist():
        return []
    # Every second page of a buffer, say, would be taken for slots with a gap between them.
    dense = regions.strides == regions.lengths
    rest = np.array([one.end for one in held], np.uint64) - regions.ends
    whole = rest < regions.strides.astype(np.uint64)
    return held if bool((dense | whole).all()) else []


def _as_regions(prepared: Prepared, buffers: list[Registration], again: bool) -> Iterator[Region]:
    """again  whether there are lists before it, whose buffers these may be as well"""
    of = prepared.of
    behind = f" in list {of.number}" if again else ""
    for number, buffer in enumerate(buffers):
        yield Region(
            name=f"registration {buffer.number}{behind}",
            address=buffer.address,
            length=buffer.length,
            stride=int(of.regions.strides[number]),
            transfer_length=int(of.regions.lengths[number]),
            memory_kind=buffer.kind,
            device=buffer.device,
            list=f"kv.{of.number}",
        )


def _geometry(owner: str, lists: list[list[Region]]) -> Geometry:
    return Geometry(tuple(r for regions in lists for r in regions), FOLDED, _printable(owner))


def _printable(name: str) -> str | None:
    return name[:200] if name and name.isprintable() else None
