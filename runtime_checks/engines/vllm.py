"""vLLM's NIXL connector, 0.13.0 to 0.33.0: the regions that its worker has made of the kv caches,
right before it prepares a list of them, and those that its peers say they have.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType, ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from kvlint.runtime_checks.digests.requests import knows
from kvlint.runtime_checks.engines import ADAPTERS, engine_of
from kvlint.runtime_checks.engines.vllm_caches import caches_of
from kvlint.runtime_checks.engines.vllm_regions import (
    asked_of,
    claims_of,
    of_peer,
    of_worker,
    pool_of,
    states_of,
)
from kvlint.runtime_checks.hooking import Hooks
from kvlint.runtime_checks.pools.claims import Cache, Claim, Pool
from kvlint.runtime_checks.pools.own import PoolError
from kvlint.runtime_checks.pools.watching import Pools

ENGINE: Final = engine_of(__name__)
AWAITED: Final = ADAPTERS[__name__]
STAGES: Final[Mapping[str, str]] = MappingProxyType(dict.fromkeys(AWAITED, "NIXL connector"))
# The class that has the methods: of 0.33.0, and of the versions before it.
_OWNERS: Final = ("NixlBaseConnectorWorker", "NixlConnectorWorker")
_METHODS: Final = (
    "register_kv_caches",
    "register_local_xfer_handler",
    "_validate_remote_agent_handshake",
)
# Before models with state there were none of these.
_SINCE: Final = ("_build_mamba_local", "_build_mamba_remote", "_compute_desc_ids")
SURE: Final = tuple(f"{ENGINE}.{owner}.{name}" for owner in _OWNERS for name in _METHODS)

Method = Callable[..., Any]


def may_hook(method: str) -> bool:
    return method in (*_METHODS, *_SINCE)


def pools_of(given: Any) -> list[Pool]:
    """The regions of a worker that has registered its caches; not the parts of states, which it
    makes with its descriptors. Raises PoolError, one line."""
    caches = caches_of(given, getattr(given, "device_kv_caches", None) or {})
    if not caches:
        raise PoolError("the worker has registered no kv caches that kvlint can read")
    lists = of_worker(given, caches)
    return [pool_of(claims_of(lists, given, caches), caches, lists.uneven("the worker"))]


def install(module: ModuleType, hooks: Hooks, pools: Pools) -> None:
    """Put the checks around the worker that the module defines, if it does."""
    # "REQUEST:CONSUMERS": nixl/pull_worker.py.
    knows(ENGINE, rb"(.+):\d+")
    around = Around(pools)
    for name in _OWNERS:
        owner = vars(module).get(name)
        # In 0.33.0 a module under the old name gives out the new class.
        if not isinstance(owner, type) or owner.__module__ != module.__name__:
            continue
        for method in (*_METHODS, *_SINCE):
            make = getattr(around, method.strip("_"))
            hooks.put(f"{ENGINE}.{name}", owner, method, make, optional=method in _SINCE)


@dataclass(eq=False)
class Read:
    """What a worker has registered.

    names  of its regions
    sound  those that nothing is wrong with: what is said wrongly of one would be held against
           its neighbours
    """

    caches: Sequence[Cache]
    claims: Sequence[Claim]
    names: Sequence[str]
    sound: Sequence[Claim]
    states: Sequence[Claim] = ()


class Around:
    """Makes what stands around each method.

    A worker registers its caches and prepares the list of its regions in one call; in between
    the lists that it made are there, and nothing has been given to NIXL's lists yet.
    """

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._given: WeakKeyDictionary[Any, Mapping[str, Any]] = WeakKeyDictionary()
        self._read: WeakKeyDictionary[Any, Read] = WeakKeyDictionary()

    def register_kv_caches(self, original: Method) -> Method:
        def register_kv_caches(worker: Any, /, *args: Any, **kwargs: Any) -> Any:
            given = args[0] if args else kwargs.get("kv_caches")
            if isinstance(given, Mapping):
                self._given[worker] = given
            try:
                return original(worker, *args, **kwargs)
            finally:
                self._given.pop(worker, None)

        return register_kv_caches

    def register_local_xfer_handler(self, original: Method) -> Method:
        def register_local_xfer_handler(worker: Any, /, *args: Any, **kwargs: Any) -> Any:
            if worker in self._given and self._pools.policy.armed("pools"):
                with self._pools.policy.contained("pools"):
                    self._look(worker, self._given[worker])
            return original(worker, *args, **kwargs)

        return register_local_xfer_handler

    def build_mamba_local(self, original: Method) -> Method:
        def build_mamba_local(worker: Any, /, *args: Any, **kwargs: Any) -> Any:
            rows = original(worker, *args, **kwargs)
            if worker in self._given and self._pools.policy.armed("pools"):
                with self._pools.policy.contained("pools"):
                    self._look_at_states(worker, rows, original)
            return rows

        return build_mamba_local

    def validate_remote_agent_handshake(self, original: Method) -> Method:
        def validated(worker: Any, said: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = original(worker, said, *args, **kwargs)
            if self._pools.policy.armed("pools"):
                with self._pools.policy.contained("pools"):
                    self._peer(worker, said, None)
            return result

        return _named(validated, "nixl_agent_meta")

    def build_mamba_remote(self, original: Method) -> Method:
        def built(worker: Any, said: Any, /, *args: Any, **kwargs: Any) -> Any:
            rows = original(worker, said, *args, **kwargs)
            if self._pools.policy.armed("pools"):
                with self._pools.policy.contained("pools"):
                    self._peer(worker, said, rows)
            return rows

        return _named(built, "nixl_agent_meta")

    def compute_desc_ids(self, original: Method) -> Method:
        def computed(worker: Any, blocks: Any, /, *args: Any, **kwargs: Any) -> Any:
            indices = original(worker, blocks, *args, **kwargs)
            if worker in self._read and self._pools.policy.armed("pools"):
                self._pools.ask(indices, functools.partial(asked_of, worker, blocks, kwargs))
            return indices

        return _named(computed, "block_ids")

    def _look(self, worker: Any, given: Mapping[str, Any]) -> None:
        caches = caches_of(worker, given)
        lists = of_worker(worker, caches)
        claims = claims_of(lists, worker, caches)
        pool = pool_of(claims, caches, lists.uneven("the worker"))
        sound = self._pools.look(pool, "register_kv_caches", owner=worker)
        self._read[worker] = Read(caches, claims, lists.names, sound)
        self._declare(worker, sound)

    def _look_at_states(self, worker: Any, rows: Any, said_by: object) -> None:
        read = self._read[worker]
        states = read.states = states_of(rows, read.claims, worker, read.caches)
        pool = pool_of(states, read.caches)
        sound = self._pools.look(pool, "_build_mamba_local", owner=worker, said_by=said_by)
        self._declare(worker, [*read.sound, *sound])

    def _declare(self, worker: Any, claims: Sequence[Claim]) -> None:
        self._pools.declare(
            worker.nixl_wrapper.name,
            claims,
            call="register_kv_caches",
            engine=ENGINE,
            process=f"{worker.engine_id} rank {worker.tp_rank}",
        )

    def _peer(self, worker: Any, said: Any, rows: Any) -> None:
        name = self._pools.agent_of(said.agent_metadata)
        if name is None:
            return
        ours = self._read.get(worker)
        lists = of_peer(worker, said, ours.names if ours else ())
        uneven = lists.uneven(f"what {name} says")
        if uneven is not None:
            self._pools.tell(uneven, "add_remote_agent", worker.nixl_wrapper.name)
        claims = claims_of(lists, worker)
        if rows is not None:
            claims += _named_as(ours.states if ours else (), states_of(rows, claims, worker))
        self._pools.declare_peer(name, claims)


def _named_as(ours: Sequence[Claim], theirs: list[Claim]) -> list[Claim]:
    """A peer tells nothing of its states; they are as many as ours, in our order."""
    if len(ours) != len(theirs):
        return theirs
    return [
        replace(their, name=our.name, layer=our.layer, role=our.role)
        for their, our in zip(theirs, ours, strict=True)
    ]


def _named(method: Method, parameter: str) -> Method:
    """Takes its first argument under its name, too."""

    @functools.wraps(method)
    def taking(worker: Any, /, *args: Any, **kwargs: Any) -> Any:
        if args or parameter not in kwargs:
            return method(worker, *args, **kwargs)
        return method(worker, kwargs.pop(parameter), *args, **kwargs)

    return taking
