"""What is armed in one process: its policy, and its hooks in NIXL's classes."""

import importlib
import importlib.metadata
import platform
import sys
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Final

from kvlint.runtime_checks.engines import adapter_of
from kvlint.runtime_checks.hooking import INSTALLED, Hooks
from kvlint.runtime_checks.metrics import Metrics, connect
from kvlint.runtime_checks.policy import Policy, say
from kvlint.runtime_checks.settings import Settings

if TYPE_CHECKING:
    from kvlint.runtime_checks.nixl.interposition import NixlHooks
    from kvlint.runtime_checks.pools.watching import Pools

NOT_ARMED: Final = 78
WAITING: Final = "waiting for nixl"
NOT_INSTALLED: Final = "not installed"
DISTRIBUTIONS: Final = ("kvlint-geometry", "nixl", "nixl-cu12", "nixl-cu13", "nixl-rocm", "numpy")


class Companion:
    """
    hooks         in NIXL, by the agent class that they are in
    engine_hooks  by the engine's module that they are in
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.policy = Policy(settings)
        self.policy.on_fault = self.prove
        self.hooks: dict[type, NixlHooks] = {}
        self.engine_hooks: dict[str, Hooks] = {}
        self._pools: Pools | None = None
        self._metrics: Metrics | None = None
        self._versions = _versions()
        self._met = False
        self._ended = False

    def install(self, module: ModuleType) -> None:
        """Patches the module's classes, once, whatever names lead to them. Raises SystemExit(78)
        where a required hook is missing, and nothing else."""
        with self.policy.contained("interposition"):
            self._install(module)
        missing = self._missing() if self._met else ""
        if missing:
            say(f"not armed: required and missing: {missing}")
            raise SystemExit(NOT_ARMED)

    def _install(self, module: ModuleType) -> None:
        agent: type | None = getattr(module, "nixl_agent", None)
        if agent is None or agent in self.hooks:
            return
        self._met = True
        # It needs numpy, which is there where NIXL is.
        from kvlint.runtime_checks.nixl.interposition import install

        self.hooks[agent] = install(module, self.policy, self.settings, self.pools)
        self._versions = _versions()
        hooks = self.hook_status()
        installed = sum(status == INSTALLED for status in hooks.values())
        mode, pid = self.settings.mode, self.policy.pid
        say(f"armed: mode={mode} hooks={installed}/{len(hooks)} pid={pid}")
        self.prove()

    @property
    def pools(self) -> "Pools":
        """What is known of the engine's pools. It needs numpy, which is there where they are."""
        if self._pools is None:
            from kvlint.runtime_checks.pools.watching import Pools

            self._pools = Pools(self.policy, self.settings)
            self._pools.registered = self._registered_by
        return self._pools

    def _registered_by(self, agent: str) -> list[tuple[str, int, int, int]]:
        return [one for h in list(self.hooks.values()) for one in h.watch.registered_by(agent)]

    def install_engine(self, module: ModuleType) -> None:
        """Hooks in a module of an engine, by the adapter that awaits it."""
        with self.policy.contained("engines"):
            adapter = adapter_of(module.__name__)
            if adapter is None or module.__name__ in self.engine_hooks:
                return
            self.engine_hooks[module.__name__] = hooks = Hooks()
            importlib.import_module(adapter).install(module, hooks, self.pools)
            self.prove()

    def count_in(self, prometheus: ModuleType) -> None:
        """Counters in the registry of the module prometheus_client."""
        with self.policy.contained("metrics"):
            if self._metrics is None:
                self._metrics = connect(prometheus, self.policy)
                self.policy.on_count = self._metrics.publish

    def hook_status(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for hooks in self._all_hooks():
            found.update(hooks.status)
        return found

    def _all_hooks(self) -> list[Hooks]:
        return [*self.hooks.values(), *self.engine_hooks.values()]

    def _missing(self) -> str:
        required, hooks = self.settings.require, self.hook_status()
        if "all" in required:
            required = tuple(hooks) or ("all",)
        return ", ".join(name for name in required if hooks.get(name) != INSTALLED)

    def status(self) -> dict[str, object]:
        policy, hooks = self.policy, self.hook_status()
        report = self.settings.report
        installed = INSTALLED in hooks.values()
        return {
            "mode": self.settings.mode.value,
            "run": self.settings.run,
            "pid": policy.pid,
            "report": None if report is None else str(report),
            "status": INSTALLED if installed else NOT_INSTALLED if self._met else WAITING,
            "hooks": hooks,
            "violations": policy.found.total(),
            "transfers": dict(policy.transfers),
            "tool_errors": dict(policy.faults),
            "switched_off": dict(policy.disarmed),
        }

    def prove(self) -> None:
        """Writes the file that says what is armed, where there are files."""
        with self.policy.contained("evidence"):
            evidence = self.policy.evidence
            if evidence is None:
                return
            if self.policy.armed("evidence"):
                evidence.replace_state({**self.status(), "versions": self._versions})
            else:
                with suppress(OSError):
                    evidence.give_up()

    def at_exit(self) -> None:
        """Once in a process, however many ways its end is told."""
        if self._ended:
            return
        self._ended = True
        for hooks in self._all_hooks():
            with self.policy.contained("interposition"):
                hooks.at_exit()
        self.policy.dump()
        self.prove()
        if self._metrics is not None:
            with self.policy.contained("metrics"):
                self._metrics.publish()

    def start_afresh(self) -> None:
        """In a forked child: files, ring, counts and locks of its own; the hooks stay."""
        self._ended = False
        self.policy.start_afresh()
        self.prove()

    def undo(self) -> None:
        for hooks in self._all_hooks():
            with self.policy.contained("interposition"):
                hooks.uninstall()
        self.hooks.clear()
        self.engine_hooks.clear()
        if self._pools is not None:
            self._pools.forget()
        if self._metrics is not None:
            with self.policy.contained("metrics"):
                self._metrics.undo()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        if name.replace("-", "_") in sys.modules or name == "kvlint-geometry":
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                found[name] = "unknown"
    return found
