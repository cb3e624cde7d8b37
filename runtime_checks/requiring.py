"""Hooks without which a process must not go on: KVLINT_REQUIRE.

Names are those of `armed-*.json`: "nixl_agent.transfer", "sglang.MHATokenToKVPool....". Which ones
the classes of NIXL and of Triton have is known beforehand; an engine's classes differ by version,
so of them is known which methods an adapter hooks.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

from kvlint.runtime_checks.engines import ADAPTERS, engine_of
from kvlint.runtime_checks.hooking import INSTALLED
from kvlint.runtime_checks.launches.hooked import OF_TRITON
from kvlint.runtime_checks.nixl.hooked import HOOKED
from kvlint.runtime_checks.settings import SettingsError, one_line

ALL: Final = "all"
OF_NIXL: Final = frozenset(f"{owner}.{name}" for owner, names in HOOKED.items() for name in names)
BEFOREHAND: Final = OF_NIXL | OF_TRITON


def check_names(required: Iterable[str], *, nixl: bool) -> None:
    """Imports adapters, and nothing of an engine.

    nixl  whether NIXL is hooked at all

    Raises SettingsError, one line, for a name that no hook will ever have.
    """
    names = [name for name in required if name != ALL]
    adapters = [import_module(adapter) for adapter in ADAPTERS] if names else []
    for name in names:
        if name in BEFOREHAND and not nixl:
            raise SettingsError(f"{name} cannot be required where only KVLINT_CAPTURE is set")
        if name not in BEFOREHAND and not any(_may_hook(adapter, name) for adapter in adapters):
            sure = {hook for adapter in adapters for hook in adapter.SURE}
            close = difflib.get_close_matches(name, sorted(BEFOREHAND | sure), n=2, cutoff=0.8)
            hint = f"did you mean {' or '.join(close)}?" if close else "armed-*.json has the names"
            raise SettingsError(f"no hook has the name {one_line(name)}; {hint}")


def _may_hook(adapter: ModuleType, name: str) -> bool:
    engine, _, rest = name.partition(".")
    owner, _, method = rest.rpartition(".")
    its_own = engine == engine_of(adapter.__name__)
    return bool(its_own and owner and adapter.may_hook(method))


def missing(
    required: Collection[str], status: Mapping[str, str], met: Collection[ModuleType]
) -> list[str]:
    """What should be hooked in the modules met so far, and is not.

    status  of all hooks put so far
    met     modules that hooks were put in
    """
    if ALL in required:
        return [name for name, state in status.items() if state != INSTALLED]
    absent = [name for name in required if status.get(name) != INSTALLED]
    return [name for name in absent if name in status or any(_holds(m, name) for m in met)]


def never_met(required: Collection[str], status: Mapping[str, str]) -> list[str]:
    """What is required, and nothing that could have it was imported."""
    if ALL in required:
        # Triton is imported by many a program that moves nothing.
        return [] if set(status) - OF_TRITON else [ALL]
    return [name for name in required if name not in status]


def _holds(module: ModuleType, name: str) -> bool:
    """Whether the class, or function, of a hook's name is one of the module."""
    for part in name.split("."):
        thing = vars(module).get(part)
        if getattr(thing, "__module__", None) == module.__name__:
            return True
    return False
