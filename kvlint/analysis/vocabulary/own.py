"""Names that a project has for what the field calls otherwise."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

# What each kind of name stands for, in words that roles are read from: a name with these words
# holds one such value for each region, or is one of these values.
STANDS_FOR = {
    "slots": ("num", "slots", "capacities"),
    "lengths": ("kv", "data", "lens"),
    "item_lengths": ("kv", "item", "lens"),
    "strides": ("kv", "block", "strides"),
    "addresses": ("kv", "data", "ptrs"),
    "lists": ("kv", "caches"),
}

_NAME = r"[\w*]*\w[\w*]*"


@dataclass(frozen=True, slots=True)
class Own:
    """Names by what they hold; `*` in a name stands for any part of one.

    `slots`: slot counts; `lengths`: bytes of a region; `item_lengths`: bytes of one slot;
    `strides`: bytes from slot to slot; `addresses`: where a region begins; `lists`: any other
    list with one entry for each region, such as one of tensors. `triggers`: text that makes a
    file worth reading, besides these names.
    """

    slots: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    item_lengths: tuple[str, ...] = ()
    strides: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for what is no name, and for one name with two meanings."""
        seen: dict[str, str] = {}
        for kind in KINDS:
            for name in getattr(self, kind):
                if not re.fullmatch(_NAME, name):
                    raise ValueError(f"{name!r} is no name, and no name with * in it")
                other = seen.setdefault(name, kind)
                # That a list of slot counts is a list is no second meaning.
                if other != kind and kind != "lists":
                    raise ValueError(f"{name!r} has two meanings: {key(other)} and {key(kind)}")
        if "" in self.triggers:
            raise ValueError("a trigger has at least one letter")

    def stands_for(self, name: str) -> tuple[str, ...] | None:
        """The words that a name is read as. Underscores in front say nothing."""
        return next((w for kind, w in STANDS_FOR.items() if self._has(kind, name)), None)

    def may_be_one(self, name: str) -> bool:
        """Whether an own name may hold one region's value as well as every region's: only
        `lists` says which, else it is what code takes an entry of or walks over."""
        return self.stands_for(name) is not None and not self._has("lists", name)

    def _has(self, kind: str, name: str) -> bool:
        plain = name.lstrip("_")
        return any(
            re.fullmatch(_expression(own), plain) if "*" in own else own == plain
            for own in self._names((kind,))
        )

    def pattern(self, *kinds: str) -> str:
        """The names as further choices of a regular expression, `|one|other`."""
        return "".join(rf"|{_expression(name)}" for name in self._names(kinds or KINDS))

    def spoken(self) -> frozenset[str]:
        """A file that speaks of any of the names holds one of these."""
        longest = (max(name.split("*"), key=len) for name in self._names(KINDS))
        return frozenset((*self.triggers, *longest))

    def _names(self, kinds: Iterable[str]) -> Iterator[str]:
        for kind in kinds:
            for name in getattr(self, kind):
                yield name.lstrip("_")


# The kinds of names, without the triggers, which are no names.
KINDS = tuple(field.name for field in fields(Own) if field.name in STANDS_FOR)


def key(kind: str) -> str:
    """A kind as configuration files spell it."""
    return kind.replace("_", "-")


def _expression(name: str) -> str:
    return name.replace("*", r"\w*")
