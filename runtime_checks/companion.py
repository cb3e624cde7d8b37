"""What is armed in one process: its policy, and its hooks in the classes of NIXL and of engines."""

import importlib
import importlib.metadata
import os
import platform
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Final

from kvlint.runtime_checks.engines import ADAPTERS, engine_of
from kvlint.runtime_checks.hooking import INSTALLED, Hooks
from kvlint.runtime_checks.metrics import Metrics, connect
from kvlint.runtime_checks.policy import Policy, say
from kvlint.runtime_checks.requiring import OF_NIXL, missing, never_met
from kvlint.runtime_checks.settings import Settings

if TYPE_CHECKING:
    from kvlint.geometry import Geometry
    from kvlint.runtime_checks.capture import Capture
    from kvlint.runtime_checks.digests.service import Digesting
    from kvlint.runtime_checks.launches.watch import Watch
    from kvlint.runtime_checks.nixl.interposition import NixlHooks
    from kvlint.runtime_checks.pools.watching import Pools
    from kvlint.runtime_checks.stages.noting import Stages

NOT_ARMED: Final = 78
WAITING: Final = "waiting for nixl"
NOT_INSTALLED: Final = "not installed"
CAPTURING: Final = "capturing only"
FAILED: Final = "missing: an internal error of kvlint"
NIXLS: Final = ("nixl", "nixl-cu12", "nixl-cu13", "nixl-rocm")
DISTRIBUTIONS: Final = ("kvlint-geometry", *NIXLS, "numpy", "triton")


