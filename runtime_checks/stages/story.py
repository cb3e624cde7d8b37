"""Where the pages of a request first changed, out of what all processes have noted of it. Pure,
and without numpy: it reads files where no engine is installed.

A page is known by its request, its region and its ordinal there, in whichever process it lies.
Each look at it has one before it: in the same process the last one, and for what arrives the send
that was nearest before it. A store says what the page holds from then on.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kvlint.runtime_checks.stages.looks import (
    FIGURES,
    NOTHING,
    ORDER,
    WRITING,
    Note,
    Record,
    Step,
    notes_of,
)

PageName = tuple[str, int]
"""Key of a region, and ordinal in the request."""


@dataclass(frozen=True, slots=True)
class Change:
    """A page of a request that held something else than at the stage before.

    key     of the region, the same in each process; `region` is its name for people
    steps   of that page, up to where it first differs, which is the last
    before  the number among the steps of the one that it differs from
    holder  owner, region and ordinal of the page whose content it holds, where one alone does
    writer  owner, stage and ordinal of what was put in its place in between
    pages   how many pages of the request first differ there
    """

    owner: str
    request: bool
    key: str
    region: str
    ordinal: int
    steps: tuple[Step, ...]
    before: int
    holder: tuple[str, str, int] | None = None
    writer: tuple[str, str, int] | None = None
    pages: int = 1

    @property
    def here(self) -> Step:
        return self.steps[-1]

    @property
    def early(self) -> bool:
        """Whether it was read where it was sent to, and had not arrived."""
        then, here = self.steps[self.before], self.here
        moved = (then.process, then.pool, then.slot) != (here.process, here.pool, here.slot)
        return here.stage == "read" and then.stage == "send" and moved

    @property
    def across(self) -> bool:
        """Whether the two looks are of different processes, so that neither has told it."""
        return self.here.process != self.steps[self.before].process


_Look = tuple[Note, int]


@dataclass(slots=True)
class Changes:
    """
    found     by request, and by time
    apart     one line a request whose processes have different seeds
    """

    found: list[Change] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)


def changes(records: Iterable[Record]) -> Changes:
    """What is no record of a stage is passed over."""
    notes = notes_of(records)
    by_owner: dict[str, list[Note]] = defaultdict(list)
    for note in notes:
        by_owner[note.owner].append(note)
    told = Changes()
    for owner, its in by_owner.items():
        seeds = {note.seed for note in its}
        if len(seeds) > 1:
            told.apart.append(_apart(owner, its))
        for seed in sorted(seeds):
            told.found += _of_owner([note for note in its if note.seed == seed])
    told.found = [_with_cause(change, notes) for change in _held(told.found, notes)]
    told.found.sort(key=lambda change: change.here.time)
    return told


def _apart(owner: str, notes: Iterable[Note]) -> str:
    pids = sorted({str(note.process[1]) for note in notes})
    return (
        f"request {owner}: processes {', '.join(pids)} have different seeds, so what one has seen "
        "cannot be compared with what another has: give them one KVLINT_DIGEST_KEY"
    )


def _of_owner(notes: Sequence[Note]) -> Iterator[Change]:
    """Of each pair of stages the first page that first differs there."""
    pages: dict[PageName, list[_Look]] = defaultdict(list)
    for note in notes:
        for key in note.digests:
            for at, ordinal in enumerate(note.ordinals):
                pages[key, ordinal].append((note, at))
    found: dict[object, tuple[Change, int]] = {}
    for (key, ordinal), looks in sorted(pages.items(), key=lambda page: page[0][1]):
        change, pair = _first(key, ordinal, looks)
        if change is not None:
            first, count = found.get(pair, (change, 0))
            found[pair] = first, count + 1
    for change, count in found.values():
        yield replace(change, pages=count)


def _first(key: str, ordinal: int, looks: list[_Look]) -> tuple[Change | None, object]:
    """Where a page first differs, and between which two notes."""
    digests = {note.digest(key, at) for note, at in looks}
    if len(digests) == 1:
        return None, None
    looks.sort(key=lambda look: (look[0].time, ORDER.index(look[0].stage), look[0].number))
    for number, (note, at) in enumerate(looks):
        before = _before(looks, number)
        if before is None:
            continue
        earlier, there = looks[before]
        if earlier.digest(key, there) == note.digest(key, at):
            continue
        if earlier.place != note.place and _of_another_rank(key, looks, number):
            continue
        chosen = looks[:number]
        if before > number:
            before, chosen = number, [*chosen, looks[before]]
        steps = [one.step(key, position) for one, position in [*chosen, (note, at)]]
        region = note.regions[key]
        change = Change(note.owner, note.request, key, region, ordinal, tuple(steps), before)
        return change, (earlier.name, note.name)
    return None, None


def _before(looks: Sequence[_Look], number: int) -> int | None:
    """Which look, of the same page, this one must agree with."""
    note = looks[number][0]
    if note.stage == "store":
        return None
    own = [
        at
        for at, (other, _) in enumerate(looks)
        if other.process == note.process and other.number < note.number
    ]
    sent = [at for at, (other, _) in enumerate(looks) if other.stage == "send"]
    if note.stage == "arrival":
        # What was read before it came is not what it should be.
        own = [at for at in own if looks[at][0].stage != "read"]
        return _nearest(looks, sent, note.time) if sent else max(own, default=None)
    if own:
        # Ranks of one process each have a page of the request in a pool of their own.
        there = [at for at in own if looks[at][0].place == note.place]
        return max(there or own, key=lambda at: looks[at][0].number)
    others = sent or [at for at, (other, _) in enumerate(looks) if other.stage == "store"]
    return _nearest(looks, [at for at in others if at != number], note.time)


def _of_another_rank(key: str, looks: Sequence[_Look], number: int) -> bool:
    """Whether a look agrees with what another pool has sent, or stored: ranks have one request
    and the same regions, and other bytes each."""
    note, at = looks[number]
    for stage in "send", "store":
        among: dict[object, list[int]] = defaultdict(list)
        for other, (earlier, _) in enumerate(looks):
            if earlier.stage == stage and earlier.place != note.place:
                among[earlier.place].append(other)
        nearest = [_nearest(looks, its, note.time) for its in among.values()]
        found = [looks[one] for one in nearest if one is not None]
        if found:
            return any(one.digest(key, there) == note.digest(key, at) for one, there in found)
    return False


def _nearest(looks: Sequence[_Look], among: Sequence[int], time: int) -> int | None:
    """The last before that time; clocks of two machines may differ, else the first after it."""
    earlier = [at for at in among if looks[at][0].time <= time]
    return max(earlier, default=min(among, default=None))


def _held(found: Sequence[Change], notes: Iterable[Note]) -> Iterator[Change]:
    """With the page whose content each holds, if just one other does."""
    wanted = {change.here.digest for change in found} - {NOTHING}
    holders: dict[str, set[tuple[str, str, int]]] = defaultdict(set)
    names: dict[tuple[str, str, int], str] = {}
    for note in notes if wanted else ():
        if note.stage == "read":
            # It may have been as wrong.
            continue
        for key, digits in note.digests.items():
            for at, ordinal in enumerate(note.ordinals):
                digest = digits[FIGURES * at : FIGURES * (at + 1)]
                if digest in wanted:
                    page = note.owner, key, ordinal
                    holders[digest].add(page)
                    names.setdefault(page, note.regions[key])
    for change in found:
        own = change.owner, change.key, change.ordinal
        others = list(holders[change.here.digest] - {own})
        if len(others) == 1:
            owner, _, ordinal = others[0]
            yield replace(change, holder=(owner, names[others[0]], ordinal))
        else:
            yield change


def _with_cause(change: Change, notes: Sequence[Note]) -> Change:
    """With what was put in its place, then or now, after it was right: by another owner."""
    then, here = change.steps[change.before], change.here
    places = {(step.process, step.pool, step.slot) for step in (then, here)}
    begin, end = sorted((then.time, here.time))
    for note in reversed(notes):
        if note.owner == change.owner or note.stage not in WRITING:
            continue
        if not begin <= note.time <= end:
            continue
        for at, slot in enumerate(note.slots):
            if (note.process, note.pool, slot) in places:
                return replace(change, writer=(note.owner, note.stage, note.ordinals[at]))
    return change
