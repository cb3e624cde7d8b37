"""Where `check` remembers what it has found."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvlint.engine.errors import UsageError
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.engine.cache import Cache


def cache_for(
    root: Path, rules: Sequence[Rule], folder: Path | None, *, off: bool, writes: bool
) -> "Callable[[], Cache] | None":
    """Opens the cache of a run, None where there is none. Raises UsageError where `folder` is a
    file."""
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UsageError(f"the cache directory is no folder: {folder}")
    if off or any(not type(rule).__module__.startswith("kvlint.rules.") for rule in rules):
        return None  # nobody knows when a rule from elsewhere has changed

    def cache() -> "Cache":
        from kvlint.engine.cache import FOLDER, Cache  # not worth its time where little is read

        return Cache(folder or root / FOLDER, root, rules, writes=writes)

    return cache
