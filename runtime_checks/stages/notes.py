"""What is noted of pages at a stage, and what comparing notes finds."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.regions import Flags, Integers
from kvlint.runtime_checks.stacks import Stack
from kvlint.runtime_checks.stages.memory import Memory


class Stage(StrEnum):
    """In the order in which a page comes by them."""

    STORE = "store"
    WRITE_BACK = "write-back"
    LOAD_BACK = "load-back"
    SEND = "send"
    ARRIVAL = "arrival"
    READ = "read"


@dataclass(frozen=True, eq=False)
class Note:
    """Pages of a request at one stage.

    owner     the request's id, or what else names pages of which nobody has said whose they are
    memory    the pool that they lie in
    slots     (n,) there
    ordinals  (n,) which pages of the request they are
    digests   (R, n) of what they hold, region by region of the pool
    seen      (R,) regions that were looked at; None for all
    writes    whether the stage puts bytes into the pages, not only takes them from there
    time      nanoseconds since the epoch
    request   whether the owner is a request
    number    in the ledger, from 1
    """

    stage: Stage
    owner: str
    memory: Memory
    slots: Integers
    ordinals: Integers
    digests: Digests
    writes: bool
    time: int = 0
    stack: Stack | None = None
    seen: Flags | None = None
    request: bool = True
    number: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """One page of one note: region and position there."""

    note: Note
    region: int
    at: int

    @property
    def digest(self) -> int:
        return int(self.note.digests[self.region, self.at])

    @property
    def slot(self) -> int:
        return int(self.note.slots[self.at])

    @property
    def ordinal(self) -> int:
        return int(self.note.ordinals[self.at])


@dataclass(frozen=True, slots=True)
class Finding:
    """A page that holds something else than it did.

    before  the page at the stage before
    holder  the page whose content it holds, where that is known
    writer  what was put there in between, for another request or by nobody known
    pages   how many pages of the note are found so
    """

    page: Page
    before: Page
    holder: Page | None
    writer: Page | None
    pages: int


@dataclass(frozen=True, slots=True)
class Early:
    """A page that comes now, and was read before, when it held something else."""

    page: Page
    read: Page
    pages: int


@dataclass(frozen=True, slots=True)
class Owned:
    """Pages of one owner among some: positions there, and (n,) which pages of the owner."""

    owner: str
    positions: Integers
    ordinals: Integers
    request: bool = True


def looked_at(note: Note) -> Flags:
    """(R,) of each region whether it was looked at."""
    return np.ones(len(note.digests), bool) if note.seen is None else note.seen
