"""The calls that a run's processes have counted, out of what they have written. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MOST_FRAMES: Final = 64

Process = tuple[object, object]


@dataclass(frozen=True, slots=True)
class Called:
    """One call with all that led to it, as `callers.Caller` has it.

    process  run and process id
    stack    `file:line in function` a frame, innermost last; empty where nobody knows
    count    how often it came, at least
    checked  on how many of these a check has looked, by the check's name
    lists    numbers of that process's prepared lists that were used
    """

    process: Process
    call: str
    stack: tuple[str, ...]
    count: int
    checked: Mapping[str, int] = field(default_factory=dict, hash=False)
    agents: tuple[str, ...] = ()
    lists: frozenset[int] = frozenset()


def calls_of(records: Iterable[Mapping[str, Any]]) -> list[Called]:
    """What is no call, or cannot be one, is passed over."""
    return [found for record in records if (found := _called(record)) is not None]


def _called(record: Mapping[str, Any]) -> Called | None:
    call, stack, count = (record.get(name) for name in ("call", "stack", "count"))
    checked, agents, lists = (record.get(name) for name in ("checked", "agents", "lists"))
    if record.get("kind") != "called" or not isinstance(call, str) or not _counts(count):
        return None
    if not isinstance(stack, list) or not all(isinstance(frame, str) for frame in stack):
        return None
    named = checked if isinstance(checked, Mapping) else {}
    return Called(
        (record.get("run"), record.get("pid")),
        call,
        tuple(stack[-MOST_FRAMES:]),
        count or 0,
        {check: times for check, times in named.items() if _counts(times)},
        tuple(map(str, agents if isinstance(agents, list) else ())),
        frozenset(n for n in (lists if isinstance(lists, list) else ()) if type(n) is int),
    )


def _counts(value: object) -> bool:
    return type(value) is int and value > 0
