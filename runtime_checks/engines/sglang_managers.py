"""What SGLang's managers give to the transport: one list of all pages, one of each kind of state,
one of what goes along with a request. Declared, the transport's checks know them by name.

Read from the released code: all entries of one kind of state are selected by one set of indices,
and so is the list of pages, but for the entries of a draft model, which has sets of its own where
tokens are spread over decode ranks, and for the entries in host memory of a list in part there.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.engines.sglang_pools import uneven_lists
from kvlint.runtime_checks.hooking import Hooks
from kvlint.runtime_checks.pools.claims import Claim, Pool
from kvlint.runtime_checks.pools.watching import Pools

# NIXL and Mooncake call it the one, Mori the other.
INDICES: Final = "repeat_indices_over_layers"
METHODS: Final = ("register_buffer_to_engine", "_register_local_buffers")

Entry = tuple[int, int, int]

_DRAFT: Final = "draft"
# Where entries of the list are in groups of their own, one call is for some of them.
_GROUPS: Final = (None, _DRAFT, "VRAM", "DRAM")


def install(owner: type, label: str, hooks: Hooks, pools: Pools) -> None:
    for method in METHODS:
        declaring = functools.partial(_declaring, pools, method)
        # One of the classes of each module has one of them.
        hooks.put(label, owner, method, declaring, optional=True)


def install_indices(module: ModuleType, label: str, hooks: Hooks, pools: Pools) -> None:
    """What the module makes indices of the list of pages with, from the pages of a request."""
    hooks.put(label, module, INDICES, functools.partial(_indexing, pools))


def _indexing(pools: Pools, original: Callable[..., Any]) -> Callable[..., Any]:
    def repeated(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if pools.policy.armed("pools"):
            with pools.policy.contained("pools"):
                pages = args[0] if args else kwargs["indices"]
                pools.ask(made, lambda: {("kv", group): pages for group in _GROUPS})
        return made

    return repeated


def _declaring(pools: Pools, method: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def declared(manager: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = original(manager, *args, **kwargs)
        if pools.policy.armed("pools"):
            with pools.policy.contained("pools"):
                _declare(pools, manager, method)
        return result

    return declared


def _declare(pools: Pools, manager: Any, method: str) -> None:
    args = manager.kv_args
    claims = [*_pages(pools, args), *_states(pools, args), *_along(args)]
    changed = [
        claim
        for claim in claims
        if (known := pools.known(claim.address)) is not None
        and known.tensor is not None
        and (known.length, known.item_length) != (claim.length, claim.item_length)
    ]
    uneven = list(_uneven(args))
    if changed or uneven:
        pools.look(
            Pool("kv_args", claims if uneven else changed, breaches=uneven), method, owner=manager
        )
    agent = getattr(getattr(manager, "agent", None), "name", None)
    if isinstance(agent, str):
        rank = getattr(args, "engine_rank", None)
        process = None if rank is None else f"rank {rank}"
        pools.declare(agent, claims, call=method, engine="sglang", process=process)


def _uneven(args: Any) -> Iterator[Breach]:
    for name, triple in (
        ("kv_args.kv", (args.kv_data_ptrs, args.kv_data_lens, args.kv_item_lens)),
        ("kv_args.aux", (args.aux_data_ptrs, args.aux_data_lens, args.aux_item_lens)),
        *((f"kv_args.state {kind}", said) for kind, said in _components(args)),
    ):
        breach = uneven_lists(name, triple)
        if breach is not None:
            yield breach


def _pages(pools: Pools, args: Any) -> Iterator[Claim]:
    entries: list[Entry] = list(
        zip(args.kv_data_ptrs, args.kv_data_lens, args.kv_item_lens, strict=False)
    )
    kinds = list(getattr(args, "kv_data_mem_kinds", None) or ["VRAM"] * len(entries))
    layers = getattr(args, "kv_layer_ids", None) or [None] * len(entries)
    mixed = len(set(kinds)) > 1
    target = len(entries) - (getattr(args, "num_draft_entries", 0) or 0)
    for number, entry in enumerate(entries):
        claim = _claim(pools, f"kv {number}", "kv", entry)
        layer = layers[number] if number < len(layers) else None
        kind = kinds[number] if number < len(kinds) else "VRAM"
        draft = number >= target
        yield replace(
            claim,
            name=f"draft {claim.name}" if draft else claim.name,
            layer=claim.layer if layer is None or layer < 0 else layer,
            role=f"draft {claim.role}" if draft and claim.role else claim.role,
            page_size=getattr(args, "page_size", None),
            group=_DRAFT if draft else kind if mixed else None,
            kind=kind,
            device=_device(args, kind),
        )


def _states(pools: Pools, args: Any) -> Iterator[Claim]:
    seen: dict[str, int] = {}
    layers = getattr(args, "state_layer_ids", None) or []
    for component, (kind, said) in enumerate(_components(args)):
        seen[kind] = times = seen.get(kind, 0) + 1
        name = f"state.{kind}" if times == 1 else f"state.{kind}.{times}"
        ids = layers[component] if component < len(layers) else None
        for number, entry in enumerate(zip(*said, strict=False)):
            claim = _claim(pools, f"{kind} {number}", name, entry)
            layer = ids[number] if ids and number < len(ids) else None
            yield replace(
                claim,
                layer=claim.layer if layer is None or layer < 0 else layer,
                kind="VRAM",
                device=_device(args, "VRAM"),
            )


def _along(args: Any) -> Iterator[Claim]:
    said = zip(args.aux_data_ptrs, args.aux_data_lens, args.aux_item_lens, strict=False)
    for number, (address, length, item_length) in enumerate(said):
        yield Claim(
            name=f"aux {number}",
            list="aux",
            address=address,
            length=length,
            item_length=item_length,
            kind="DRAM",
            device=0,
        )


def _components(args: Any) -> list[tuple[str, tuple[Sequence[int], Sequence[int], Sequence[int]]]]:
    """(type, lists) of each kind of state."""
    kinds = getattr(args, "state_types", None) or []
    parts = [
        getattr(args, f"state_{what}", None) or []
        for what in ("data_ptrs", "data_lens", "item_lens")
    ]
    return [
        (str(getattr(kinds[at], "value", kinds[at])) if at < len(kinds) else str(at), said)
        for at, said in enumerate(zip(*parts, strict=False))
    ]


def _claim(pools: Pools, name: str, list_name: str, entry: Sequence[int]) -> Claim:
    """As the manager has it; name, layer, role and tensor as a pool has told of its address."""
    address, length, item_length = entry
    known = pools.known(address)
    if known is None or not length:
        return Claim(
            name=name, list=list_name, address=address, length=length, item_length=item_length
        )
    return replace(known, list=list_name, length=length, item_length=item_length, group=None)


def _device(args: Any, kind: str) -> int:
    return int(getattr(args, "gpu_id", 0) or 0) if kind == "VRAM" else 0
