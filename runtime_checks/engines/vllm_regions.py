"""What the workers of vLLM's NIXL connector say of their regions, 0.13.0 to 0.33.0.

A worker keeps parallel lists with one entry a region; it sends the same lists to its peers. Read
in the released code: a block of a group is selected in every region of that group and in every
region that groups share; models with state have descriptors of their own for the parts of each
state, over the memory that attention has as well.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final

from kvlint.runtime_checks.asking import Asked
from kvlint.runtime_checks.checks import POOL_LISTS, Breach
from kvlint.runtime_checks.engines.vllm_caches import (
    group_name,
    layer_and_role,
    rows_of,
    topology_of,
)
from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.pools.claims import Cache, Claim, Pool
from kvlint.runtime_checks.pools.tensors import Tensor

SHARED: Final = -1
_KINDS: Final = ("attention", "scratch", "state", "replicated")


@dataclass(frozen=True)
class Lists:
    """One worker's lists, one entry a region; empty where a version has none.

    addresses  of block 0, in bytes
    lengths    bytes moved of each block
    strides    bytes from block to block
    counts     blocks
    groups     number of the group whose blocks are selected, -1 for regions that groups share;
               empty where all blocks are selected in all regions
    names      of the region's first layer
    kinds      memory kind as NIXL has it
    device     of what is not in host memory
    tokens     in a block
    halves     whether keys are the first half of each block, values the second, moved apart
    """

    addresses: Sequence[int]
    lengths: Sequence[int]
    strides: Sequence[int]
    counts: Sequence[int]
    groups: Sequence[int]
    names: Sequence[str]
    kinds: Sequence[str]
    device: int
    tokens: int
    halves: bool

    def uneven(self, whose: str) -> Breach | None:
        """The lists are read in step."""
        parts = ("addresses", "lengths", "strides", "counts", "groups", "names", "kinds")
        counts = {name: len(getattr(self, name)) for name in parts if getattr(self, name)}
        if len(set(counts.values())) <= 1:
            return None
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        return Breach(POOL_LISTS, f"{whose} has {told} for its regions", counts)


def of_worker(worker: Any, caches: Sequence[Cache]) -> Lists:
    """The worker's own, once it has made them."""
    addresses: Any = worker.kv_caches_base_addr[worker.engine_id]
    if isinstance(addresses, Mapping):
        addresses = addresses[worker.tp_rank]
    lengths = list(worker.block_len_per_layer)
    names = getattr(worker, "region_names", ()) or [
        _named(address, caches) for address in addresses
    ]
    return Lists(
        list(addresses),
        lengths,
        list(getattr(worker, "block_stride_per_layer", ()) or lengths),
        list(getattr(worker, "region_num_blocks", ()) or [worker.num_blocks] * len(addresses)),
        list(worker.region_group_ids) if _mapped(worker) else [],
        list(names),
        list(getattr(worker, "region_mem_types", ()) or [worker.nixl_memory_type] * len(addresses)),
        worker.device_id,
        worker.block_size,
        _halves(worker),
    )


def of_peer(worker: Any, said: Any, names: Sequence[str]) -> Lists:
    """What a peer has sent, as the worker reads it.

    said   its NixlAgentMetadata
    names  of the worker's own regions, which are in the same order
    """
    addresses, lengths = list(said.kv_caches_base_addr), list(said.block_lens)
    groups = getattr(said, "region_group_ids", None)
    kinds = getattr(said, "region_mem_types", None)
    return Lists(
        addresses,
        lengths,
        list(getattr(said, "block_strides", None) or lengths),
        list(getattr(said, "region_num_blocks", None) or [said.num_blocks] * len(addresses)),
        list(groups) if groups and len(set(groups)) > 1 and not _has_state(worker) else [],
        list(getattr(said, "region_names", None) or names),
        list(kinds or [worker.nixl_memory_type] * len(addresses)),
        said.device_id,
        said.block_size,
        _halves(worker),
    )


def _halves(worker: Any) -> bool:
    return bool(getattr(topology_of(worker), "is_kv_layout_blocks_first", False))


