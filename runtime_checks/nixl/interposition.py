"""NIXL's agent and handle classes with the checks around their methods.

Arguments go through as they come; what a call raises or returns is what NIXL raises or returns,
unless a violation is raised instead.
"""

import os
from types import ModuleType
from weakref import WeakSet

from kvlint.runtime_checks.digests.service import Digesting
from kvlint.runtime_checks.hooking import Hooks
from kvlint.runtime_checks.nixl.around import Around
from kvlint.runtime_checks.nixl.hooked import HOOKED
from kvlint.runtime_checks.nixl.watch import Watch
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.pools.watching import Pools

_WATCHES: "WeakSet[Watch]" = WeakSet()


def install(module: ModuleType, policy: Policy, pools: Pools, digests: Digesting) -> "NixlHooks":
    """Put the checks around the classes of a `nixl._api`. A method that this version of NIXL
    lacks is told in the status, and nothing else is less for it."""
    watch = Watch(module.nixlBind, policy, pools, digests)
    _WATCHES.add(watch)
    hooks = NixlHooks(watch)
    around = Around(watch, policy, module)
    for class_name, names in HOOKED.items():
        owner = getattr(module, class_name, None)
        for name in names:
            hooks.put(class_name, owner, name, getattr(around, f"{class_name}_{name.strip('_')}"))
    return hooks


def _forked() -> None:
    for watch in list(_WATCHES):
        watch.start_afresh()


os.register_at_fork(after_in_child=_forked)


class NixlHooks(Hooks):
    """The hooks of one module of NIXL, and all that was seen through them."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def uninstall(self) -> None:
        super().uninstall()
        self.watch.close()

    def at_exit(self) -> None:
        self.watch.flights.at_exit()
        self.watch.at_exit()
