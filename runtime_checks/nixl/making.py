"""The checks of one transfer that is being made."""

from collections.abc import Callable, Sequence
from functools import partial

from kvlint.runtime_checks.asking import Ask, Asked, all_known, unasked
from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.columns import as_guessed, settle, uneven, uneven_runs
from kvlint.runtime_checks.destinations import written_twice
from kvlint.runtime_checks.nixl import lifetimes
from kvlint.runtime_checks.nixl.agents import Agent
from kvlint.runtime_checks.nixl.preparing import Prepared
from kvlint.runtime_checks.nixl.teller import Teller, Verdict
from kvlint.runtime_checks.pairing import mispaired, unequal_counts
from kvlint.runtime_checks.policy import Site
from kvlint.runtime_checks.selection import Selection, everything, select
from kvlint.runtime_checks.stacks import here
from kvlint.runtime_checks.transfers import Transfer, as_bytes


class Making(Verdict):
    """The checks of one transfer that is being made.

    looked  names of those that had something to decide by, and have decided it
    """

    def __init__(self, teller: Teller, agent: Agent, operation: str, *, prepped: bool) -> None:
        super().__init__()
        self.stack = here()
        self.looked: list[str] = []
        self.sides: tuple[Prepared, ...] = ()
        self.asked: tuple[Ask | None, ...] = (None, None)
        self._teller = teller
        self.agent = agent
        self._operation = operation
        self._prepped = prepped
        self._call = "make_prepped_xfer" if prepped else "initialize_xfer"

    def check(
        self,
        sides: tuple[Prepared, Prepared],
        indices: Sequence[object] | None,
        notification: object,
        number: int,
    ) -> None:
        """indices  of both sides; None where all that the lists have is moved"""
        self.sides = sides
        for side in sides:
            self.raises = self.raises or side.raises
            self._run("stale-list", partial(lifetimes.stale, side), side)
        ours, theirs = (
            self._select(side, indices[at]) if indices else everything(side.of)
            for at, side in enumerate(sides)
        )
        if ours is None or theirs is None:
            return
        if indices:
            self.looked += ("index-range", "index-width")
        self.transfer = Transfer(
            number=number,
            agent=self.agent.name,
            peer=sides[1].of.owner,
            operation=self._operation,
            local=ours,
            remote=theirs,
            notification=as_bytes(notification),
            stack=self.stack,
            call=self._call,
        )
        self._compare(ours, theirs)

    def _select(self, side: Prepared, given: object) -> Selection | None:
        selection: Selection | Breach | None = None
        policy = self._teller.policy
        if policy.armed("indices"):
            with policy.contained("indices"):
                selection = select(side.of, given)
        if isinstance(selection, Breach):
            self.tell(selection, side)
            return None
        return selection

    def _compare(self, ours: Selection, theirs: Selection) -> None:
        local, remote = self.sides
        if self._run("unequal-counts", lambda: unequal_counts(ours, theirs), local, remote):
            return
        uneven_sides = told = 0
        strays: list[tuple[Breach, Prepared]] = []
        if not self._prepped:
            for side in self.sides:
                if side.of.known:
                    uneven_sides += self._run("column", partial(uneven_runs, side.of), side)
                    told += 1
        else:
            both = (ours, theirs, local), (theirs, ours, remote)
            for (one, other, side), ask in zip(both, self.asked, strict=True):
                stray, asked = self._asked_for(one, ask)
                if stray is not None:
                    strays.append((stray, side))
                told += one.of.comparable or asked is not None
                guessed = as_guessed(one, other)
                if guessed.columns:
                    continue
                # What is as the engine asked for needs be no column.
                if stray is not None or asked is None or not all_known(one.of, asked):
                    uneven_sides += self._run("column", partial(uneven, guessed, other), side)
        if told == len(self.sides) and self._teller.policy.armed("column"):
            self.looked.append("column")
        if not uneven_sides:
            # Where a column is wrong the pairs are, too: one fault is told once.
            pairs = lambda: mispaired(ours, theirs, by_number=self._prepped)  # noqa: E731
            mispairs = self._run("pairing", pairs, local, remote)
            if ours.of.layered and theirs.of.layered and self._teller.policy.armed("pairing"):
                self.looked.append("pairing")
            if not mispairs and self._prepped:
                for stray, side in strays:
                    self.tell(stray, side)
                if not strays and not (ours.columns and theirs.columns):
                    self._teller.run("column", partial(settle, ours, theirs))
        writes = self._operation == "WRITE"
        destination, source = (theirs, ours) if writes else (ours, theirs)
        self._run(
            "duplicate-destination",
            lambda: written_twice(destination, source),
            remote if writes else local,
        )

    def _asked_for(
        self, selection: Selection, ask: Ask | None
    ) -> tuple[Breach | None, Asked | None]:
        """What is selected and was not asked for, or was and is not; and all that was asked for,
        where that is known."""
        check = "unasked-slot"
        if ask is not None and self._teller.policy.armed(check):
            with self._teller.policy.contained(check):
                asked = ask()
                return unasked(selection, asked), asked
        return None, None

    def _run(self, check: str, look: Callable[[], Breach | None], *sides: Prepared) -> bool:
        """Whether the check found something."""
        breach = self._teller.run(check, look)
        if breach is not None:
            self.tell(breach, *sides)
        return breach is not None

    def tell(self, breach: Breach, *sides: Prepared) -> None:
        sites = [Site("prep_xfer_dlist", side.stack) for side in sides if self._prepped]
        sites.append(Site(self._call, self.stack))
        peer = self.sides[1].of.owner
        raised = self._teller.tell(breach, sites, self.agent.name, peer)
        self.notes.append(breach.message)
        if breach.check.refused:
            self.refusal = self.refusal or raised
        else:
            self.raises = self.raises or raised