def _has_state(worker: Any) -> bool:
    return bool(getattr(worker, "_has_mamba", False))


def _mapped(worker: Any) -> bool:
    """Whether each group's blocks are selected in its own regions. With state they are not: what
    is of which group shows in the descriptors."""
    return bool(getattr(worker, "_uses_region_group_mapping", False)) and not _has_state(worker)


def _named(address: int, caches: Sequence[Cache]) -> str:
    """Versions without names: after the cache that has a run of bytes there."""
    for cache in caches:
        for at, row in enumerate(rows_of(cache)):
            if row.address == address:
                part = ("key", "value")[at] if cache.dimension == 1 and at < 2 else ""
                return f"{cache.name} {part}".rstrip()
    return f"region at byte {address}"


def claims_of(lists: Lists, worker: Any, caches: Sequence[Cache] = ()) -> list[Claim]:
    """The regions in their order; in step as far as all lists go.

    caches  what the regions move, where it is in this process
    """
    named: dict[str, int] = {}
    found: list[Claim] = []
    scratch = set(worker._scratch_region_indices if _has_state(worker) else ())
    routed = bool(getattr(worker, "_transfer_layer_group_ids", ()))
    rows = zip(lists.addresses, lists.lengths, lists.strides, lists.counts, strict=False)
    for number, (address, length, stride, count) in enumerate(rows):
        group = _at(lists.groups, number, SHARED)
        if routed and group == SHARED and lists.groups:
            # It is listed once a layer, and each time by another group's blocks.
            continue
        name = _at(lists.names, number, f"region {number}")
        part = named[name] = named.get(name, -1) + 1
        layer, role = layer_and_role(name)
        kind = _at(lists.kinds, number, "VRAM")
        claim = Claim(
            name=f"{name} part {part}" if part else name,
            list="kv",
            address=address,
            length=(count - 1) * stride + length if count else 0,
            item_length=stride,
            transfer_length=length,
            layer=layer,
            role=f"{role} part {part}",
            page_size=lists.tokens,
            group="scratch"
            if number in scratch
            else None
            if group == SHARED
            else group_name(group),
            slot_rows=1,
            kind=kind,
            device=0 if kind == "DRAM" else lists.device,
        )
        found += _halved(claim) if lists.halves else [claim]
    rows_for = lru_cache(partial(_sorted_rows, tuple(caches)))
    return [_in_its_rows(claim, rows_for(claim.item_length, claim.moved)) for claim in found]


def _at(values: Sequence[Any], number: int, otherwise: Any) -> Any:
    return values[number] if number < len(values) else otherwise


def _halved(claim: Claim) -> list[Claim]:
    half = claim.moved // 2
    length = max(0, claim.length - half)
    return [
        replace(
            claim,
            name=f"{claim.name} {role}",
            role=f"{claim.role} {role}",
            address=claim.address + offset,
            length=length,
            transfer_length=half,
        )
        for role, offset in (("key", 0), ("value", half))
    ]


def _sorted_rows(caches: Sequence[Cache], stride: int, moved: int) -> list[Tensor]:
    rows = [row for cache in caches for row in rows_of(cache, stride, moved)]
    return sorted(rows, key=lambda row: row.address)


def _in_its_rows(claim: Claim, rows: Sequence[Tensor]) -> Claim:
    """With the rows that it is over: of those that hold its first byte those that begin last, of
    these such as have its stride, and then its length.

    rows  by address
    """
    at = bisect_right(rows, claim.address, key=lambda row: row.address)
    best: Tensor | None = None
    for row in reversed(rows[:at]):
        if best is not None and row.address != best.address:
            break
        if row.end > claim.address:
            fit = _misfit(row, claim)
            best = row if best is None or fit <= _misfit(best, claim) else best
    return replace(claim, tensor=best)


def _misfit(row: Tensor, claim: Claim) -> tuple[bool, int]:
    return row.strides[0] != claim.item_length, abs(row.reach(1) - claim.moved)


