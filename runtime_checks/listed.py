"""The descriptor lists of a run's processes, out of what they have written. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvlint.geometry import MEMORY_KINDS, GeometryError, Region

MOST_REGIONS: Final = 256


@dataclass(frozen=True, slots=True)
class Listed:
    """One list.

    process  run and process id; `number` counts the lists of that process
    agent    that moves the bytes; `owner` is the one whose memory it is
    side     "local" or "remote", seen from `agent`
    regions  in order, of the list `kv.NUMBER`; addresses are not known, so here they follow one
             another from 0
    more     how many regions there are besides
    named    how many regions an adapter, or a program, has declared
    """

    process: tuple[object, object]
    number: int
    agent: str
    owner: str
    side: str
    regions: tuple[Region, ...]
    more: int
    named: int = 0


def lists_of(records: Iterable[Mapping[str, Any]]) -> list[Listed]:
    """What is no list, or cannot be one, is passed over."""
    return [found for record in records if (found := _list(record)) is not None]


def _list(record: Mapping[str, Any]) -> Listed | None:
    number, regions, more = (record.get(name) for name in ("number", "regions", "more"))
    if record.get("kind") != "list" or not isinstance(number, int) or not isinstance(regions, list):
        return None
    try:
        laid = tuple(_laid(regions[:MOST_REGIONS], record.get("memory"), f"kv.{number}"))
    except (GeometryError, TypeError, ValueError, AttributeError):
        return None
    rest = len(regions) - len(laid) + (more if isinstance(more, int) and more > 0 else 0)
    agent, owner, side = (str(record.get(name, "?")) for name in ("agent", "owner", "side"))
    process = record.get("run"), record.get("pid")
    named = sum(isinstance(given.get("name"), str) for given in regions[: len(laid)])
    return Listed(process, number, agent, owner, side, laid, rest, named)


def _laid(regions: Iterable[Mapping[str, Any]], memory: object, list_name: str) -> Iterator[Region]:
    """Raises what a region that cannot be leads to."""
    at, names = 0, set()
    for number, given in enumerate(regions):
        slots, stride, length = (given.get(key) for key in ("slots", "stride", "length"))
        if type(slots) is not int or type(stride) is not int or type(length) is not int:
            raise TypeError("counts and lengths are integers")
        # What has one slot has no distance to the next.
        stride = stride or max(length, 1)
        name = given.get("name")
        if not isinstance(name, str) or name in names:
            name = f"region {number}"
        names.add(name)
        whole = (slots - 1) * stride + length if slots > 0 else 0
        yield Region(
            name=name,
            address=at,
            length=whole,
            stride=stride,
            transfer_length=length,
            memory_kind=memory if isinstance(memory, str) and memory in MEMORY_KINDS else "DRAM",
            device=0,
            list=list_name,
            layer=given.get("layer"),
        )
        at += whole
