"""`kvlint run`: a command, and every Python process that it starts, under the companion's eyes."""

import os
import secrets
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvlint.commands._stderr import complain
from kvlint.engine.errors import UsageError

if TYPE_CHECKING:
    from kvlint.runtime_checks.reading import Process

VIOLATED: Final = 70
NOT_ARMED: Final = 78
NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
# Those that end a process, and those that programs have for themselves.
FORWARDED: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Exit codes: the command's own; where that was 0, 70 for violations, or pages that "
    "changed from process to process. 78 where kvlint could not watch the command.",
)
@click.option(
    "--mode",
    default="log",
    envvar="KVLINT_RUNTIME",
    metavar="MODE",
    help="log, sample, assert, paranoid or off. Default: KVLINT_RUNTIME, else log.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    default="kvlint-report",
    envvar="KVLINT_REPORT",
    metavar="DIR",
    help="Folder for evidence, made where it is missing. Default: KVLINT_REPORT, else "
    "kvlint-report.",
)
@click.option(
    "--require",
    default="",
    metavar="HOOKS",
    help="End with 78 where a hook is missing: all, or names.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(mode: str, report: Path, require: str, command: Sequence[str]) -> int:
    """Run COMMAND and check every NIXL transfer of its Python processes."""
    from kvlint.runtime_checks.evidence import EvidenceError, prepare
    from kvlint.runtime_checks.requiring import check_names
    from kvlint.runtime_checks.settings import Mode, Settings, SettingsError, names_in

    required = names_in(require or os.environ.get("KVLINT_REQUIRE", ""))
    try:
        # What the processes would refuse, each for itself.
        Settings.from_environment(os.environ, mode=mode)
        off = Mode.named(mode) is Mode.OFF
        if not off:
            check_names(required, nixl=True)
            prepare(report.absolute())
    except EvidenceError as error:
        complain(f"not armed: {error}")
        return NOT_ARMED
    except SettingsError as error:
        raise UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        complain(f"not armed: {error.name} is not installed; kvlint-geometry[runtime] brings it")
        return NOT_ARMED
    run = secrets.token_hex(4)
    environ = _environment(mode, report.absolute(), require, run)
    try:
        code = _ran(command, environ)
    except OSError as error:
        complain(f"cannot run {command[0]}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    return code if off else _concluded(code, report, run, required)


def _environment(mode: str, report: Path, require: str, run: str) -> dict[str, str]:
    from kvlint.runtime_checks import bootstrap

    path = [str(Path(bootstrap.__path__[0]).absolute()), os.environ.get("PYTHONPATH", "")]
    told = {
        "KVLINT_RUNTIME": mode,
        "KVLINT_REPORT": str(report),
        "KVLINT_RUN": run,
        # An empty entry would stand for the working directory.
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }
    return {**os.environ, **told, **({"KVLINT_REQUIRE": require} if require else {})}


def _ran(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """The command's exit status as a shell has it. Raises OSError where it cannot be started.

    Signals are waited for, not handled: what the terminal sends has reached the command as well,
    and is not sent a second time.
    """
    awaited = {signal.SIGCHLD, *FORWARDED}
    # Whoever started this may ignore it, which lasts: then no child leaves a status.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        # Python ignores these two, a program expects not to.
        child = os.posix_spawnp(
            command[0],
            list(command),
            environ,
            setsigmask=before,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
        while True:
            received = signal.sigtimedwait(awaited, 1)
            if received is not None and received.si_signo != signal.SIGCHLD:
                if received.si_code <= 0:
                    os.kill(child, received.si_signo)
                continue
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _concluded(code: int, report: Path, run: str, required: Sequence[str]) -> int:
    """One line on what was seen; the exit status."""
    from kvlint.runtime_checks.launches.hooked import OF_TRITON
    from kvlint.runtime_checks.reading import armed_processes, read

    try:
        processes = armed_processes(report, run)
        story = read(report, run)
    except OSError as error:
        complain(f"cannot read {report}: {error.strerror}")
        return code or NOT_ARMED
    found = len(story.violations)
    changed = {change.owner for change in story.changes.found}
    watched = sum(process.hooked for process in processes)
    beside = [process for process in processes if not process.hooked]
    hooks = [{name for name in process.hooks if process.has(name)} for process in beside]
    pools = [
        process.pools > 0 or bool(has - OF_TRITON)
        for process, has in zip(beside, hooks, strict=True)
    ]
    others = sum(pools)
    launching = sum(bool(has) and not pool for has, pool in zip(hooks, pools, strict=True))
    lost = len(list(report.glob(f"armed-{run}-*.lost")))
    if lost and not found:
        complain(f"what was found could not be written to {report}, see above")
        return code or NOT_ARMED
    if not processes:
        complain(
            "not armed: no process of the command has loaded kvlint; `python -I`, `-E` and `-S` "
            "keep it out, and so does an environment without kvlint or wrapt"
        )
        return code or NOT_ARMED
    if found:
        counted = "1 violation" if found == 1 else f"{found} violations"
        complain(f"{counted} in {report}; kvlint report {report} shows them")
        return code or VIOLATED
    if changed:
        requests = "1 request" if len(changed) == 1 else f"{len(changed)} requests"
        complain(f"pages of {requests} changed; kvlint report {report} shows where")
        return code or VIOLATED
    absent = _absent(processes, required)
    if absent:
        complain(f"not armed: required and missing: {', '.join(absent)}")
        return code or NOT_ARMED
    if not watched and any(process.met for process in processes):
        complain("not armed: NIXL was imported and could not be hooked")
        return code or NOT_ARMED
    if not watched and not others and (required == ("all",) or not launching):
        complain("nothing was checked: no process of the command has imported NIXL")
        return code or (NOT_ARMED if required else 0)
    seen = (
        (watched, "used NIXL"),
        (others, "had pools alone"),
        (launching, "had Triton's kernels alone"),
    )
    where = " and ".join(
        f"{number} {'process' if number == 1 else 'processes'} that {had}"
        for number, had in seen
        if number
    )
    failed = sorted({check for process in processes for check in process.switched_off})
    without = f", without {', '.join(failed)} after internal errors" if failed else ""
    uncompared = sum(process.uncompared for process in processes)
    besides = f"; {uncompared} transfers were digested and not compared" if uncompared else ""
    complain(f"no violations in {where}{without}{besides}")
    return code


def _absent(processes: "Sequence[Process]", required: Sequence[str]) -> list[str]:
    """Of the hooks that are required: those that no process has; of all, those that one lacks."""
    if required == ("all",):
        lacking = {name for process in processes for name in process.hooks if not process.has(name)}
        return sorted(lacking)
    return [name for name in required if not any(process.has(name) for process in processes)]
