"""A copy of entries between two pools of one process, as between a device's cache and its host's,
checked like a transfer. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.checks import (
    COPY_COUNTS,
    COPY_PAGES,
    COPY_RANGE,
    DUPLICATE_DESTINATION,
    INDEX_DTYPE,
    Breach,
    Place,
)

Numbers = NDArray[np.int64]

INTEGERS: Final = ("int", "uint")
"""How the names of types that count begin."""


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """One end of a copy.

    name     for people: "host kv"
    count    how many indices are given
    dtype    of the indices
    entries  how many the pool has; None where that is not known
    indices  None where they were not read
    """

    name: str
    count: int
    dtype: str
    entries: int | None = None
    indices: Numbers | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """Entry k of the source goes to entry k of the destination.

    page   entries a page has
    whole  only whole pages are moved: a count that ends within one loses, or adds, entries
    runs   of each page the first index stands for all: it must begin a page, the others follow it
    """

    source: End
    destination: End
    page: int = 1
    whole: bool = False
    runs: bool = False


def faults(copy: Copy) -> Iterator[Breach]:
    """The first fault of each end; where counts are wrong, nothing else is asked."""
    source, destination = ends = copy.source, copy.destination
    for end in ends:
        if not end.dtype.startswith(INTEGERS):
            yield Breach(
                INDEX_DTYPE,
                f"indices of {end.name} have dtype {end.dtype}: entries are counted",
                {"dtype": end.dtype},
                Place("local", None, end.name),
            )
            return
    if source.count != destination.count:
        yield Breach(
            COPY_COUNTS,
            f"{source.count} indices of {source.name} are copied to {destination.count} of "
            f"{destination.name}",
            {f"indices of {end.name}": end.count for end in ends},
            Place("local", None, destination.name),
        )
        return
    if copy.whole and source.count % copy.page:
        yield Breach(
            COPY_PAGES,
            f"{source.count} entries of {source.name} are copied in pages of {copy.page}: the last "
            f"page has {source.count % copy.page}",
            {"entries": source.count, "entries of a page": copy.page},
            Place("local", None, destination.name),
        )
        return
    for end in ends:
        asked = [_out_of_range(end)]
        if copy.runs and copy.page > 1:
            asked.append(_broken_pages(end, copy.page))
        if end is destination:
            asked.append(_twice(end))
        yield from islice(chain.from_iterable(asked), 1)


def _out_of_range(end: End) -> Iterator[Breach]:
    if end.indices is None or end.entries is None:
        return
    wrong = np.flatnonzero((end.indices < 0) | (end.indices >= end.entries))
    if len(wrong):
        at = int(wrong[0])
        index = int(end.indices[at])
        yield Breach(
            COPY_RANGE,
            f"index {index} (at {at}) of {end.name} is not in it: it has {end.entries} entries",
            {"index": index, f"entries of {end.name}": end.entries},
            Place("local", None, end.name),
        )


def _broken_pages(end: End, page: int) -> Iterator[Breach]:
    if end.indices is None:
        return
    pages = end.indices.reshape(-1, page)
    steps = np.diff(pages, axis=1) != 1
    wrong = np.flatnonzero((pages[:, 0] % page != 0) | steps.any(axis=1))
    if not len(wrong):
        return
    first = int(wrong[0])
    at, begin = first * page, int(pages[first, 0])
    if begin % page:
        what = f"begins {begin % page} entries into page {begin // page}"
        values = {"index": begin, "entries of a page": page}
    else:
        at += int(np.flatnonzero(steps[first])[0]) + 1
        wanted = int(end.indices[at - 1]) + 1
        what = f"should go on with {wanted}"
        values = {"index": int(end.indices[at]), "index that follows": wanted}
    yield Breach(
        COPY_PAGES,
        f"index {int(end.indices[at])} (at {at}) of {end.name}: a copy of whole pages of {page} "
        f"{what}",
        values,
        Place("local", None, end.name, slot=begin // page if begin >= 0 else None),
    )


def _twice(end: End) -> Iterator[Breach]:
    if end.indices is None:
        return
    found, first = np.unique(end.indices, return_index=True)
    if len(found) == len(end.indices):
        return
    again = np.ones(len(end.indices), bool)
    again[first] = False
    at = int(np.flatnonzero(again)[0])
    index = int(end.indices[at])
    before = int(first[np.searchsorted(found, index)])
    yield Breach(
        DUPLICATE_DESTINATION,
        f"index {index} of {end.name} is written from two entries (at {before} and at {at})",
        {"first at": before, "again at": at},
        Place("local", None, end.name),
    )
