"""What pages held at each stage, and whether they still do. Pure: digests in, findings out.

A page of a request is known by the request, the region and the page's ordinal in the request,
wherever it lies: a store says what it holds, and every later stage must find the same. Who else
has written the memory it lies in is known by pool and slot.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.digests.matrix import NOWHERE, belongs
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.regions import Flags, Integers
from kvlint.runtime_checks.stages.memory import Memory
from kvlint.runtime_checks.stages.notes import Early, Finding, Note, Owned, Page, Stage, looked_at

# Digests that are kept, eight bytes each, and notes that hold them; the oldest notes go first.
MOST: Final = 4 << 20
NOTES: Final = 1 << 16

_POSITIONS: Final = 32
_REGIONS: Final = 12
_POSITION: Final = (1 << _POSITIONS) - 1


class Ledger:
    """What one process has seen. Not thread-safe: whoever owns it holds a lock."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept = 0
        self._numbers = 0
        self._notes: OrderedDict[int, Note] = OrderedDict()
        self._of_owner: dict[str, deque[Note]] = {}
        # Of each slot of a pool the number of its last note, and its position there.
        self._last: dict[Memory, tuple[Integers, Integers]] = {}
        # Positions that were read and never written before, by note.
        self._unfounded: dict[int, Flags] = {}

    def notes(self) -> list[Note]:
        """What is kept, oldest first."""
        return list(self._notes.copy().values())

    def note(self, note: Note) -> list[Finding | Early]:
        """Keep it. What it shows to have changed: of pages that hold another's content, and of
        others, the first."""
        self._numbers += 1
        note = replace(note, number=self._numbers)
        found: list[Finding | Early] = []
        if note.stage is not Stage.STORE and not self._same_as_last(note):
            before, places = self._before(note)
            wrong = (before > 0) & (note.digests != self._digests(note, before, places))
            if wrong.any():
                wrong &= ~self._of_another_rank(note, before)
            if wrong.any():
                found += self._findings(note, before, places, wrong)
        if note.stage is Stage.ARRIVAL:
            found += self._early(note)
        self._keep(note)
        return found

    def last(self, memory: Memory, slot: int, region: int) -> Page | None:
        """What was last noted of a page of a pool."""
        numbers, positions = self._at(memory, np.array([slot]))
        number = int(numbers[0])
        return Page(self._notes[number], region, int(positions[0])) if number else None

    def forget(self, memory: Memory, slots: Integers) -> None:
        """Something has been put there that nobody looks at."""
        last = self._last.get(memory)
        if last is not None:
            last[0][slots] = 0

    def drop(self, owner: str) -> None:
        """What the owner's pages hold is not known any longer."""
        self._of_owner.pop(owner, None)

    def owners(self, memory: Memory, slots: Integers) -> list[Owned]:
        """Whose pages lie in the slots, by their last notes. What nobody has noted is left out."""
        numbers, positions = self._at(memory, slots)
        found: dict[str, list[tuple[Integers, Integers]]] = {}
        kinds: dict[str, bool] = {}
        for number in np.unique(numbers[numbers > 0]).tolist():
            here, note = np.flatnonzero(numbers == number), self._notes[number]
            found.setdefault(note.owner, []).append((here, note.ordinals[positions[here]]))
            kinds[note.owner] = note.request
        return [
            Owned(
                owner,
                np.concatenate([here for here, _ in parts]),
                np.concatenate([ordinals for _, ordinals in parts]),
                kinds[owner],
            )
            for owner, parts in found.items()
        ]

    # What was there before.

    def _same_as_last(self, note: Note) -> bool:
        """Whether just these pages held just this when they were last seen: so it mostly is, and
        nothing else needs to be looked for."""
        of_owner = self._of_owner.get(note.owner)
        if not of_owner:
            return False
        last = of_owner[-1]
        if note.stage is Stage.ARRIVAL and last.stage is Stage.READ:
            # It may have been read too early.
            return False
        return (
            last.digests.shape == note.digests.shape
            and last.seen is None
            and note.seen is None
            and last.memory.keys == note.memory.keys
            and np.array_equal(last.ordinals, note.ordinals)
            and np.array_equal(last.digests, note.digests)
        )

    def _before(self, note: Note) -> tuple[Integers, Integers]:
        """(R, n) of each page the number of the note that knows what it should hold, 0 for none,
        and where the page is there: region << 32 | position."""
        regions, count = note.digests.shape
        numbers = np.zeros((regions, count), np.int64)
        places = np.zeros((regions, count), np.int64)
        wanted = looked_at(note)
        missing = int(wanted.sum()) * count
        comes = note.stage is Stage.ARRIVAL
        known = list(reversed(self._of_owner.get(note.owner, ())))
        if not note.writes:
            # Ranks of one process each have a page of the request in a pool of their own.
            known.sort(key=lambda earlier: earlier.memory != note.memory)
        for earlier in known:
            if not missing:
                break
            if comes and earlier.stage is Stage.READ:
                # It may have been read too early.
                continue
            rows = _rows_in(earlier, note, wanted)
            at = _positions(earlier.ordinals, note.ordinals)
            fresh = (numbers == 0) & (rows >= 0)[:, None] & (at >= 0)[None, :]
            if fresh.any():
                numbers[fresh] = earlier.number
                places[fresh] = ((rows[:, None] << _POSITIONS) | at[None, :])[fresh]
                missing -= int(fresh.sum())
        if note.stage is Stage.READ and missing:
            unfounded: Flags = np.all(numbers == 0, axis=0)
            self._unfounded[note.number] = unfounded
        if missing and note.stage in (Stage.SEND, Stage.READ):
            # Pages of a shared prefix: another request has stored them.
            last, at = self._at(note.memory, note.slots)
            for number in np.unique(last[last > 0]).tolist():
                earlier = self._notes[number]
                rows = np.arange(regions)
                held = wanted & looked_at(earlier)
                fresh = (numbers == 0) & held[:, None] & (last == number)[None, :]
                numbers[fresh] = number
                places[fresh] = ((rows[:, None] << _POSITIONS) | at[None, :])[fresh]
        return numbers, places

    def _of_another_rank(self, note: Note, numbers: Integers) -> Flags:
        """(R, n) pages that are not as the last pool that they were seen in has them, but as
        another one: ranks have one request and the same regions, and other bytes each."""
        right = np.zeros(note.digests.shape, bool)
        foreign = np.zeros(note.digests.shape, bool)
        for number in np.unique(numbers[numbers > 0]).tolist():
            if self._notes[number].memory != note.memory:
                foreign |= numbers == number
        if not foreign.any():
            return right
        seen: dict[Memory, Flags] = {}
        wanted = looked_at(note)
        for earlier in reversed(self._of_owner.get(note.owner, ())):
            if earlier.memory == note.memory or earlier.stage is Stage.READ:
                continue
            rows = _rows_in(earlier, note, wanted)
            at = _positions(earlier.ordinals, note.ordinals)
            there = (rows >= 0)[:, None] & (at >= 0)[None, :]
            if not there.any():
                continue
            last = seen.setdefault(earlier.memory, np.zeros(right.shape, bool))
            right |= there & ~last & (earlier.digests[rows[:, None], at[None, :]] == note.digests)
            last |= there
        return right & foreign

    def _digests(self, note: Note, numbers: Integers, places: Integers) -> Digests:
        """(R, n) of the pages at these places; the note's own where there are none."""
        found = note.digests.copy()
        for number in np.unique(numbers[numbers > 0]).tolist():
            here = numbers == number
            rows, at = places[here] >> _POSITIONS, places[here] & _POSITION
            found[here] = self._notes[number].digests[rows, at]
        return found

    def _at(self, memory: Memory, slots: Integers) -> tuple[Integers, Integers]:
        """(n,) number of the last note of each slot, 0 for none, and positions there."""
        last = self._last.get(memory)
        if last is None:
            return np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)
        numbers, positions = last[0][slots], last[1][slots].astype(np.int64)
        oldest = next(iter(self._notes), self._numbers + 1)
        numbers[numbers < oldest] = 0
        return numbers, positions

    # What has changed.

    def _findings(
        self, note: Note, numbers: Integers, places: Integers, wrong: Flags
    ) -> Iterator[Finding]:
        regions, at = np.nonzero(wrong)
        holders = self._holders(note, regions, at)
        misplaced = np.array([holder is not None for holder in holders])
        for kind in (misplaced, ~misplaced):
            if not kind.any():
                continue
            first = int(np.flatnonzero(kind)[0])
            region, position = int(regions[first]), int(at[first])
            place = int(places[region, position])
            before = Page(
                self._notes[int(numbers[region, position])],
                place >> _POSITIONS,
                place & _POSITION,
            )
            page = Page(note, region, position)
            writer = self._writer(page, before)
            yield Finding(page, before, holders[first], writer, int(kind.sum()))

    def _holders(self, note: Note, regions: Integers, at: Integers) -> Sequence[Page | None]:
        """Of pages that are wrong the page whose content each holds, where just one is known to."""
        owners: dict[str, int] = {}
        keys: dict[str, int] = {}

        def labels(of: Note) -> Integers:
            owner = owners.setdefault(of.owner, len(owners))
            rows = np.array([keys.setdefault(key, len(keys)) for key in of.memory.keys])
            ordinals = of.ordinals[None, :]
            return (((owner << _REGIONS) | rows[:, None]) << _POSITIONS) | ordinals

        found = note.digests[regions, at]
        # What was found by reading may be as wrong.
        known_from = (one for one in self._notes.values() if one.stage is not Stage.READ)
        near = [one for one in known_from if np.isin(one.digests, found).any()]
        if not near:
            return [None] * len(found)
        known = np.concatenate([one.digests.ravel() for one in near])
        of = np.concatenate([labels(one).ravel() for one in near])
        own = labels(note)[regions, at]
        told = belongs(found, found ^ np.uint64(1), known, of, own)
        where = np.cumsum([0] + [one.digests.size for one in near])
        pages: list[Page | None] = []
        for label, digest in zip(told.tolist(), found.tolist(), strict=True):
            if label == NOWHERE:
                pages.append(None)
                continue
            index = int(np.flatnonzero((of == label) & (known == np.uint64(digest)))[-1])
            which = int(np.searchsorted(where, index, side="right")) - 1
            row, position = divmod(index - int(where[which]), near[which].digests.shape[1])
            pages.append(Page(near[which], row, position))
        return pages

    def _writer(self, page: Page, before: Page) -> Page | None:
        """The last that was put into the memory of the page, then or now, after it was right."""
        places = {(before.note.memory, before.slot), (page.note.memory, page.slot)}
        for number in reversed(self._notes):
            if number <= before.note.number:
                break
            other = self._notes[number]
            if not other.writes or other.owner == page.note.owner:
                continue
            for memory, slot in places:
                if other.memory == memory:
                    there = np.flatnonzero(other.slots == slot)
                    if len(there):
                        return Page(other, min(page.region, len(memory.regions) - 1), int(there[0]))
        return None

    def _early(self, note: Note) -> Iterator[Early]:
        numbers, positions = self._at(note.memory, note.slots)
        for number in np.unique(numbers[numbers > 0]).tolist():
            unfounded, read = self._unfounded.get(number), self._notes[number]
            if unfounded is None or read.owner != note.owner:
                continue
            here = np.flatnonzero((numbers == number) & unfounded[positions])
            then, now = read.digests[:, positions[here]], note.digests[:, here]
            changed = (then != now) & (looked_at(note) & looked_at(read))[:, None]
            regions, at = np.nonzero(changed)
            if len(at):
                region, first = int(regions[0]), int(here[at[0]])
                came = Page(note, region, first)
                yield Early(came, Page(read, region, int(positions[first])), len(at))

    # What is kept.

    def _keep(self, note: Note) -> None:
        self._notes[note.number] = note
        self._of_owner.setdefault(note.owner, deque()).append(note)
        last = self._last.get(note.memory)
        if last is None:
            slots = note.memory.slots
            last = self._last[note.memory] = np.zeros(slots, np.int64), np.zeros(slots, np.int32)
        last[0][note.slots] = note.number
        last[1][note.slots] = np.arange(len(note.slots))
        self._kept += note.digests.size
        while self._kept > self._most or len(self._notes) > NOTES:
            _, oldest = self._notes.popitem(last=False)
            self._kept -= oldest.digests.size
            self._unfounded.pop(oldest.number, None)
            of_owner = self._of_owner.get(oldest.owner)
            if of_owner and of_owner[0] is oldest:
                of_owner.popleft()
                if not of_owner:
                    del self._of_owner[oldest.owner]


def _rows_in(earlier: Note, note: Note, wanted: NDArray[np.bool_]) -> Integers:
    """(R,) of each region of the note's pool its number in the earlier one's, -1 for none."""
    if earlier.memory == note.memory:
        rows = np.arange(len(wanted))
    else:
        numbers = {key: number for number, key in enumerate(earlier.memory.keys)}
        rows = np.array([numbers.get(key, -1) for key in note.memory.keys], np.int64)
    return np.where(wanted & (rows >= 0) & looked_at(earlier)[rows], rows, -1)


def _positions(among: Integers, wanted: Integers) -> Integers:
    """(n,) where each of the wanted ordinals first stands among others, -1 for nowhere."""
    if not len(among):
        return np.full(len(wanted), -1)
    order = np.argsort(among, kind="stable")
    at = np.minimum(np.searchsorted(among, wanted, sorter=order), len(among) - 1)
    return np.where(among[order[at]] == wanted, order[at], -1)
