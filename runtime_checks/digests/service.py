"""What one process digests: of which requests, with which seed, and what is still to be read."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from kvlint.runtime_checks.digests.digester import Digester, Pending
from kvlint.runtime_checks.digests.host import UnreadableError
from kvlint.runtime_checks.digests.late import Late
from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.digests.sampling import sampled, seed_of
from kvlint.runtime_checks.policy import Policy, say
from kvlint.runtime_checks.settings import Mode, Settings
from kvlint.runtime_checks.violations import Violation

# How long after a suspicious event everything is digested.
ALERT_SECONDS: Final = 60.0
MODULE: Final = "digests"


class Transfers(Protocol):
    """What keeps whose pages were where."""

    def sent(self, pages: Pages, digests: Digests) -> Sequence[Any]:
        """(N,) what a transfer takes from these pages; whose they are."""

    def arrived(self, pages: Pages, digests: Digests, owners: Sequence[Any], *, told: bool) -> None:
        """(N,) what it has put into these, for those owners.

        told  whether what is wrong with that was said already
        """


class Digesting:
    """
    seed    of the shared key, else of the run: who has neither in common cannot compare
    counts  what was digested, and what was not and why
    stages  who else wants to know what transfers found in pages, once a program tells stages
    """

    stages: "Transfers | None" = None

    def __init__(self, settings: Settings, policy: Policy) -> None:
        self.seed = seed_of(settings.key or settings.run.encode())
        self.mode = settings.mode
        self.digester = Digester(self.seed)
        self._policy = policy
        self.start_afresh()
        self._prepared = set[tuple[str, int]]()
        policy.on_violation = self.suspect

    def start_afresh(self) -> None:
        """In a forked child, which has seen nothing, and reads nothing of what others began."""
        self.late = Late()
        self.counts: Counter[str] = Counter()
        self._raised: deque[Violation] = deque(maxlen=1)
        self._alert_ends = 0.0

    @property
    def reads(self) -> bool:
        return self.mode.reads and self._policy.armed(MODULE)

    @property
    def thrice(self) -> bool:
        """Whether a source is digested once more when its transfer is over."""
        return self.mode is Mode.PARANOID

    def wants(self, request: bytes) -> bool:
        """Whether what belongs to this request is digested."""
        if not self.reads:
            return False
        if self.mode is not Mode.SAMPLE or time.monotonic() < self._alert_ends:
            return True
        return sampled(request, self.seed)

    def suspect(self) -> None:
        """Something happened after which everything is looked at for a while."""
        self._alert_ends = time.monotonic() + ALERT_SECONDS

    def prepare(self, kind: str, device: int) -> None:
        """Memory of a device was registered: its kernels are compiled now, not in the first
        transfer."""
        if not self.reads or (kind, device) in self._prepared:
            return
        self._prepared.add((kind, device))
        try:
            self.digester.prepare(kind, device)
        except UnreadableError as error:
            self.unread(error.strerror or str(error))

    def begin(self, pages: Pages) -> Pending | None:
        """None where these pages cannot be read; why is counted, and said the first time."""
        try:
            pending = self.digester.start(pages)
        except UnreadableError as error:
            self.unread(error.strerror or str(error))
            return None
        self.counts["pages digested"] += len(pages)
        return pending

    def unread(self, why: str) -> None:
        """Something was not digested."""
        self._count(f"not digested: {why}")

    def unheard(self, why: str) -> None:
        """Something was digested, and nobody is there who could compare it."""
        self._count(f"not compared: {why}")

    def _count(self, reason: str) -> None:
        self.counts[reason] += 1
        if self.counts[reason] == 1:
            say(reason)

    def later(
        self,
        pendings: Sequence[Pending],
        then: Callable[[list[Digests]], Violation | None],
    ) -> Violation | None:
        """`then` is given the digests when they are there, and in the order in which they were
        begun: now, and what it finds is given back; or in a call of whichever thread, and that is
        raised in the next call that may raise."""

        def tell(found: list[Digests]) -> None:
            with self._policy.contained(MODULE):
                self.keep(then(found))

        try:
            if self.late.empty and all(pending.ready() for pending in pendings):
                return then([pending.digests() for pending in pendings])
        except UnreadableError as error:
            self.unread(error.strerror or str(error))
            self.late.dropped += 1
            return None
        self.late.add(pendings, tell)
        return None

    def keep(self, violation: Violation | None) -> None:
        """For the next call that may raise."""
        if violation is not None and not self._raised:
            self._raised.append(violation)

    def drain(self, *, wait: bool = False) -> None:
        if self._policy.armed(MODULE):
            with self._policy.contained(MODULE):
                self.late.drain(wait=wait)

    def raised(self) -> Violation | None:
        """What was found since it was last asked for, once."""
        try:
            return self._raised.popleft()
        except IndexError:
            return None
