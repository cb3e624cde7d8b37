"""The doors to the one companion of a process, and what ties it to the process: imports, forks,
exit and a signal."""

import atexit
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

from kvlint.runtime_checks.companion import NOT_ARMED, Companion
from kvlint.runtime_checks.engines import ADAPTERS, adapter_of
from kvlint.runtime_checks.evidence import EvidenceError, prepare
from kvlint.runtime_checks.launches.hooked import MODULES as LAUNCHES
from kvlint.runtime_checks.policy import say
from kvlint.runtime_checks.requiring import check_names
from kvlint.runtime_checks.settings import REQUIRE, Mode, Settings, SettingsError

# Where NIXL's classes are, and `nixl`, whose `_api` is that of the back end it has chosen.
MODULES: Final = ("nixl_cu13._api", "nixl_cu12._api", "nixl_rocm._api", "nixl._api", "nixl")

# Folders of the settings, and what goes there.
FOLDERS: Final = (("report", "evidence"), ("capture", "geometry"))

_armed: Companion | None = None
_watched: set[str] = set()
_said: set[str] = set()
_undo_signal: Callable[[], None] | None = None
# Two threads that arm at once arm once. Arming may import, and what is imported may arm.
_lock = threading.RLock()


def arm(mode: str, report: str | Path | None, require: str | Iterable[str]) -> None:
    """See `kvlint.runtime_checks.arm`."""
    settings = Settings.from_environment(os.environ, mode=mode, report=report, require=require)
    with _lock:
        if _armed is not None:
            if settings != _armed.settings:
                mode = _armed.settings.mode
                raise SettingsError(
                    f"armed already with other settings (mode {mode}); disarm() first"
                )
        elif settings.arms:
            check_names(settings.require, nixl=settings.checks)
            for folder, what in FOLDERS:
                prepare(getattr(settings, folder), what)
            _start(settings)


def arm_from_environment() -> None:
    """See `kvlint.runtime_checks.arm_from_environment`."""
    try:
        settings = Settings.from_environment(os.environ)
        with _lock:
            if _armed is not None or not settings.arms:
                return
            check_names(settings.require, nixl=settings.checks)
            for folder, what in FOLDERS:
                try:
                    prepare(getattr(settings, folder), what)
                except EvidenceError as error:
                    _say_once(f"{error}; going on without files")
                    kept = {"report": settings.report, "capture": settings.capture, folder: None}
                    settings = replace(settings, report=kept["report"], capture=kept["capture"])
            if settings.arms:
                _start(settings)
    except SettingsError as error:
        _say_once(f"not armed: {error}")
        if os.environ.get(REQUIRE):
            raise SystemExit(NOT_ARMED) from None


def _say_once(line: str) -> None:
    """Engines call their plug-ins again and again."""
    if line not in _said:
        _said.add(line)
        say(line)


def disarm() -> None:
    """See `kvlint.runtime_checks.disarm`."""
    global _armed, _undo_signal
    with _lock:
        companion, _armed = _armed, None
        if companion is None:
            return
        companion.at_exit()
        companion.undo()
        atexit.unregister(companion.at_exit)
        if _undo_signal is not None:
            _undo_signal()
            _undo_signal = None


def guard_pool(pool: object, name: str, agent: str | None, **how: Any) -> None:
    """See `kvlint.runtime_checks.guard_pool`."""
    companion = _armed
    if companion is None:
        return
    from kvlint.runtime_checks.pools.own import pool_of

    view = pool_of(pool, name=name, **how)
    # What is said wrongly of one region would be held against its neighbours.
    sound = companion.pools.look(view, "guard_pool", owner=pool)
    if agent is None:
        companion.pools.declare_own(name, sound)
    else:
        companion.pools.declare(agent, sound, call="guard_pool")
    if companion.settings.mode.reads:
        companion.stages.declared(name, agent)


def stage(name: str, **what: Any) -> None:
    """See `kvlint.runtime_checks.stage`."""
    companion = _armed
    if companion is None or not companion.settings.mode.reads:
        return
    try:
        companion.stages.stage(name, **what)
    except ValueError as error:
        # A server that is only sampled does not end for it.
        if companion.settings.mode.raises:
            raise
        _say_once(f"stage {name}: {error}")


def dump() -> None:
    if _armed is not None:
        _armed.policy.dump()


def status() -> Mapping[str, object]:
    return {"mode": Mode.OFF.value} if _armed is None else _armed.status()


def _start(settings: Settings) -> None:
    """Raises SettingsError where wrapt is missing."""
    global _armed, _undo_signal
    try:
        from wrapt import register_post_import_hook
    except ImportError:
        raise SettingsError("wrapt is not installed; kvlint-geometry[runtime] brings it") from None
    _armed = companion = Companion(settings)
    companion.prove()
    atexit.register(companion.at_exit)
    if settings.dump_signal is not None:
        _undo_signal = _on_signal(settings.dump_signal)
    for name in (*_awaited(settings), "multiprocessing.util", "prometheus_client"):
        if sys.modules.get(name) is not None:
            # Another thread may be in the middle of it; importing it again waits for the end.
            _imported(importlib.import_module(name))
        elif name not in _watched:
            # wrapt cannot take a hook back: one for all times, which asks what is armed.
            _watched.add(name)
            register_post_import_hook(_imported, name)


def _awaited(settings: Settings) -> list[str]:
    engines = [name for awaited in ADAPTERS.values() for name in awaited]
    return [*MODULES, *LAUNCHES, *engines] if settings.checks else engines


def _imported(module: ModuleType) -> None:
    """An exception here would fail the import of the engine; only SystemExit(78) is meant to."""
    companion = _armed
    if companion is None:
        return
    match module.__name__:
        case "multiprocessing.util":
            with companion.policy.contained("exit"):
                module.register_after_fork(companion, _ends_by_multiprocessing)
        case "prometheus_client":
            companion.count_in(module)
        case "nixl":
            # `nixl._api` is the alias of a back end that may have no name here.
            companion.install(sys.modules.get("nixl._api", module))
        case name if name in MODULES:
            companion.install(module)
        case name if name in LAUNCHES:
            companion.install_launches(module)
        case name:
            adapter = adapter_of(name)
            if adapter is not None:
                companion.install_engine(module, adapter)


def _ends_by_multiprocessing(companion: Companion) -> None:
    """Children of multiprocessing end without atexit, but run its finalizers."""
    with companion.policy.contained("exit"):
        finalize = sys.modules["multiprocessing.util"].Finalize
        finalize(None, companion.at_exit, exitpriority=-100)


def _forked() -> None:
    global _lock
    _lock = threading.RLock()
    if _armed is not None:
        _armed.start_afresh()


os.register_at_fork(after_in_child=_forked)


def _on_signal(number: signal.Signals) -> Callable[[], None] | None:
    """Dumps the ring on the signal, then goes on with what handled it before. Gives back what
    undoes it."""

    def handle(received: int, frame: FrameType | None) -> None:
        dump()
        if callable(before):
            before(received, frame)

    try:
        before = signal.signal(number, handle)
    except ValueError:
        say(f"{number.name} does not dump: signals can only be handled from the main thread")
        return None

    def undo() -> None:
        if signal.getsignal(number) is handle:
            signal.signal(number, before)

    return undo
