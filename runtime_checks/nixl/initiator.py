"""The digests of a transfer at the side that posts it, and what of them goes to the other side.

A WRITE reads memory of this process: it is digested before the post, and in mode paranoid once
more at completion. A READ writes memory of this process, which is digested at completion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from kvlint.runtime_checks.digests.digester import Pending
from kvlint.runtime_checks.digests.pages import Pages, pages_of
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.digests.requests import request_of
from kvlint.runtime_checks.digests.rows import Rows, rows_of
from kvlint.runtime_checks.digests.service import Digesting
from kvlint.runtime_checks.digests.verdicts import Three, source_changed
from kvlint.runtime_checks.nixl.teller import Teller
from kvlint.runtime_checks.policy import Site
from kvlint.runtime_checks.selection import Selection
from kvlint.runtime_checks.stacks import Stack, here
from kvlint.runtime_checks.transfers import Transfer
from kvlint.runtime_checks.violations import Violation


class Moment(StrEnum):
    """When pages were digested: of the source the first two, of the destination the last."""

    POST = "post"
    COMPLETION = "completion"
    COMMIT = "commit"


class Target(Protocol):
    """The other side of a transfer, as its initiator tells it things."""

    def announced(self, transfer: str, operation: str, rows: Rows) -> None:
        """What a transfer will move; before it is posted."""

    def digested(
        self,
        transfer: str,
        moment: Moment,
        digests: Digests,
        rows: Rows,
        owners: Sequence[Any] = (),
    ) -> None:
        """(N,) what the initiator's side of it held, and whose pages these are."""


@dataclass(eq=False)
class Posted:
    """A transfer that is digested.

    own     the side whose memory is in this process
    pages   of that side
    post    of the source, where that is here
    owners  whose pages the source's were then
    """

    own: Selection
    pages: Pages
    rows: Rows
    target: Target | None
    post: Pending | None = None
    owners: Sequence[Any] = ()


class Initiator:
    def __init__(self, digesting: Digesting, teller: Teller) -> None:
        self._digesting = digesting
        self._teller = teller

    def posting(
        self, transfer: Transfer, notification: bytes, target: Callable[[], Target | None]
    ) -> Posted | None:
        """Right before the post. What there is to digest; None where nothing is."""
        digesting = self._digesting
        if not digesting.reads or transfer.local is None or transfer.remote is None:
            return None
        # Without a notification the other side cannot choose by it: it follows what it is told.
        request = request_of(notification) or (transfer.name or "").encode()
        if not digesting.wants(request):
            return None
        pages = pages_of(transfer.local)
        if pages is None:
            digesting.unread("pages of one transfer lie on several devices")
            return None
        rows = rows_of(transfer.local, transfer.remote)
        # Without a notification the other side never knows when it is over.
        posted = Posted(transfer.local, pages, rows, target() if notification else None)
        if transfer.operation == "WRITE":
            posted.post = digesting.begin(pages)
            if posted.post is None:
                return None
            self._sent(posted, posted.post)
        if posted.target is not None and transfer.name is not None:
            posted.target.announced(transfer.name, transfer.operation, posted.rows)
        return posted

    def _sent(self, posted: Posted, post: Pending) -> None:
        """Note it in its turn: at the end of the transfer the pages may be another's."""
        stages = self._digesting.stages
        if stages is None:
            return

        def note(found: list[Digests]) -> None:
            posted.owners = stages.sent(posted.pages, found[0])

        self._digesting.later([post], note)

    def failed(self) -> None:
        """What is suspicious: everything is looked at for a while."""
        self._digesting.suspect()

    def ended(
        self, transfer: Transfer, posted: Posted, made: Site, *, readable: bool
    ) -> Violation | None:
        """NIXL has said that it is done. What to raise, where that is known at once.

        readable  whether its memory is still there; else none is touched
        """
        if not transfer.alone:
            # Which of them a notification is of, the other side cannot know.
            posted.target = None
        stack = here()
        if posted.post is None:
            pending = self._digesting.begin(posted.pages) if readable else None
            if pending is not None:
                then = lambda found: self._tell(transfer, posted, {Moment.COMMIT: found[0]})  # noqa: E731
                return self._digesting.later([pending], then)
            return None
        pendings = [posted.post]
        if self._digesting.thrice and readable:
            again = self._digesting.begin(posted.pages)
            pendings += [again] if again is not None else []
        return self._digesting.later(
            pendings, lambda found: self._source(transfer, posted, found, made, stack)
        )

    def _source(
        self,
        transfer: Transfer,
        posted: Posted,
        found: Sequence[Digests],
        made: Site,
        stack: Stack,
    ) -> Violation | None:
        three = Three(found[0], completion=found[1] if len(found) > 1 else None)
        told = {Moment.COMPLETION: three.completion} if three.completion is not None else {}
        self._tell(transfer, posted, {**told, Moment.POST: three.post})
        own = posted.own
        breach = self._teller.run(
            "source-changed", lambda: source_changed(three, own.call, own.place)
        )
        if breach is None:
            return None
        sites = [made, Site("completion", stack)]
        return self._teller.tell(breach, sites, transfer.agent, transfer.peer, transfer)

    def _tell(
        self, transfer: Transfer, posted: Posted, found: dict[Moment, Digests]
    ) -> Violation | None:
        if posted.target is not None and transfer.name is not None:
            for moment, digests in found.items():
                posted.target.digested(transfer.name, moment, digests, posted.rows, posted.owners)
        return None
