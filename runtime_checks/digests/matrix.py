"""Where bytes that are in the wrong place belong: digests found against all that are known."""

from typing import Final

import numpy as np

from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.regions import Integers

NOWHERE: Final = -1


def belongs(
    found: Digests,
    expected: Digests,
    known: Digests | None = None,
    labels: Integers | None = None,
    own: Integers | None = None,
) -> Integers:
    """(N,) of each page that holds something else than expected the label of the one whose
    content it holds.

    found     (N,) digests of what the pages hold
    expected  (N,) digests of what they should hold
    known     (M,) digests of what pages are known to hold; without it the expected ones
    labels    (M,) not negative, of these pages: several digests of one page have one label;
              without it their positions
    own       (N,) labels of the pages asked about; without it their positions

    NOWHERE for a right page, for bytes that nobody is known to have, that several pages have, or
    that are only the page's own of another time, and for a digest of 0, as zeroed pages have it.
    """
    known = expected if known is None else known
    labels = np.arange(len(known)) if labels is None else labels
    own = np.arange(len(found)) if own is None else own
    belonging = np.full(len(found), NOWHERE, np.int64)
    wrong = np.flatnonzero((found != expected) & (found != 0))
    near = np.flatnonzero(np.isin(known, found[wrong]))
    order = near[np.lexsort((labels[near], known[near]))]
    contents, holders = known[order], labels[order]
    first = np.searchsorted(contents, found[wrong], side="left")
    last = np.searchsorted(contents, found[wrong], side="right") - 1
    there = first <= last
    wrong, first, last = wrong[there], first[there], last[there]
    alone = (holders[first] == holders[last]) & (holders[first] != own[wrong])
    belonging[wrong[alone]] = holders[first[alone]]
    return belonging
