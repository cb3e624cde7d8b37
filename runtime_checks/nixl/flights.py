"""Transfers from their post to their end, and what must not happen in between."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from threading import get_ident
from typing import Any

from kvlint.runtime_checks.checks import (
    COLLECTED_MEMORY,
    DEREGISTERED_IN_FLIGHT,
    NEVER_POLLED,
    OVERLAP_IN_FLIGHT,
    RELEASED_IN_FLIGHT,
    STALE_LIST,
    Breach,
)
from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.service import MODULE
from kvlint.runtime_checks.in_flight import InFlight
from kvlint.runtime_checks.locks import Lock
from kvlint.runtime_checks.nixl import lifetimes
from kvlint.runtime_checks.nixl.agents import Agent
from kvlint.runtime_checks.nixl.alike import Alike
from kvlint.runtime_checks.nixl.initiator import Initiator, Posted, Target
from kvlint.runtime_checks.nixl.preparing import Prepared
from kvlint.runtime_checks.nixl.teller import Teller, Verdict
from kvlint.runtime_checks.nixl.using import Use, uses
from kvlint.runtime_checks.policy import Site
from kvlint.runtime_checks.registrations import Registration
from kvlint.runtime_checks.stacks import here
from kvlint.runtime_checks.transfers import (
    DONE,
    FAILED,
    MOVING,
    RELEASED,
    Names,
    Transfer,
    as_bytes,
    now,
)
from kvlint.runtime_checks.violations import Violation


class Flights:
    """Transfers by the identity of their handles. What was never made here is none of ours."""

    def __init__(self, bindings: Any, teller: Teller, initiator: Initiator) -> None:
        self._in_progress = bindings.NIXL_IN_PROG
        self._teller = teller
        self._policy = teller.policy
        self._transfers: dict[int, Transfer] = {}
        self._sides: dict[int, tuple[Prepared, Prepared]] = {}
        # Those whose bytes are digested, from their post to their end.
        self._digested: dict[int, Posted] = {}
        self._names = Names()
        self._initiator = initiator
        self.numbers = count(1)
        self.start_afresh()

    def start_afresh(self) -> None:
        """In a forked child, where no transfer of the parent's is in flight."""
        self.lock = Lock()
        self._in_flight = InFlight()
        self._alike = Alike()
        self._over: deque[int] = deque()
        self._transfers.clear()
        self._sides.clear()
        self._digested.clear()

    def of(self, handle: Any) -> Transfer | None:
        return self._transfers.get(id(handle))

    def made(self, handle: Any, transfer: Transfer, sides: tuple[Prepared, Prepared]) -> None:
        transfer.raw = (handle._agent, handle._handle)
        self._transfers[id(handle)] = transfer
        self._sides[transfer.number] = sides
        self._policy.recorder.append(transfer)

    def posting(
        self,
        agent: Agent,
        handle: Any,
        notification: object,
        target: Callable[[Agent, str], Target | None],
    ) -> Verdict:
        """Before `transfer`: its lists still stand, their memory is there, and no other transfer
        in flight writes the same.

        target  of a peer, who is told what is digested
        """
        transfer = self.of(handle)
        if transfer is None or transfer.local is None or transfer.remote is None:
            return Verdict()
        verdict = Verdict(transfer=transfer)
        if transfer.state == MOVING:
            if self._moving(transfer):
                # Posted once more while it moves: NIXL refuses that, and it still moves.
                return Verdict()
            self._leave(transfer, DONE)
        message = as_bytes(notification) or transfer.notification
        transfer.name = self._names.next(transfer.agent, transfer.peer, message, transfer.number)
        lost = self._lost(transfer)
        for breach, side in lost:
            listed = Site("prep_xfer_dlist", side.stack)
            raises = self._tell(breach, transfer, listed, Site("transfer", here()))
            verdict.raises = verdict.raises or raises
        if self._policy.armed(OVERLAP_IN_FLIGHT.name):
            with self._policy.contained(OVERLAP_IN_FLIGHT.name):
                raises = self._overlap(agent, transfer)
                verdict.raises = verdict.raises or raises
        if verdict.raises is not None:
            return verdict
        if not lost and self._policy.armed(MODULE):
            with self._policy.contained(MODULE):
                posted = self._initiator.posting(
                    transfer, message, partial(target, agent, transfer.peer)
                )
                if posted is not None:
                    self._digested[transfer.number] = posted
        with self.lock:
            self._settle()
            self._in_flight.enter(transfer)
            self._alike.enter(transfer)
        transfer.state, transfer.polls, transfer.posted, transfer.ended = MOVING, 0, now(), None
        transfer.thread = get_ident()
        return verdict

    def _lost(self, transfer: Transfer) -> list[tuple[Breach, Prepared]]:
        """Sides whose memory is not what it was when the list was prepared."""
        looks = (STALE_LIST, lifetimes.stale), (COLLECTED_MEMORY, lifetimes.collected)
        found = []
        for side in self._sides[transfer.number]:
            for check, look in looks:
                breach = self._teller.run(check.name, partial(look, side))
                if breach is not None:
                    found.append((breach, side))
        return found

    def posted(self, transfer: Transfer, status: str | None) -> Violation | None:
        """After `transfer`, with its status, or None where NIXL raised."""
        if status is not None:
            self._policy.transferred(transfer.operation)
        if status == "PROC":
            return None
        return self._ends(transfer, DONE if status == "DONE" else FAILED)

    def polled(self, handle: Any, status: str | None) -> Violation | None:
        """After `check_xfer_state`, likewise."""
        transfer = self.of(handle)
        if transfer is None or transfer.state != MOVING:
            return None
        transfer.polls += 1
        if status == "PROC":
            return None
        return self._ends(transfer, DONE if status == "DONE" else FAILED)

    def releasing(self, handle: Any, *, dropped: bool = False) -> Verdict:
        """Before a handle is released, by a call or because nothing refers to it any more."""
        transfer = self.of(handle)
        if transfer is None:
            return Verdict()
        verdict = self._released_early(transfer, dropped=dropped)
        if verdict.raises is None:
            self._let_go(transfer)
        return verdict

    def _let_go(self, transfer: Transfer) -> None:
        """Nobody asks NIXL about the transfer from here on, nor is anybody in the middle of it."""
        if self.lock.mine:
            # A destructor in the middle of this thread's own work.
            transfer.raw = None
            return
        with self.lock:
            transfer.raw = None

    def _released_early(self, transfer: Transfer, *, dropped: bool) -> Verdict:
        if transfer.state != MOVING:
            return Verdict()
        if self._moving(transfer):
            breach = lifetimes.released(transfer, dropped=dropped)
        elif self._unpolled(transfer):
            breach = lifetimes.never_polled(transfer)
        else:
            return Verdict()
        if not self._policy.armed(breach.check.name):
            return Verdict()
        call = "__del__" if dropped else "release"
        raises = self._tell(breach, transfer, _made(transfer), Site(call, here()))
        return Verdict(raises=raises if breach.check is RELEASED_IN_FLIGHT else None)

    def released(self, handle: Any) -> None:
        transfer = self.of(handle)
        if transfer is not None:
            self._close(transfer)

    def forget(self, handle: Any) -> None:
        """The handle is gone; another may get its identity."""
        transfer = self._transfers.pop(id(handle), None)
        if transfer is not None:
            self._close(transfer)
            self._sides.pop(transfer.number, None)

    def _close(self, transfer: Transfer) -> None:
        self._leave(transfer, RELEASED if transfer.state == MOVING else transfer.state)
        transfer.closes()

    def deregistering(self, agent: Agent, registrations: list[Registration]) -> Verdict:
        """Before memory is deregistered: no transfer may still use it."""
        with self.lock:
            self._settle()
            moving = [w for w in self._in_flight.writing() if isinstance(w, Transfer)]
        for transfer in moving:
            for registration in registrations:
                breach = self._teller.run(
                    DEREGISTERED_IN_FLIGHT.name,
                    partial(lifetimes.deregistered, transfer, agent, registration),
                )
                if breach is not None and self._still_moving(transfer, agent):
                    call = Site("deregister_memory", here())
                    return Verdict(raises=self._tell(breach, transfer, _made(transfer), call))
        return Verdict()

    def using(self, pages: Pages, is_here: Callable[[str], bool]) -> list[Use]:
        """What transfers whose end nobody has seen do with these pages. NIXL is asked only by the
        thread that has posted one: its agent may be in use by another."""
        found: list[Use] = []
        for transfer in list(self._transfers.values()):
            if transfer.state != MOVING or transfer.heard:
                continue
            used = list(uses(transfer, pages, is_here))
            if used and transfer.thread == get_ident():
                with self.lock:
                    if not self._moving(transfer):
                        continue
            found += used
        return found

    def heard(self, name: str) -> None:
        """See `Alike`."""
        self._alike.heard(name)

    def at_exit(self) -> None:
        """Transfers that were posted and never asked about."""
        for transfer in list(self._transfers.values()):
            if transfer.state == MOVING and self._unpolled(transfer):
                breach = self._teller.run(
                    NEVER_POLLED.name, partial(lifetimes.never_polled, transfer)
                )
                if breach is not None:
                    self._tell(breach, transfer, _made(transfer))
                # Its handle is dropped after this, and that is not told again.
                transfer.unpolled_told = True

    def _unpolled(self, transfer: Transfer) -> bool:
        """Unless nobody counts any more."""
        known = transfer.polls > 0 or transfer.unpolled_told
        return not known and self._policy.armed("polling")

    def _overlap(self, agent: Agent, transfer: Transfer) -> Violation | None:
        asked = set[int]()
        while True:
            with self.lock:
                self._settle()
                clash = self._in_flight.clash(transfer)
                other = self._in_flight.get(clash.other) if clash else None
            if clash is None or not isinstance(other, Transfer) or other.number in asked:
                return None
            asked.add(other.number)
            if self._still_moving(other, agent):
                break
            # It had ended, and is out of the way: there may be another one behind it.
        breach = lifetimes.overlapping(transfer, other, clash.position)
        return self._tell(breach, transfer, _made(other), Site("transfer", here()))

    def _still_moving(self, transfer: Transfer, agent: Agent) -> bool:
        """Whether a transfer thought to be in flight still is. Its own agent may be asked where
        the engine is in a call to it anyway; another one may be in use by another thread."""
        if transfer.heard:
            return False
        if transfer.agent != agent.name:
            return True
        with self.lock:
            # Its handle is not freed as long as this is held.
            if self._moving(transfer):
                return True
        self._leave(transfer, DONE)
        return False

    def _moving(self, transfer: Transfer) -> bool:
        """What NIXL says; an error is an end, too."""
        if transfer.raw is None:
            return False
        agent, handle = transfer.raw
        try:
            return bool(agent.getXferStatus(handle) == self._in_progress)
        except Exception:
            return False

    def _ends(self, transfer: Transfer, state: str) -> Violation | None:
        raises, posted = None, self._digested.get(transfer.number)
        if state == FAILED:
            self._initiator.failed()
        if posted is not None and state == DONE and self._policy.armed(MODULE):
            with self._policy.contained(MODULE):
                readable = not self._lost(transfer)
                raises = self._initiator.ended(transfer, posted, _made(transfer), readable=readable)
        self._leave(transfer, state)
        return raises

    def _leave(self, transfer: Transfer, state: str) -> None:
        was_moving = transfer.state == MOVING
        transfer.state = state
        self._digested.pop(transfer.number, None)
        if not was_moving:
            return
        transfer.ended = now()
        # Whoever has the lock next does the rest: a destructor may be in the middle of its work.
        self._over.append(transfer.number)
        if not self.lock.mine:
            with suppress(TimeoutError), self.lock:
                self._settle()

    def _tell(self, breach: Breach, transfer: Transfer, *sites: Site) -> Violation | None:
        return self._teller.tell(breach, sites, transfer.agent, transfer.peer, transfer)

    def _settle(self) -> None:
        """What destructors could not do themselves. The caller holds the lock."""
        while self._over:
            number = self._over.popleft()
            self._in_flight.leave(number)
            self._alike.leave(number)


def _made(transfer: Transfer) -> Site:
    """The call that made it."""
    return Site(transfer.call, transfer.stack)
