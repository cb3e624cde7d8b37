"""Three digests of one transfer, and what they say.

post = completion = commit      clean
post != completion              the source was changed while it was read
post = completion != commit     transport or geometry: other bytes arrived than were sent
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kvlint.runtime_checks.checks import ARRIVED_WRONG, SOURCE_CHANGED, Breach, Place
from kvlint.runtime_checks.digests.matrix import NOWHERE, belongs
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.regions import Flags

Called = Callable[[int], str]
"""One page of the transfer in words, by its position."""
Placed = Callable[[int], Place]


@dataclass(frozen=True, eq=False)
class Three:
    """
    post        (N,) the source's pages before the transfer
    commit      (N,) the destination's when they were said to have arrived; None where that is
                for the other side to say
    completion  (N,) the source's when it was over; None where nobody looked
    """

    post: Digests
    commit: Digests | None = None
    completion: Digests | None = None

    @property
    def mutated(self) -> Flags:
        """(N,) whether the source was changed."""
        if self.completion is None:
            return np.zeros(len(self.post), np.bool_)
        changed: Flags = self.post != self.completion
        return changed

    @property
    def wrong(self) -> Flags:
        """(N,) whether something else arrived, and the source was not changed."""
        if self.commit is None:
            return np.zeros(len(self.post), np.bool_)
        wrong: Flags = (self.post != self.commit) & ~self.mutated
        return wrong


def source_changed(three: Three, called: Called, placed: Placed) -> Breach | None:
    rows = np.flatnonzero(three.mutated)
    if not len(rows) or three.completion is None:
        return None
    at = int(rows[0])
    return Breach(
        SOURCE_CHANGED,
        f"{called(at)} (at {at}) changed between post and completion: some of what arrived is new "
        f"and some old{_more(rows, three)}",
        {"digest at post": _hex(three.post[at]), "at completion": _hex(three.completion[at])},
        placed(at),
    )


def arrived_wrong(three: Three, called: Called, placed: Placed) -> Breach | None:
    """Of the first page that another's content is in, else of the first that is wrong."""
    rows = np.flatnonzero(three.wrong)
    if not len(rows) or three.commit is None:
        return None
    whose = belongs(three.commit, three.post)
    known = rows[whose[rows] != NOWHERE]
    at = int(known[0] if len(known) else rows[0])
    holds = "other bytes than were sent"
    if len(known):
        holds = f"what belongs to {called(int(whose[at]))}"
    elif three.completion is None:
        holds += ", or the source changed meanwhile"
    return Breach(
        ARRIVED_WRONG,
        f"{called(at)} (at {at}) holds {holds}{_more(rows, three)}",
        {"digest at post": _hex(three.post[at]), "at commit": _hex(three.commit[at])},
        placed(at),
    )


def sent_elsewhere(
    announced: Digests, own: Digests, called: Called, placed: Placed
) -> Breach | None:
    """Where both sides have declared their regions, a page that goes into another layer or role.

    announced, own  (N,) identities as the one and the other side has declared them, 0 where not
    """
    rows = np.flatnonzero((announced != own) & (announced != 0) & (own != 0))
    if not len(rows):
        return None
    at = int(rows[0])
    return Breach(
        ARRIVED_WRONG,
        f"{called(at)} (at {at}) is a page of another layer, role, dtype or length to the other "
        f"side; {len(rows)} of {len(own)} pages of this transfer are",
        {"declared by the sender": _hex(announced[at]), "declared here": _hex(own[at])},
        placed(at),
    )


def _more(rows: object, three: Three) -> str:
    wrong, all_ = len(rows), len(three.post)  # type: ignore[arg-type]
    return f"; {wrong} of {all_} pages of this transfer are so" if wrong > 1 else ""


def _hex(digest: object) -> str:
    return f"{int(digest):016x}"  # type: ignore[call-overload]