def states_of(
    rows: Any, claims: Sequence[Claim], worker: Any, caches: Sequence[Cache] = ()
) -> list[Claim]:
    """The parts of each state, as the descriptors cut them.

    rows    what the worker has built: (address, length, device, stride, count) each or, before
            0.33.0, (address, length, device)
    claims  its regions, over the same memory
    caches  the states, where they are in this process; else a state is called after its region
    """
    import numpy as np

    regions = fold(np.ascontiguousarray(np.array(rows, np.uint64)))
    parts: dict[str, int] = {}
    found: list[Claim] = []
    # What every rank holds whole comes last, and has blocks of its own.
    apart = len(regions) - 1 if getattr(worker, "_ple_region_index", None) is not None else None
    for number in range(len(regions)):
        address, device = int(regions.addresses[number]), int(regions.devices[number])
        name, layer = _whose_state(address, claims, caches)
        part = parts[name] = parts.get(name, -1) + 1
        claim = Claim(
            name=f"{name} part {part}",
            list="state",
            address=address,
            length=int(regions.ends[number]) - address,
            item_length=int(regions.strides[number]),
            transfer_length=int(regions.lengths[number]),
            layer=layer,
            role=f"state part {part}",
            group="replicated" if number == apart else None,
            kind=worker.nixl_memory_type,
            device=device,
        )
        found.append(claim)
    return found


def _whose_state(
    address: int, claims: Sequence[Claim], caches: Sequence[Cache]
) -> tuple[str, int | None]:
    for cache in caches:
        begin, step = cache.tensor.address, cache.tensor.strides[cache.dimension]
        if cache.list == "state" and begin <= address < begin + step:
            return cache.name, cache.layer
    around = [claim for claim in claims if claim.address <= address < claim.end]
    region = max(around, key=lambda claim: claim.address, default=None)
    return (f"{region.name} state", region.layer) if region else ("state", None)


def asked_of(worker: Any, blocks: Sequence[Sequence[int]], how: Mapping[str, Any]) -> Asked:
    """The slots that a request's blocks are in the regions of each group.

    blocks  group by group; where the groups of both sides differ, region by region
    how     the other arguments that the indices were made with
    """
    import numpy as np

    each = [np.fromiter(part, np.int64, len(part)) for part in blocks]
    if getattr(worker, "_transfer_layer_group_ids", ()) or not each:
        # Layer by layer; which layers a region holds the lists do not say.
        return {}
    apart = how.get("region_group_ids") == [*range(worker.num_regions)]
    if apart and how.get("uses_region_group_mapping"):
        return dict(enumerate(each))
    if not _has_state(worker):
        whole = np.concatenate(each) if len(each) > 1 else each[0]
        asked: dict[tuple[str, str | None] | int, Any] = {("kv", None): whole}
        asked.update((("kv", group_name(number)), group) for number, group in enumerate(each))
        return asked
    kinds = [_kind(worker, number) for number in range(len(each))]
    parts: dict[str, list[Any]] = {kind: [np.zeros(0, np.int64)] for kind in _KINDS}
    for kind, group in zip(kinds, each, strict=True):
        parts[kind].append(group)
    of_kind = {kind: np.concatenate(part) for kind, part in parts.items()}
    return {
        ("kv", None): of_kind["attention"],
        ("kv", "scratch"): np.concatenate((of_kind["attention"], of_kind["scratch"])),
        ("state", None): of_kind["state"],
        ("state", "replicated"): of_kind["replicated"],
    }


def _kind(worker: Any, group: int) -> str:
    """What the blocks of a group of a model with state hold."""
    if group == getattr(worker, "_ple_group_index", None):
        return "replicated"
    kind = worker._group_spec_types[group].__name__
    return {"MambaSpec": "state", "CircularBufferSpec": "scratch"}.get(kind, "attention")


def pool_of(claims: Sequence[Claim], caches: Sequence[Cache], uneven: Breach | None = None) -> Pool:
    tensors = [(cache.name, cache.tensor) for cache in caches]
    breaches = [uneven] if uneven is not None else []
    return Pool("kv_caches", claims, tensors, caches, shared=True, breaches=breaches)
