"""Pages of SGLang's pools and of their copies in host memory, for the ledger of stages: digested
right after each copy was begun, on the copy's own stream, in modes that read bytes.

Host memory is read by the device that copies it, where there is one: it has been given the copy,
and this process may come too early. That takes pinned memory, as these pools have. Nothing waits
for indices on the device but the checks before the copy, in the modes in which these do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.engines.sglang_host_buffers import Pair, name_of, pairs_of, rows_of
from kvlint.runtime_checks.pools.tensors import Tensor
from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.stages.copying import Copies
from kvlint.runtime_checks.stages.memory import Memory


@dataclass(frozen=True, slots=True)
class _Both:
    """What of two pools is copied in units of one size.

    unit  entries that a slot of the memories has: a page's, or one
    """

    host: Memory
    device: Memory
    unit: int


@dataclass(frozen=True, slots=True)
class _Known:
    """
    layers  of the device; the last one loaded ends a copy back
    """

    device_pool: "ref[Any]"
    whole: Sequence[_Both]
    single: Sequence[_Both]
    layers: int


class HostPages:
    """The host pools of one process that is armed.

    watched  classes of which it is told when they give pages back
    """

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._known: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()
        self.watched: WeakSet[type] = WeakSet()

    @property
    def wanted(self) -> bool:
        return self._copies.wanted

    def written_back(
        self, host: Any, device_pool: Any, host_indices: Integers, device_indices: Integers
    ) -> None:
        """All layers of these entries were copied to the host."""
        for both, ours, theirs in self._copied(host, device_pool, host_indices, device_indices):
            self._copies.written_back(both.device, theirs, both.host, ours)
            if not self._follows(host):
                self._copies.freed(both.host, ours)

    def loaded_back(
        self,
        host: Any,
        device_pool: Any,
        host_indices: Integers,
        device_indices: Integers,
        layer: int,
    ) -> None:
        """One layer of these entries was copied to the device, after those before it."""
        if layer + 1 != self._of(host, device_pool).layers:
            return
        for both, ours, theirs in self._copied(host, device_pool, host_indices, device_indices):
            self._copies.loaded_back(both.host, ours, both.device, theirs)

    def freed(self, host: Any, indices: Integers | None) -> None:
        """These entries were given back; None for any."""
        known = self._known.get(host)
        for both in (*known.whole, *known.single) if known is not None else ():
            slots = np.arange(both.host.slots)
            if indices is not None:
                slots = np.unique(indices // both.unit)
            self._copies.freed(both.host, slots[slots < both.host.slots])

    def _follows(self, host: Any) -> bool:
        """Whether it is told when the host's pages are given back: else another's may lie there."""
        frees = next((one for one in type(host).__mro__ if "free" in vars(one)), None)
        return frees in self.watched

    def _copied(
        self, host: Any, device_pool: Any, host_indices: Integers, device_indices: Integers
    ) -> Iterator[tuple[_Both, Integers, Integers]]:
        """By slots, whole pages where these are copied."""
        known = self._of(host, device_pool)
        page = getattr(host, "page_size", 1)
        ends = host_indices, device_indices
        whole = all(_are_pages(indices, page) for indices in ends)
        for both in known.whole if whole else known.single:
            ours, theirs = (indices[:: both.unit] // both.unit for indices in ends)
            inside = all(
                len(slots) and slots.min() >= 0 and slots.max() < memory.slots
                for slots, memory in ((ours, both.host), (theirs, both.device))
            )
            if inside and len(ours) == len(theirs):
                yield both, ours, theirs

    def _of(self, host: Any, device_pool: Any) -> _Known:
        known = self._known.get(host)
        if known is None or known.device_pool() is not device_pool:
            known = self._known[host] = _known(host, device_pool)
            # Another pool may have been where this one is.
            self.freed(host, None)
        return known


def _are_pages(indices: Integers, page: int) -> bool:
    if len(indices) % page:
        return False
    runs = indices.reshape(-1, page)
    return bool((runs[:, 0] % page == 0).all() and (np.diff(runs, axis=1) == 1).all())


def _known(host: Any, device_pool: Any) -> _Known:
    page = getattr(host, "page_size", None)
    pairs = [pair for pair in pairs_of(host, device_pool) if len(pair.host) == len(pair.device)]
    layers = max((len(pair.device) for pair in pairs), default=0)
    if not isinstance(page, int) or getattr(host, "dcp_size", 1) != 1:
        # Indices of several ranks are no slots of this one.
        return _Known(ref(device_pool), (), (), layers)
    single = [_both(host, device_pool, pairs, 1)]
    whole = single if page == 1 else [_both(host, device_pool, pairs, page)]
    if page > 1 and not whole[0].host.regions:
        whole = single
    return _Known(ref(device_pool), _any(whole), _any(single), layers)


def _any(found: Sequence[_Both]) -> Sequence[_Both]:
    return [both for both in found if both.host.regions]


def _both(host: Any, device_pool: Any, pairs: Sequence[Pair], unit: int) -> _Both:
    """Of the things of which both sides have a unit's bytes in one run."""
    ours, theirs = list[Region](), list[Region]()
    page = host.page_size
    for pair in pairs:
        for layer, buffers in enumerate(zip(pair.host, pair.device, strict=True)):
            if not all(buffer.numel() for buffer in buffers):
                continue
            name = f"layer {layer} {pair.role}"
            made = [
                _region(name, layer, pair, Tensor.of(buffer), getattr(of, "size", None), page, unit)
                for buffer, of in zip(buffers, (host, device_pool), strict=True)
            ]
            here, there = made
            if here is None or there is None or here.transfer_length != there.transfer_length:
                continue
            if there.memory_kind == "VRAM":
                if not buffers[0].is_pinned():
                    continue
                here = replace(here, memory_kind="VRAM", device=there.device)
            ours.append(here)
            theirs.append(there)
    name = name_of(host)
    return _Both(Memory(f"host {name}", tuple(ours)), Memory(f"device {name}", tuple(theirs)), unit)


def _region(
    name: str, layer: int, pair: Pair, tensor: Tensor, size: object, page: int, unit: int
) -> Region | None:
    """None where a unit's bytes are not one run."""
    rows = rows_of(tensor, size, page, pair.by_page)
    if rows is None or page % rows or not tensor.shape:
        return None
    step, row = tensor.strides[0], tensor.reach(1)
    # A row is a page, or an entry: of a page's entries as many rows as it has.
    each = rows if unit == page else 1 if rows == page else 0
    if not each or not _packed(tensor) or (each > 1 and step != row):
        return None
    return Region(
        name=name,
        address=tensor.address,
        length=tensor.reach(),
        stride=each * step,
        transfer_length=(each - 1) * step + row,
        memory_kind=tensor.kind,
        device=tensor.device,
        list="kv",
        layer=layer,
        role=pair.role,
    )


def _packed(tensor: Tensor) -> bool:
    """Whether a row's bytes are one run."""
    elements = 1
    for count in tensor.shape[1:]:
        elements *= count
    return elements * tensor.element_size == tensor.reach(1)
