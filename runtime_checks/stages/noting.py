"""Pages are digested at their stages, and what the ledger finds is told.

Nothing here waits for a device: a stage's digests begin with the call, and what they show is told
in a later one. Of host memory it is told at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.digests.service import Digesting
from kvlint.runtime_checks.locks import Lock
from kvlint.runtime_checks.policy import Policy, Site
from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.stacks import Stack, here
from kvlint.runtime_checks.stages.given import (
    Memories,
    StageError,
    ordinals_from,
    owner_of,
    slots_of,
    stage_of,
)
from kvlint.runtime_checks.stages.ledger import Ledger
from kvlint.runtime_checks.stages.locating import located
from kvlint.runtime_checks.stages.memory import Memory
from kvlint.runtime_checks.stages.notes import Early, Finding, Note, Owned, Page, Stage
from kvlint.runtime_checks.stages.records import entries, newest
from kvlint.runtime_checks.stages.sayings import in_flight, told
from kvlint.runtime_checks.transfers import as_bytes, now
from kvlint.runtime_checks.violations import Violation

if TYPE_CHECKING:
    from kvlint.runtime_checks.nixl.using import Transport

CHECK: Final = "stages"
WRITING: Final = (Stage.STORE, Stage.ARRIVAL, Stage.LOAD_BACK)


class Stages:
    """
    transports  what knows of transfers in flight
    """

    def __init__(self, policy: Policy, digests: Digesting) -> None:
        self._policy = policy
        self._digests = digests
        self._memories = Memories()
        self.transports: Iterable[Transport] = ()
        self.start_afresh()

    def start_afresh(self) -> None:
        """In a forked child, which has seen nothing."""
        self._lock = Lock()
        self.ledger = Ledger()
        # How many digests were lost when the last stage was begun, and when it was compared.
        self._lost = 0, 0
        # When each slot of a pool was last said to have got its bytes.
        self._arrived: dict[Memory, Integers] = {}

    # What programs and adapters say.

    def stage(
        self, name: str, owner: str, pool: str, slots: Any, first: int, agent: str | None
    ) -> None:
        """See `kvlint.runtime_checks.stage`."""
        stage, owner = stage_of(name), owner_of(owner)
        memory = self._memories.named(pool, agent)
        chosen = slots_of(slots, memory)
        owned = Owned(owner, np.arange(len(chosen)), ordinals_from(first, len(chosen)))
        self.noted(stage, memory, chosen, [owned], writes=stage in WRITING)
        self.raise_found()

    def noted(
        self,
        stage: Stage,
        memory: Memory,
        slots: Integers,
        owners: Sequence[Owned],
        *,
        writes: bool,
    ) -> None:
        """These pages of these owners are at a stage now; after all that the current stream of
        each device was given. Raises only what it is told to, by the mode, at once."""
        if not (len(slots) and self._policy.armed(CHECK)):
            return
        with self._policy.contained(CHECK):
            stack = here(1)
            if stage is Stage.ARRIVAL:
                with self._lock:
                    times = self._arrived.setdefault(memory, np.zeros(memory.slots, np.int64))
                    times[slots] = now()
            chosen = [owned for owned in owners if self._digests.wants(as_bytes(owned.owner))]
            parts = list(memory.pages(slots)) if chosen else []
            # Of pages that are a request's and a copy's the request is told.
            for owned in [one for one in chosen if one.request] or chosen:
                self._in_flight(stage, memory, slots, owned, parts, stack, writes=writes)
            begun = [self._digests.begin(pages) for _, pages in parts]
            pendings = [pending for pending in begun if pending is not None]
            if len(pendings) < len(parts):
                chosen, pendings = [], []
            unlooked = [one for one in owners if one not in chosen]
            time, lost = now(), self._digests.late.dropped

            def compare(found: list[Digests]) -> Violation | None:
                digests = np.zeros((len(memory.regions), len(slots)), np.uint64)
                for (numbers, _), some in zip(parts, found, strict=True):
                    digests[numbers] = some.reshape(len(numbers), len(slots))
                violations: list[Violation] = []
                self._goes_on(lost, unlooked, memory, slots, writes=writes)
                for owned in chosen:
                    at = owned.positions
                    note = Note(
                        stage,
                        owned.owner,
                        memory,
                        slots[at],
                        owned.ordinals,
                        digests[:, at],
                        writes,
                        time,
                        stack,
                        request=owned.request,
                    )
                    violations += self._compare(note)
                return next(iter(violations), None)

            self._digests.keep(self._digests.later(pendings, compare))
            self._digests.drain()

    def _goes_on(
        self,
        lost: int,
        unlooked: Iterable[Owned],
        memory: Memory,
        slots: Integers,
        *,
        writes: bool,
    ) -> None:
        """What these owners' pages hold from now on nobody knows; of any page nobody does, where
        a stage was lost on the way here: before this one was begun, or before it was compared."""
        with self._lock:
            reached = lost, self._digests.late.dropped
            if reached != self._lost:
                self.ledger, self._lost = Ledger(), reached
            for owned in unlooked:
                self.ledger.drop(owned.owner)
                if writes:
                    self.ledger.forget(memory, slots[owned.positions])

    def owners(self, memory: Memory, slots: Integers) -> list[Owned]:
        """Whose pages lie there, as far as stages have told: in this pool, or in another one that
        is cut into the same pages."""
        found: list[Owned] = []
        # What a device has answered by now is known, too.
        self._digests.drain()
        with self._policy.contained(CHECK), self._lock:
            found = self.ledger.owners(memory, slots)
            if not found:
                _, pages = next(memory.taken([0]).pages(slots))
                for there in located(pages, self._memories.here()):
                    for owned in self.ledger.owners(there.memory, there.slots):
                        found += there.spread(owned)
        return found

    def declared(self, pool: str, agent: str | None) -> None:
        """A pool of this name is declared: what lay there before is not known of it."""
        with self._policy.contained(CHECK), suppress(StageError):
            memory = self._memories.named(pool, agent)
            self.forget(memory, np.arange(memory.slots))

    def forget(self, memory: Memory, slots: Integers) -> None:
        """What is put there next may be seen by nobody; nor is what has been seen, and is still
        to be compared, known of it any longer."""
        if not self._policy.armed(CHECK):
            return
        with self._policy.contained(CHECK):

            def forgotten(_: list[Digests]) -> None:
                with self._lock:
                    self.ledger.forget(memory, slots)

            forgotten([])
            self._digests.later([], forgotten)

    def seen(
        self,
        stage: Stage,
        pages: Pages,
        digests: Digests,
        owners: Sequence[Owned] | None = None,
        *,
        told: bool = False,
    ) -> list[Owned]:
        """The transport has digests of these pages: (N,) in their order.

        owners  whose they are, by positions among the N; else whose pages lie there, as far as
                stages were told
        told    whether what is wrong with them was said already

        Gives back the owners, for the other end of the transfer to be told. Raises nothing: what
        is found is raised in the next `stage`.
        """
        known: list[Owned] = []
        if not self._policy.armed(CHECK):
            return known
        with self._policy.contained(CHECK):
            violations: list[Violation] = []
            with self._lock:
                memories = self._memories.here()
            for there in located(pages, memories):
                with self._lock:
                    slots = there.slots
                    if owners is None:
                        at_last = self.ledger.owners(there.memory, slots)
                        chosen = [owned for owned in at_last if owned.request]
                    else:
                        chosen = there.owned(owners)
                for owned in chosen:
                    at = owned.positions
                    positions = there.positions[:, at]
                    found = np.zeros(positions.shape, np.uint64)
                    looked = positions[:, 0] >= 0
                    found[looked] = digests[positions[looked]]
                    note = Note(
                        stage,
                        owned.owner,
                        there.memory,
                        slots[at],
                        owned.ordinals,
                        found,
                        stage in WRITING,
                        now(),
                        here(1),
                        looked,
                        owned.request,
                    )
                    violations += self._compare(note, told=told)
                    known += there.spread(owned)
            for violation in violations:
                self._digests.keep(violation)
        return known

    def sent(self, pages: Pages, digests: Digests) -> list[Owned]:
        return self.seen(Stage.SEND, pages, digests)

    def arrived(
        self, pages: Pages, digests: Digests, owners: Sequence[Owned], *, told: bool
    ) -> None:
        self.seen(Stage.ARRIVAL, pages, digests, owners, told=told)

    # What is found.

    def _compare(self, note: Note, *, told: bool = False) -> list[Violation]:
        """What to raise, where the mode raises."""
        with self._lock:
            found = self.ledger.note(note)
        if told:
            return []
        told_of = (self._tell(one) for one in found)
        return [violation for violation in told_of if violation is not None]

    def _tell(self, found: Finding | Early) -> Violation | None:
        before = found.read if isinstance(found, Early) else found.before
        sites = [_site(before.note), _site(found.page.note)]
        return self._policy.judge(told(found), [site for site in sites if site], agent="")

    def _in_flight(
        self,
        stage: Stage,
        memory: Memory,
        slots: Integers,
        owned: Owned,
        parts: Sequence[tuple[Sequence[int], Pages]],
        stack: Stack,
        *,
        writes: bool,
    ) -> None:
        """Pages are put where a transfer in flight reads or writes, or taken where one writes."""
        if stage is Stage.ARRIVAL:
            # Its own transfer may be in flight, as far as this process knows.
            return
        arrived = self._arrived.get(memory)
        empty = np.zeros((len(memory.regions), len(slots)), np.uint64)
        note = Note(
            stage, owned.owner, memory, slots, np.zeros_like(slots), empty, writes, stack=stack
        )
        note.ordinals[owned.positions] = owned.ordinals
        for transport in self.transports:
            for numbers, pages in parts:
                for use in transport.using(pages):
                    at = use.positions % len(slots)
                    touched = np.isin(at, owned.positions)
                    if not writes:
                        touched &= use.writes
                        if arrived is not None:
                            touched &= arrived[slots[at]] < use.posted
                    if not touched.any():
                        continue
                    first = int(np.flatnonzero(touched)[0])
                    region = numbers[int(use.positions[first]) // len(slots)]
                    page = Page(note, region, int(at[first]))
                    before = self._last(page) if writes else None
                    if writes and not use.writes and before and before.note.owner == owned.owner:
                        # A page that grows: whether its bytes changed is for digests to say.
                        continue
                    breach = in_flight(page, use.transfer, writes=use.writes, owner=before)
                    sites = [_site(before.note)] if before else []
                    sites.append(_site(note))
                    violation = self._policy.judge(
                        breach, [s for s in sites if s], agent="", transfer=use.transfer
                    )
                    if violation is not None:
                        self._digests.keep(violation)

    def _last(self, page: Page) -> Page | None:
        with self._lock:
            return self.ledger.last(page.note.memory, page.slot, page.region)

    def raise_found(self) -> None:
        """What was found since, here or in a transfer, where the mode raises."""
        self._digests.drain()
        violation = self._digests.raised()
        if violation is not None:
            raise violation

    # What is left of it.

    def entries(self) -> Iterable[Mapping[str, object]]:
        """What is kept, as a file gets it."""
        return entries(newest(self.ledger.notes()), self._digests.seed)


def _site(note: Note) -> Site | None:
    return Site(f"stage {note.stage}", note.stack) if note.stack is not None else None
