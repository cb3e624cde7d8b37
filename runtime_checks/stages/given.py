"""What a program says of a stage, read; what cannot be is refused in one line."""

from contextlib import suppress
from operator import index
from typing import Any, Final

import numpy as np

from kvlint.runtime_checks.declared import listed, pools_here
from kvlint.runtime_checks.pools.tensors import is_tensor
from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.settings import one_line
from kvlint.runtime_checks.stages.memory import Memory
from kvlint.runtime_checks.stages.notes import Stage

LONGEST: Final = 200


class StageError(ValueError):
    """What was said of a stage cannot be; the message is one line."""


def stage_of(name: object) -> Stage:
    """Raises StageError."""
    try:
        return Stage(name)  # type: ignore[arg-type]
    except ValueError:
        raise StageError(f"unknown stage: {_short(name)}; there are {', '.join(Stage)}") from None


def owner_of(given: object) -> str:
    """Raises StageError."""
    if not isinstance(given, str) or not 0 < len(given) <= LONGEST:
        raise StageError(f"an owner is a request's id: text of 1 to {LONGEST} characters")
    return given


def _short(given: object) -> str:
    return one_line(str(given))[:LONGEST]


class Memories:
    """Pools by name; each is put together once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None], Memory] = {}

    def named(self, pool: str, agent: str | None) -> Memory:
        """Raises StageError for a pool that nobody has declared."""
        try:
            regions = tuple(listed(pool, agent))
        except ValueError as error:
            raise StageError(str(error)) from None
        if not regions:
            whose = f" of agent {_short(agent)}" if agent else ""
            raise StageError(f"no pool{whose} is named {_short(pool)}: guard_pool declares one")
        known = self._known.get((pool, agent))
        if known is None or known.regions != regions:
            known = self._known[pool, agent] = Memory(pool, regions)
        return known

    def here(self) -> list[Memory]:
        """The pools that any agent of this process may move, and those that stages were told of.
        What is gone is left out: another may lie there."""
        named = {*((pool, None) for pool in pools_here()), *self._known}
        found: dict[Memory, None] = {}
        for pool, agent in sorted(named, key=str):
            with suppress(StageError):
                found[self.named(pool, agent)] = None
        return list(found)


def slots_of(given: Any, memory: Memory) -> Integers:
    """(n,) Raises StageError for what are no slots of the pool, and for a tensor whose reading
    would wait for its device."""
    if is_tensor(given):
        if given.device.type != "cpu":
            raise StageError(
                f"slots are on {given.device}: reading them waits for it, give them on the host"
            )
        given = given.detach().numpy()
    try:
        array = np.asarray(given if hasattr(given, "__len__") else [index(given)])
    except (TypeError, ValueError):
        raise StageError("slots are integers in one dimension") from None
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise StageError("slots are integers in one dimension")
    outside = np.flatnonzero((array < 0) | (array >= memory.slots))
    if len(outside):
        at = int(outside[0])
        raise StageError(
            f"slot {array[at]} (at {at}) is not in pool {one_line(memory.pool)}: not every region "
            f"has more than {memory.slots} slots"
        )
    return array.astype(np.int64)


def ordinals_from(first: object, count: int) -> Integers:
    """(count,) Raises StageError."""
    try:
        begin = index(first)  # type: ignore[arg-type]
    except TypeError:
        begin = -1
    if not 0 <= begin < 1 << 31:
        raise StageError("first is the number of a page in its request, from 0")
    return np.arange(begin, begin + count, dtype=np.int64)
