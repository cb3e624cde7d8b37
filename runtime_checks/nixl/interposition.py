"""NIXL's agent and handle classes with the checks around their methods.

The methods of the classes themselves are replaced, so it does not matter under which name, in
which subclass or since when an engine has them. Arguments go through as they come; what a call
raises or returns is what NIXL raises or returns, unless a violation is raised instead.
"""

import functools
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final
from weakref import WeakSet

from kvlint.runtime_checks.nixl.around import Around, Method
from kvlint.runtime_checks.nixl.watch import Watch
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.settings import Settings

INSTALLED: Final = "installed"
_WATCHES: "WeakSet[Watch]" = WeakSet()

_HOOKED: Final[Mapping[str, tuple[str, ...]]] = {
    "nixl_agent": (
        "__init__",
        "register_memory",
        "deregister_memory",
        "get_reg_descs",
        "get_xfer_descs",
        "prep_xfer_dlist",
        "make_prepped_xfer",
        "initialize_xfer",
        "transfer",
        "check_xfer_state",
        "get_xfer_telemetry",
        "query_xfer_backend",
        "estimate_xfer_cost",
        "get_new_notifs",
        "update_notifs",
        "check_remote_xfer_done",
        "get_agent_metadata",
        "get_partial_agent_metadata",
        "add_remote_agent",
        "remove_remote_agent",
    ),
    "nixl_xfer_handle": ("release", "__del__"),
    "nixl_prepped_dlist_handle": ("__del__",),
}


def install(module: ModuleType, policy: Policy, settings: Settings) -> "Hooks":
    """Put the checks around the classes of a `nixl._api`. A method that this version of NIXL
    lacks is told in the status, and nothing else is less for it."""
    watch = Watch(module.nixlBind, policy, settings)
    _WATCHES.add(watch)
    hooks = Hooks(watch, policy)
    around = Around(watch, policy, module)
    for class_name, names in _HOOKED.items():
        owner = getattr(module, class_name, None)
        for name in names:
            hooks.put(class_name, owner, name, getattr(around, f"{class_name}_{name.strip('_')}"))
    return hooks


def _forked() -> None:
    for watch in list(_WATCHES):
        watch.flights.start_afresh()


os.register_at_fork(after_in_child=_forked)


class Hooks:
    """What was replaced, and by what. `status` is by "class.method"."""

    def __init__(self, watch: Watch, policy: Policy) -> None:
        self._watch = watch
        self._policy = policy
        self._status: dict[str, str] = {}
        self._put: list[tuple[type, str, Method, Method]] = []
        self._live = True

    @property
    def status(self) -> Mapping[str, str]:
        return dict(self._status)

    def put(self, class_name: str, owner: type | None, name: str, make: Method) -> None:
        original = vars(owner).get(name) if owner is not None else None
        if owner is None or original is None:
            self._status[f"{class_name}.{name}"] = "missing: this version of NIXL has none"
            return
        checked = make(original)
        checked.__qualname__ = original.__qualname__

        @functools.wraps(original)
        def method(*args: Any, **kwargs: Any) -> Any:
            # Another tool may have kept this method beyond `uninstall`; then it is NIXL's again.
            return (checked if self._live else original)(*args, **kwargs)

        setattr(owner, name, method)
        self._put.append((owner, name, original, method))
        self._status[f"{class_name}.{name}"] = INSTALLED

    def uninstall(self) -> None:
        """The methods are NIXL's own again, also where somebody has wrapped them once more."""
        self._live = False
        for owner, name, original, method in self._put:
            if vars(owner).get(name) is method:
                setattr(owner, name, original)
        self._put.clear()

    def at_exit(self) -> None:
        self._watch.flights.at_exit()
