"""Geometry that an adapter, or a program, has declared: names and layers for regions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvlint.geometry import Geometry, Region

_OF_AGENTS: "dict[str, Sequence[Region]]" = {}
_HERE: "dict[object, Sequence[Region]]" = {}


def declare(geometry: "Geometry", agent: str | None = None) -> None:
    """For the agent of that name; without one for all agents of this process that have no
    geometry of their own, in place of what was declared so before."""
    if agent is None:
        _HERE[None] = geometry.regions
    else:
        _OF_AGENTS[agent] = geometry.regions


def declare_here(owner: object, regions: "Sequence[Region]") -> None:
    """Some more of this process's memory, until `forget`.

    owner  whatever tells it from what others declare
    """
    _HERE[owner] = regions


def forget(owner: object) -> None:
    _HERE.pop(owner, None)


def forget_agent(agent: str) -> None:
    _OF_AGENTS.pop(agent, None)


def declared(agent: str, *, here: bool) -> "Sequence[Region]":
    """The regions of an agent's memory.

    here  whether the agent lives in this process: addresses of another process say nothing
    """
    known = _OF_AGENTS.get(agent)
    if known is not None:
        return known
    if not here:
        return ()
    return [region for regions in list(_HERE.values()) for region in regions]
