"""The runtime companion: the same assumptions, checked on live transfers.

Nothing is patched until it is armed: by `arm`, by `arm_from_environment`, or by `kvlint run`.
This module imports next to nothing, so that a program may import it where it stays off.

What the companion shares with the linter is `kvlint.geometry` and `kvlint.assumptions`.
"""

import os
import sys

TYPE_CHECKING = False  # that of typing, whose import would be most of the cost of this one
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from kvlint.geometry import Geometry
    from kvlint.runtime_checks.violations import Violation

__all__ = [
    "Violation",
    "arm",
    "arm_from_environment",
    "declare",
    "disarm",
    "dump",
    "guard_pool",
    "stage",
    "status",
]


def __getattr__(name: str) -> object:
    """`Violation`, which is imported only when somebody asks for it."""
    if name == "Violation":
        from kvlint.runtime_checks.violations import Violation

        return Violation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def arm(
    mode: str = "log",
    report: "str | Path | None" = None,
    require: "str | Iterable[str]" = (),
) -> None:
    """Check every transfer of this process from now on, NIXL imported or not yet.

    mode     off, log, sample, assert or paranoid
    report   folder for evidence; without one, KVLINT_REPORT, else no files
    require  names of hooks, or "all": SystemExit(78) where a module has not what they hook

    Armed already with the same settings, nothing happens. Raises ValueError, one line, for other
    settings than those in force, for a mode that does not exist, for a name that no hook will
    ever have, and for a folder that takes no files.
    """
    from kvlint.runtime_checks import arming

    arming.arm(mode, report, require)


def arm_from_environment() -> None:
    """As KVLINT_RUNTIME says; unset or `off`, nothing is imported, unless KVLINT_CAPTURE asks for
    the geometry of pools. What is wrong with the environment is one line on standard error, and
    SystemExit(78) where KVLINT_REQUIRE is set."""
    told = os.environ.get
    if told("KVLINT_RUNTIME", "off") not in ("", "off") or told("KVLINT_CAPTURE"):
        from kvlint.runtime_checks import arming

        arming.arm_from_environment()


def disarm() -> None:
    """Undo everything, after what `at exit` would write is written."""
    from kvlint.runtime_checks import arming

    arming.disarm()


def declare(geometry: "Geometry", agent: str | None = None) -> None:
    """Name the regions of an agent, or, without one, of this process's memory, whichever agent
    moves it: messages then tell names and layers."""
    from kvlint.runtime_checks.declared import declare

    declare(geometry, agent)


def guard_pool(
    pool: object,
    *,
    name: str = "pool",
    said: "Mapping[str, tuple[int, int, int]] | Iterable[tuple[int, int, int]] | None" = None,
    slot_rows: int = 1,
    agent: str | None = None,
) -> None:
    """Check a pool of torch tensors, and name its regions in the checks of every transfer.

    pool       a tensor, or lists and mappings of them; an object with `get_contiguous_buf_infos()`;
               with `said` any object that holds the tensors
    name       names the pool; regions of one pool are selected by one set of slots
    said       (address, length, item length), in bytes, of each region, as the transport is told;
               without it each tensor is a region
    slot_rows  entries of the first dimension that one slot is: tokens a page, say
    agent      the NIXL agent whose memory it is; without one, any of this process

    What is wrong is told now and, where the mode raises, raised when a list over such a region is
    first used; now with KVLINT_STRICT_PREPARE=1. Does nothing, and imports nothing, where nothing
    is armed. Raises ValueError, one line, for what is no pool.
    """
    arming = sys.modules.get(f"{__name__}.arming")
    if arming is not None:
        arming.guard_pool(pool, name, agent, said=said, slot_rows=slot_rows)


def stage(
    name: str,
    *,
    owner: str,
    slots: object,
    pool: str = "pool",
    first: int = 0,
    agent: str | None = None,
) -> None:
    """Note what pages of a request hold at a stage, to learn at which one they change.

    name   store (their bytes were written), send (they are about to be), arrival, read (they are
           about to be), write-back to a host cache and load-back from it (their bytes were copied)
    owner  the request's id, up to 200 characters, the same in each process, and of no other
           request: under one id a page is expected to hold what it held
    slots  integers, a list or an array of them in host memory: of every region of the pool
    pool   as `guard_pool` named it
    first  which page of the request the first slot is; the others are those after it
    agent  the pool's, where several agents have one of the name

    A store says what a page holds; every later stage of the request must find the same. Who calls
    it for the pages of one request has to for each that gets the same slots. Works in modes that
    read bytes; in others, and where nothing is armed, it does, and imports, nothing. What a stage
    shows is raised at once for host memory and in a later call for a device's, where the mode
    raises. A stage, pool or slot that there is not is a ValueError, one line; in mode sample a line
    on standard error.
    """
    arming = sys.modules.get(f"{__name__}.arming")
    if arming is not None:
        arming.stage(name, owner=owner, pool=pool, slots=slots, first=first, agent=agent)


def dump() -> None:
    """Write the ring of the last transfers to its file, where there are files."""
    from kvlint.runtime_checks import arming

    arming.dump()


def status() -> "Mapping[str, object]":
    """What is armed, hook by hook, and what was found so far."""
    from kvlint.runtime_checks import arming

    return arming.status()
