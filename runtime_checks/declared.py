"""Geometry that an adapter, or a program, has declared: names and layers for regions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvlint.geometry import Geometry, Region

    Kept = tuple[Sequence[Region], Sequence[Callable[[], bool]]]

_OF_AGENTS: "dict[str, Kept]" = {}
_HERE: "dict[object, Kept]" = {}
_changes = 0


def declare(
    geometry: "Geometry", agent: str | None = None, gone: "Sequence[Callable[[], bool]]" = ()
) -> None:
    """For the agent of that name; without one for all agents of this process that have no
    geometry of their own, in place of what was declared so before.

    gone  of each region, whether its memory was given back; nothing, where that is not known
    """
    _changed()
    if agent is None:
        _HERE[None] = geometry.regions, gone
    else:
        _OF_AGENTS[agent] = geometry.regions, gone


def declare_here(
    owner: object, regions: "Sequence[Region]", gone: "Sequence[Callable[[], bool]]" = ()
) -> None:
    """Some more of this process's memory, until `forget`.

    owner  whatever tells it from what others declare
    """
    _changed()
    _HERE[owner] = regions, gone


def forget(owner: object) -> None:
    _changed()
    _HERE.pop(owner, None)


def forget_agent(agent: str) -> None:
    _OF_AGENTS.pop(agent, None)


def declared(agent: str, *, here: bool) -> "Sequence[Region]":
    """The regions of an agent's memory, but for what was given back since.

    here  whether the agent lives in this process: addresses of another process say nothing
    """
    known = _OF_AGENTS.get(agent)
    if known is not None:
        return _there(known)
    if not here:
        return ()
    return [region for kept in list(_HERE.values()) for region in _there(kept)]


def listed(pool: str, agent: str | None) -> "Sequence[Region]":
    """The regions of a pool, or list, of that name: an agent's, or, without one, of whichever has
    it in this process; none, where nobody has. Raises ValueError, one line, where several have."""
    names = (pool, f"kv.{pool}")
    found: dict[str, Sequence[Region]] = {}
    places = [(name, kept) for name, kept in list(_OF_AGENTS.items()) if agent in (None, name)]
    if agent is None:
        places += [("", kept) for kept in list(_HERE.values())]
    for name, kept in places:
        regions = [region for region in _there(kept) if region.list in names]
        if regions:
            found[name] = [*found.get(name, ()), *regions]
    if "" in found:
        return found[""]
    if len(found) > 1:
        raise ValueError(f"pool {pool} is one of agents {' and '.join(found)}: say which")
    return next(iter(found.values()), ())


def pools_here() -> set[str]:
    """Names of the pools that were declared for whichever agent of this process."""
    regions = [region for kept in list(_HERE.values()) for region in _there(kept)]
    return {region.list.removeprefix("kv.") for region in regions}


def of_this_process() -> "list[tuple[Region, Callable[[], bool]]]":
    """The regions that no agent was named for, each with whether its memory was given back."""
    return [
        (region, is_gone)
        for regions, gone in list(_HERE.values())
        for region, is_gone in zip(regions, gone or (_never,) * len(regions), strict=True)
    ]


def changes() -> int:
    """How often this process's memory was declared, or forgotten."""
    return _changes


def _changed() -> None:
    global _changes
    _changes += 1


def _never() -> bool:
    return False


def _there(kept: "Kept") -> "Sequence[Region]":
    regions, gone = kept
    if not any(is_gone() for is_gone in gone):
        return regions
    return tuple(region for region, is_gone in zip(regions, gone, strict=True) if not is_gone())
