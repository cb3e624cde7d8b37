"""Geometry that an adapter, or a program, has declared: names and layers for regions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvlint.geometry import Geometry

_DECLARED: "dict[str | None, Geometry]" = {}


def declare(geometry: "Geometry", agent: str | None = None) -> None:
    """For the agent of that name, or for every agent without a geometry of its own."""
    _DECLARED[agent] = geometry


def declared(agent: str) -> "Geometry | None":
    return _DECLARED.get(agent) or _DECLARED.get(None)
