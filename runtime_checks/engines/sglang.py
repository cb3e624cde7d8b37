"""SGLang, 0.5.13 to 0.5.23: what its pools say of their regions, what its managers give to the
transport, and the copies of its host caches.

A pool that asks another one, or its base class, for the lists answers with these: only the
outermost answer is looked at, once.
"""

import functools
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any, Final

from kvlint.runtime_checks.digests.requests import knows
from kvlint.runtime_checks.engines import ADAPTERS, sglang_hicache, sglang_managers
from kvlint.runtime_checks.engines.sglang_pools import as_said, read, uneven_lists
from kvlint.runtime_checks.hooking import Hooks
from kvlint.runtime_checks.pools.claims import Pool
from kvlint.runtime_checks.pools.own import PoolError
from kvlint.runtime_checks.pools.watching import Pools

ENGINE: Final = "sglang"
AWAITED: Final = ADAPTERS[__name__]
STAGES: Final[Mapping[str, str]] = {
    "sglang.srt.mem_cache.memory_pool": "pools",
    "sglang.srt.disaggregation.nixl.conn": "transport",
}

# Classes that every version has; what else a module has that answers for pools is found there.
_EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    "memory_pool": ("MHATokenToKVPool", "get_contiguous_buf_infos"),
    "swa_memory_pool": ("SWAKVPool", "get_contiguous_buf_infos"),
    "deepseek_v4_memory_pool": ("DeepSeekV4TokenToKVPool", "get_contiguous_buf_infos"),
    "nixl.conn": ("NixlKVManager", "register_buffer_to_engine"),
}
SURE: Final = tuple(f"sglang.{owner}.{method}" for owner, method in _EXPECTED.values())

_ANSWER: Final = re.compile(r"get_(\w*?)_?buf_infos")

_inside = threading.local()


def install(module: ModuleType, hooks: Hooks, pools: Pools) -> None:
    """Put the checks around what the module defines; called once for each awaited module."""
    _, _, name = module.__name__.partition(".srt.")
    # "ROOM_kv_...", "ROOM_state_...", "ROOM_aux": nixl/conn.py, up to 0.5.20.
    knows("sglang", rb"(\d+)_.*")
    for owner in _classes(module):
        label = f"sglang.{owner.__name__}"
        for method in [n for n, value in vars(owner).items() if isinstance(value, FunctionType)]:
            if _ANSWER.fullmatch(method):
                hooks.put(label, owner, method, functools.partial(_looking, pools, method))
        if "_host" in name:
            sglang_hicache.install(owner, label, hooks, pools)
        if name.endswith(".conn"):
            sglang_managers.install(owner, label, hooks, pools)
    if name == "disaggregation.nixl.conn":
        sglang_managers.install_indices(module, "sglang.conn", hooks, pools)
    for where, (owner_name, method) in _EXPECTED.items():
        if name.partition(".")[2] == where and f"sglang.{owner_name}.{method}" not in hooks.status:
            hooks.put(f"sglang.{owner_name}", None, method, lambda original: original)


def may_hook(method: str) -> bool:
    """Whether hooks may be put in place of methods of that name."""
    hooked = (*sglang_hicache.METHODS, *sglang_managers.METHODS, sglang_managers.INDICES)
    return method in hooked or _ANSWER.fullmatch(method) is not None


def pools_of(given: Any) -> list[Pool]:
    """What a pool answers, asked for each list that it has; what is part of a list told before
    comes once. Raises PoolError, one line, and what the pool raises for the list of all pages."""
    found: list[Pool] = []
    seen: set[int] = set()
    methods = sorted(name for name in dir(type(given)) if _ANSWER.fullmatch(name))
    for method in sorted(methods, key=lambda name: list_of(name) != "kv"):
        try:
            said = as_said(getattr(given, method)())
        except Exception:
            # Not every pool has the states that its class could have.
            if list_of(method) == "kv":
                raise
            continue
        if said is None or seen.issuperset(said[0]):
            continue
        uneven = uneven_lists(f"{type(given).__name__}.{method}", said)
        if uneven is not None:
            raise PoolError(uneven.message)
        seen.update(said[0])
        found.append(read(given, said, list_of(method)))
    return found


def _classes(module: ModuleType) -> list[type]:
    return [
        thing
        for thing in list(vars(module).values())
        if isinstance(thing, type) and thing.__module__ == module.__name__
    ]


def _looking(pools: Pools, method: str, original: Callable[..., Any]) -> Callable[..., Any]:
    list_name = list_of(method)

    def looked_at(pool: Any, /, *args: Any, **kwargs: Any) -> Any:
        outer = getattr(_inside, "pool", False)
        _inside.pool = True
        try:
            answer = original(pool, *args, **kwargs)
        finally:
            _inside.pool = outer
        if not outer and pools.policy.armed("pools"):
            with pools.policy.contained("pools"):
                _look(pools, pool, method, list_name, answer, original)
        return answer

    return looked_at


def _look(
    pools: Pools, pool: Any, method: str, list_name: str, answer: object, said_by: object
) -> None:
    said = as_said(answer)
    if said is None:
        return
    uneven = uneven_lists(f"{type(pool).__name__}.{method}", said)
    view = read(pool, said, list_name)
    view = replace(view, breaches=[uneven] if uneven else [])
    pools.look(view, method, owner=pool, said_by=said_by)


def list_of(method: str) -> str:
    """`get_contiguous_buf_infos` answers for the list of all pages, `get_buf_infos` for what goes
    along with a request, all others for states."""
    found = _ANSWER.fullmatch(method)
    what = found[1] if found else ""
    if what in ("contiguous", ""):
        return "kv" if what else "aux"
    what = what.removesuffix("state").strip("_")
    return f"state.{what}" if what else "state"
