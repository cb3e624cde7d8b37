"""Tables that a long life does not fill: of the entries the latest are kept."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep(entries: dict[K, V], key: K, value: V, most: int) -> None:
    """Put it last; beyond `most` the entries that were put longest ago go."""
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > most:
        entries.pop(next(iter(entries)), None)
