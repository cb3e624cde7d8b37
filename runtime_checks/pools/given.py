"""What a program gives as its pools, read by whichever adapter knows it."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from kvlint.runtime_checks.engines import ADAPTERS, engine_of
from kvlint.runtime_checks.pools.claims import Pool
from kvlint.runtime_checks.pools.own import pool_of


def pools_of(given: Any) -> Sequence[Pool]:
    """All pools of an engine's pool object, of tensors, or of a list of such.

    Raises PoolError, one line, for what is none, and what a pool raises when it is asked.
    """
    if isinstance(given, list | tuple) and any(map(_answers, given)):
        return [pool for one in given for pool in pools_of(one)]
    adapter = _adapter_for(given)
    if adapter is not None:
        found: Sequence[Pool] = adapter.pools_of(given)
        if found:
            return found
    return [pool_of(given)]


def engine_for(given: Any) -> str | None:
    """The engine that a pool is one of."""
    if isinstance(given, list | tuple) and given:
        return engine_for(given[0])
    return next((engine for engine in _packages(given) if _adapter_of(engine)), None)


def _answers(given: object) -> bool:
    """Whether it is a pool by itself, and no part of one."""
    return hasattr(given, "get_contiguous_buf_infos") or _adapter_for(given) is not None


def _adapter_for(given: object) -> ModuleType | None:
    engine = engine_for(given) if not isinstance(given, list | tuple) else None
    module = import_module(_adapter_of(engine)) if engine else None
    return module if hasattr(module, "pools_of") else None


def _adapter_of(engine: str) -> str:
    return next((name for name in ADAPTERS if engine_of(name) == engine), "")


def _packages(given: object) -> Iterator[str]:
    """Of its class and of those that this one is derived from; a program may have its own."""
    for cls in type(given).__mro__:
        yield cls.__module__.partition(".")[0]
