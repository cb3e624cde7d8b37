"""Memory that a thread keeps for its next calculation of the kind.

A fresh array of half a megabyte is fresh pages, and getting them takes longer than the check that
they are for.
"""

import threading
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MOST: Final = 1 << 20


class _Kept(threading.local):
    def __init__(self) -> None:
        self.arrays: dict[tuple[str, str], NDArray[Any]] = {}


_KEPT: Final = _Kept()


def scratch(use: str, kind: str, count: int) -> NDArray[Any]:
    """(count,) of a dtype's one-letter `kind`, contents undefined, until this thread asks for the
    same use again. More than a million entries are fresh each time."""
    if count > MOST:
        return np.empty(count, kind)
    kept = _KEPT.arrays.get((use, kind))
    if kept is None or len(kept) < count:
        kept = _KEPT.arrays[use, kind] = np.empty(count, kind)
    return kept[:count]
