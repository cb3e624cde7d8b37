"""`kvlint geometry capture`: how a pool lies in memory, from the engine's own code on this
machine."""

import difflib
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvlint.commands._outputs import put
from kvlint.commands._stderr import complain, complain_of
from kvlint.engine.errors import UsageError, one_line

if TYPE_CHECKING:
    from kvlint.geometry import Geometry


@click.command(
    short_help="Write the geometry of a pool that code of yours builds.",
    epilog="Exit codes: 0 nothing wrong, 1 what the pool says of its regions is wrong, 2 wrong "
    "usage, or code that gives no pool.",
)
@click.argument("target", metavar="MODULE:CALL")
@click.option("--engine", metavar="NAME", help="Name and version to write down.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the geometry goes; standard output without it, and with -.",
)
def command(target: str, engine: str | None, output: Path | None) -> int:
    """Call CALL of MODULE and write the geometry of the pool that it gives back, as JSON.

    Unlike `kvlint check`, this runs the code it is given: MODULE is imported, from the current
    folder or the environment, and CALL is called without arguments. It gives back an object with
    get_contiguous_buf_infos(), tensors in lists or mappings, a kvlint.geometry.Geometry, or a
    list of such objects. Addresses are those of this process.
    """
    with _output_to_stderr():
        found, wrong = _read(_called(target), engine)
    text = found.to_json()
    for line in wrong:
        complain(line)
    put(output or Path("-"), [text])
    return 1 if wrong else 0


def _read(given: Any, engine: str | None) -> "tuple[Geometry, list[str]]":
    """The geometry, and a line for all that is wrong."""
    from kvlint.geometry import Geometry, GeometryError

    if isinstance(given, Geometry):
        return given, []
    try:
        from kvlint.runtime_checks.pools.checking import faults
        from kvlint.runtime_checks.pools.claims import as_geometry
        from kvlint.runtime_checks.pools.given import engine_for, pools_of
        from kvlint.runtime_checks.pools.own import PoolError
    except ModuleNotFoundError as error:
        needed = f"{error.name} is not installed; kvlint-geometry[runtime] brings it"
        raise UsageError(needed) from None
    try:
        pools = [pool.settled() for pool in pools_of(given)]
    except PoolError as error:
        raise UsageError(str(error)) from None
    except Exception as error:
        raise UsageError(f"the pool could not be read: {one_line(error)}") from None
    claims = [claim for pool in pools for claim in pool.claims]
    wrong = [
        f"{breach.check.name}: {breach.message}" for pool in pools for _, breach in faults(pool)
    ]
    try:
        found = as_geometry(claims, engine=engine or _versioned(engine_for(given)))
    except GeometryError as error:
        raise UsageError(str(error)) from None
    if len(found.regions) < len(claims):
        wrong.append(f"{len(claims) - len(found.regions)} regions cannot be, and are left out")
    return found, wrong


def _called(target: str) -> Any:
    """What MODULE:CALL gives back. Raises UsageError, one line."""
    module_name, _, name = target.partition(":")
    if not (module_name and name):
        raise UsageError(f"{target} is not MODULE:CALL, as in my_pools:build")
    make = _callable(target, _imported(module_name), name)
    with _told(target):
        return make()


def _imported(name: str) -> object:
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 (as python -m has it)
    with _told(f"import {name}"):
        return importlib.import_module(name)


def _callable(target: str, module: object, name: str) -> Callable[[], Any]:
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            close = difflib.get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{target}: there is no {part}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{target} is {type(found).__name__}, which cannot be called")
    return found


@contextmanager
def _told(what: str) -> Iterator[None]:
    """The program's own failure as one line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if os.environ.get("KVLINT_DEBUG"):
            complain_of(error, what)
        raise UsageError(f"{what} has failed: {one_line(error)}") from None


@contextmanager
def _output_to_stderr() -> Iterator[None]:
    """What the program and its libraries print is no part of the geometry."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # closed
        yield
        return
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _versioned(engine: str | None) -> str | None:
    if engine is None:
        return None
    try:
        return f"{engine} {importlib.metadata.version(engine)}"
    except importlib.metadata.PackageNotFoundError:
        return engine