class Companion:
    """
    hooks         in NIXL, by the agent class that they are in
    engine_hooks  by the engine's module that they are in
    launch_hooks  by Triton's
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.policy = Policy(settings)
        self.policy.on_fault = self.prove
        self.hooks: dict[type, NixlHooks] = {}
        self.engine_hooks: dict[str, Hooks] = {}
        self.launch_hooks: dict[str, Hooks] = {}
        self._launches: Watch | None = None
        self._pools: Pools | None = None
        self._digests: Digesting | None = None
        self._stages: Stages | None = None
        self._metrics: Metrics | None = None
        self._versions = _versions()
        # Modules that hooks were to be put in, and what failed there by kvlint's own fault.
        self._met: list[ModuleType] = []
        self._failed: dict[str, str] = {}
        self._refused = False
        self._ended = False

    def install(self, module: ModuleType) -> None:
        """Patches the module's classes, once, whatever names lead to them. Ends the process where
        a required hook is missing, and raises nothing else."""
        agent = getattr(module, "nixl_agent", None)
        if agent is None or agent in self.hooks or not self.settings.checks:
            return
        self._met.append(module)
        self._failed.update(dict.fromkeys(OF_NIXL, FAILED))
        with self.policy.contained("interposition"):
            # It needs numpy, which is there where NIXL is.
            from kvlint.runtime_checks.nixl.interposition import install

            self.hooks[agent] = install(module, self.policy, self.pools, self.digests)
            for name in OF_NIXL:
                del self._failed[name]
            say(
                f"armed: mode={self.settings.mode} {_counted(self.hook_status(nixl=True))} "
                f"pid={self.policy.pid}"
            )
        self._versions = _versions()
        self.prove()
        self._end_where_missing()

    def install_engine(self, module: ModuleType, adapter: str) -> None:
        """Hooks in a module of an engine, by the adapter that awaits it; else as `install`."""
        name = module.__name__
        if name in self.engine_hooks:
            return
        self._met.append(module)
        self.engine_hooks[name] = hooks = Hooks()
        self._failed[name] = FAILED
        with self.policy.contained("engines"):
            loaded = importlib.import_module(adapter)
            loaded.install(module, hooks, self.pools)
            del self._failed[name]
            self._versions = _versions()
            self._tell_engine(engine_of(adapter), name, loaded.STAGES.get(name, ""))
        self.prove()
        self._end_where_missing()

    def install_launches(self, module: ModuleType) -> None:
        """Hooks in a module of Triton's; else as `install`."""
        name = module.__name__
        if name in self.launch_hooks or not (self.settings.checks and self.settings.launches):
            return
        self._met.append(module)
        self.launch_hooks[name] = hooks = Hooks()
        self._failed[name] = FAILED
        with self.policy.contained("launches"):
            # It needs numpy, which is there where tensors are.
            from kvlint.runtime_checks.launches.hooks import install
            from kvlint.runtime_checks.launches.watch import Watch

            if self._launches is None:
                self._launches = Watch(self.policy, self.pools)
                self.policy.launched = self._launches.callers
            install(module, hooks, self._launches, self.policy)
            del self._failed[name]
            self._versions = _versions()
        self.prove()
        self._end_where_missing()

    def _tell_engine(self, engine: str, module: str, stage: str) -> None:
        """One line a stage, with all hooks in the engine so far, and one for what is missing."""
        known = self._known(engine)
        absent = [n for n, s in self.engine_hooks[module].status.items() if s != INSTALLED]
        if absent:
            say(f"armed in part: {known} {module}: missing {some(absent)}")
        elif stage and self.engine_hooks[module].status:
            of_it = [h.status for m, h in self.engine_hooks.items() if m.startswith(f"{engine}.")]
            status = {name: state for one in of_it for name, state in one.items()}
            how = f"armed: mode={self.settings.mode}" if self.settings.checks else "capturing:"
            say(f"{how} {known} {stage} {_counted(status)} pid={self.policy.pid}")

    @property
    def pools(self) -> "Pools":
        """What is known of the engine's pools. It needs numpy, which is there where they are."""
        if self._pools is None:
            from kvlint.runtime_checks.pools.watching import Pools

            self._pools = Pools(self.policy, self.settings)
            self._pools.registered = self._registered_by
            self._pools.agent_of = self._agent_of
            if self.settings.mode.reads:
                self._pools.stages = lambda: self.stages
            captures, evidence = self._captures()
            if captures:
                self._pools.on_declared = lambda *said: _keep(captures, *self._versioned(*said))
            if evidence is not None:
                self._pools.on_folded = evidence.keep
        return self._pools

    def _captures(self) -> "tuple[Sequence[Capture], Capture | None]":
        """Where geometry goes; and which of them is the folder for evidence."""
        from kvlint.runtime_checks.capture import Capture
        from kvlint.runtime_checks.evidence import GEOMETRY

        folder, report, run = self.settings.capture, self.settings.report, self.settings.run
        found = [] if folder is None else [Capture(folder, run)]
        if report is None:
            return found, None
        evidence = Capture(report, run, relative=True, most=GEOMETRY)
        # In one folder there would be two files of one name: whoever wants addresses gets them.
        return [*found, *([] if folder == report else [evidence])], evidence

    @property
    def digests(self) -> "Digesting":
        """What is digested of this process. It needs numpy, too."""
        if self._digests is None:
            from kvlint.runtime_checks.digests.service import Digesting

            self._digests = Digesting(self.settings, self.policy)
        return self._digests

    @property
    def stages(self) -> "Stages":
        """The ledger of stages. It needs numpy, which is there where pools are."""
        if self._stages is None:
            from kvlint.runtime_checks.stages.noting import Stages

            self._stages = Stages(self.policy, self.digests)
            self.policy.stages = self._stages.entries
            self.digests.stages = self._stages
        self._stages.transports = [hooks.watch for hooks in list(self.hooks.values())]
        return self._stages

    def _versioned(self, agent: str, geometry: "Geometry") -> "tuple[str, Geometry]":
        """An adapter knows its engine's name, not its version."""
        if geometry.engine not in self._versions:
            return agent, geometry
        return agent, replace(geometry, engine=self._known(geometry.engine))

    def _known(self, engine: str) -> str:
        return f"{engine} {self._versions.get(engine, 'unknown')}"

    def _registered_by(self, agent: str) -> list[tuple[str, int, int, int]]:
        return [one for h in list(self.hooks.values()) for one in h.watch.registered_by(agent)]

    def _agent_of(self, metadata: bytes) -> str | None:
        names = (hooks.watch.described_by(metadata) for hooks in list(self.hooks.values()))
        return next((name for name in names if name is not None), None)

    def _end_where_missing(self) -> None:
        """Raises SystemExit(78), which loaders of plug-ins and hooks of imports let through."""
        absent = missing(self.settings.require, self.hook_status(), self._met)
        if not absent:
            return
        self._refused = True
        say(f"not armed: required and missing: {some(absent)}")
        if threading.current_thread() is not threading.main_thread():
            # There it would end a thread, and the server would go on.
            self.at_exit()
            os._exit(NOT_ARMED)
        raise SystemExit(NOT_ARMED)

    def count_in(self, prometheus: ModuleType) -> None:
        """Counters in the registry of the module prometheus_client."""
        with self.policy.contained("metrics"):
            if self._metrics is None:
                self._metrics = connect(prometheus, self.policy)
                self.policy.on_count = self._metrics.publish

    def hook_status(self, *, nixl: bool = False) -> dict[str, str]:
        """By name, of NIXL's only or of all; where kvlint has failed in an engine's module, by
        the module's name."""
        found = dict(self._failed)
        for hooks in self._all_hooks():
            found.update(hooks.status)
        return {name: found[name] for name in found if name in OF_NIXL} if nixl else found

    def _all_hooks(self) -> list[Hooks]:
        return [*self.hooks.values(), *self.engine_hooks.values(), *self.launch_hooks.values()]

    def status(self) -> dict[str, object]:
        policy, hooks = self.policy, self.hook_status()
        report, capture = self.settings.report, self.settings.capture
        return {
            "mode": self.settings.mode.value,
            "run": self.settings.run,
            "pid": policy.pid,
            "report": None if report is None else str(report),
            "capture": None if capture is None else str(capture),
            "status": self._state(),
            "hooks": hooks,
            "violations": policy.found.total(),
            "transfers": dict(policy.transfers),
            "pools": 0 if self._pools is None else self._pools.looked,
            "digests": {} if self._digests is None else dict(self._digests.counts),
            "launches": {} if self._launches is None else dict(self._launches.counts),
            "exchange": {
                name: count
                for hooks in list(self.hooks.values())
                for name, count in hooks.watch.exchanged().items()
            },
            "tool_errors": dict(policy.faults),
            "switched_off": dict(policy.disarmed),
        }

    def _state(self) -> str:
        """In one word, of NIXL."""
        if not self.settings.checks:
            return CAPTURING
        states = self.hook_status(nixl=True).values()
        return INSTALLED if INSTALLED in states else NOT_INSTALLED if states else WAITING

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
        unmet = never_met(self.settings.require, self.hook_status())
        if unmet and not self._refused and not _is_of_multiprocessing():
            say(f"required, and never imported: {some(unmet)} pid={self.policy.pid}")
        for hooks in self._all_hooks():
            with self.policy.contained("interposition"):
                hooks.at_exit()
        if self._stages is not None:
            self.digests.drain(wait=True)
        if self._launches is not None:
            with self.policy.contained("launches"):
                self._launches.at_exit()
        self.policy.conclude()
        self.policy.dump()
        self.prove()
        if self._metrics is not None:
            with self.policy.contained("metrics"):
                self._metrics.publish()

    def start_afresh(self) -> None:
        """In a forked child: files, ring, counts and locks of its own; the hooks stay."""
        self._ended = False
        self.policy.start_afresh()
        if self._digests is not None:
            self._digests.start_afresh()
        if self._stages is not None:
            self._stages.start_afresh()
        if self._launches is not None:
            self._launches.start_afresh()
        self.prove()

    def undo(self) -> None:
        for hooks in self._all_hooks():
            with self.policy.contained("interposition"):
                hooks.uninstall()
        self.hooks.clear()
        self.engine_hooks.clear()
        self.launch_hooks.clear()
        self._launches = None
        if self._pools is not None:
            self._pools.forget()
        if self._metrics is not None:
            with self.policy.contained("metrics"):
                self._metrics.undo()


def _keep(captures: "Sequence[Capture]", agent: str, geometry: "Geometry") -> None:
    for capture in captures:
        capture.keep(agent, geometry)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in (*DISTRIBUTIONS, *map(engine_of, ADAPTERS)):
        if name.replace("-", "_") in sys.modules or name == "kvlint-geometry":
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                found[name] = "unknown"
    return found


def _is_of_multiprocessing() -> bool:
    """Whether this is a process that multiprocessing has for itself, and none that it was asked
    for; those of its server for forks are begun alike."""
    begun, process = " ".join(sys.orig_argv), sys.modules.get("multiprocessing.process")
    parts = ("resource_tracker", "forkserver")
    its_own = any(f"from multiprocessing.{part} import main" in begun for part in parts)
    return its_own and (process is None or process.parent_process() is None)


def _counted(status: Mapping[str, str]) -> str:
    return f"hooks={sum(state == INSTALLED for state in status.values())}/{len(status)}"


def some(names: Sequence[str]) -> str:
    """Of many, the first three."""
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
