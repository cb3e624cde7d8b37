"""Which code of the engine led to NIXL, or gave a pool, and what was checked there.

What is assumed in code that no call has passed through, nothing in a run speaks for or against.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kvlint.runtime_checks.stacks import Stack

# As it stands among what was switched off.
MODULE: Final = "callers"

# Different calls that are told apart; of more, only how many there were is known.
MOST: Final = 512
MOST_NAMES: Final = 64


class Caller:
    """One call with all that led to it, as often as it came.

    call     the method's name
    stack    where it was called from; empty for all that came after the table was full
    count    how often it came
    agents   whose calls they were, at most 64
    lists    numbers of the prepared lists that were used, at most 64
    checked  how often these checks have looked, and found something or not
    """

    __slots__ = ("_told", "agents", "call", "checked", "count", "due", "lists", "stack")

    def __init__(self, call: str, stack: Stack) -> None:
        self.call = call
        self.stack = stack
        self.count = 0
        self.due = 1
        self.agents: dict[str, None] = {}
        self.lists: dict[int, None] = {}
        self.checked: dict[tuple[str, ...], int] = {}
        self._told: Sequence[str] | None = None

    def checks(self) -> dict[str, int]:
        """By check, on how many of the calls it has looked."""
        found: dict[str, int] = {}
        for checks, times in self.checked.copy().items():
            for check in checks:
                found[check] = found.get(check, 0) + times
        return found

    def to_dict(self) -> Mapping[str, object]:
        if self._told is None:
            self._told = self.stack.lines()
        return {
            "kind": "called",
            "call": self.call,
            "stack": self._told,
            "count": self.count,
            "checked": self.checks(),
            "agents": list(self.agents.copy()),
            "lists": list(self.lists.copy()),
        }


class Callers:
    """A bounded table. Counting takes no lock, for the same reason as `Recorder` takes none; a
    call that comes in the middle of another's is counted as well."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self.clear()

    def clear(self) -> None:
        self._callers: dict[object, Caller] = {}
        self._beyond: dict[str, Caller] = {}
        self._last: dict[str, Caller] = {}

    def count(
        self,
        call: str,
        stack: Stack,
        agent: str,
        checks: tuple[str, ...] = (),
        lists: Iterable[int] = (),
    ) -> bool:
        """Once more, whatever has come of it. Whether its number has doubled since this last was
        so, or it is the first.

        checks  those that have looked at this call
        """
        # Most calls come from where the last one came from: comparing is cheaper than a key.
        caller = self._last.get(call)
        if caller is None or caller.stack.frames != stack.frames:
            caller = self._last[call] = self._of(call, stack)
        if agent and agent not in caller.agents and len(caller.agents) < MOST_NAMES:
            caller.agents[agent] = None
        for number in lists:
            if number not in caller.lists and len(caller.lists) < MOST_NAMES:
                caller.lists[number] = None
        checked = caller.checked
        if checks not in checked:
            checked.setdefault(checks, 0)
        # Each in one piece: the interpreter changes threads between calls only.
        checked[checks] += 1
        caller.count += 1
        if caller.count < caller.due:
            return False
        caller.due = 2 * caller.count
        return True

    def _of(self, call: str, stack: Stack) -> Caller:
        key = (call, stack.key)
        caller = self._callers.get(key)
        if caller is None:
            if len(self._callers) >= self._most:
                return self._beyond.setdefault(call, Caller(call, Stack(())))
            # The stack is kept for its code: while it lives, its identity is nobody else's.
            caller = self._callers.setdefault(key, Caller(call, stack))
        return caller

    def entries(self) -> list[Caller]:
        """In the order in which they were first seen; what is beyond the table last."""
        return [*self._callers.copy().values(), *self._beyond.copy().values()]
