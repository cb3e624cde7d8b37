"""What a run has shown of the hypotheses that the checker has about its code. Pure.

A hypothesis is *refuted* where a violation of its code came out of a function that it names, or
where its relation breaks on the geometry of a process in which its code ran. It is *confirmed*
where its code ran, and its relation holds on the geometry of those processes, a check that sees
just this has looked and found nothing, or a guard settles it. All else a run has *not exercised*:
that nothing was seen proves nothing. Nor does a run speak of it where the relation breaks on the
geometry and each call was looked at and found right: then the code has gone another way.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from kvlint.drawing.words import count
from kvlint.geometry import Geometry
from kvlint.hypotheses import Hypothesis, Place
from kvlint.runtime_checks.called import Called, Process
from kvlint.runtime_checks.callers import MOST_NAMES
from kvlint.runtime_checks.capture import FOLDED
from kvlint.runtime_checks.captured import process_of, spoken
from kvlint.runtime_checks.listed import Listed
from kvlint.runtime_checks.passing import Passing
from kvlint.runtime_checks.reading import Seen, Story
from kvlint.verdicts import Outcome, Verdict, verdict

# Checks that see, of each call that they look at, whether the relation of a code holds there.
# Others see only what breaks: that no memory was freed too early shows nothing of the next time.
LOOKS: Final[Mapping[str, str]] = {
    "KV102": "out-of-region",
    "KV103": "column",
    "KV303": "pairing",
    "KV401": "index-width",
    "KV404": "slot-layout",
}
# Calls of NIXL's that such a check looks at; all others of a pool's own.
_LOOKED_AT: Final[Mapping[str, Sequence[str]]] = {
    "out-of-region": ("prep_xfer_dlist",),
    **dict.fromkeys(("column", "pairing", "index-width"), ("make_prepped_xfer", "initialize_xfer")),
}
# These are made where a value comes from, and their traces lead to its use; others the other way.
_SOURCES: Final = frozenset({"KV101", "KV105", "KV201", "KV202"})


class Answer(StrEnum):
    REFUTED = "refuted"
    CONFIRMED = "confirmed"
    NOT_EXERCISED = "not exercised"


@dataclass(frozen=True, slots=True)
class Judged:
    """
    reasons     a line each, what decides it first
    violations  that refute it
    calls       how many were seen to come out of its code
    on          label of each captured geometry, and the verdict on it
    """

    hypothesis: Hypothesis
    answer: Answer
    reasons: tuple[str, ...]
    violations: tuple[Seen, ...]
    calls: int
    on: tuple[tuple[str, Verdict], ...]

    @property
    def why(self) -> str:
        """The reasons in one line."""
        return "; ".join(self.reasons)

    @property
    def observations(self) -> int:
        """How often it was seen to be wrong, at least."""
        return sum(seen.count for seen in self.violations)


def judge(
    assumptions: Sequence[Hypothesis],
    story: Story,
    geometries: Mapping[str, Geometry],
    calls: Sequence[Called],
) -> list[Judged]:
    """Refuted ones first, then confirmed ones; else in the order given.

    geometries  by label, `RUN-PID-AGENT`
    """
    found = _Violated(assumptions, story.violations)
    run = _Run(story, geometries, calls)
    judged = [
        _judged(hypothesis, found.of.get(number, ()), number in found.near, run)
        for number, hypothesis in enumerate(assumptions)
    ]
    return sorted(judged, key=lambda one: list(Answer).index(one.answer))


class _Violated:
    """Which violations refute which hypothesis, by its number.

    A violation is of the functions that a hypothesis is made in; where it passes through none of
    any hypothesis, of those that the value comes to. Of several in one function it is of those
    whose lines it passes through, as far as lines tell, and of what nothing settles.

    of    the violations that refute it
    near  those with a violation of their kind in their own code, whomever that refutes
    """

    def __init__(self, hypotheses: Sequence[Hypothesis], violations: Sequence[Seen]) -> None:
        self.of: dict[int, list[Seen]] = defaultdict(list)
        self.near: set[int] = set()
        passing = Passing([_frames_of(seen) for seen in violations])
        made: dict[int, list[int]] = defaultdict(list)
        further: dict[int, list[int]] = defaultdict(list)
        for number, hypothesis in enumerate(hypotheses):
            code, check = hypothesis.code, LOOKS.get(hypothesis.code)
            for owners, places in ((made, hypothesis.places), (further, _onward(hypothesis))):
                for at in passing.through(places):
                    record = violations[at].record
                    if record.get("code") == code:
                        owners[at].append(number)
                    if code == record.get("code") or check == record.get("check"):
                        self.near.add(number)
        for at, seen in enumerate(violations):
            owners_of = made.get(at) or further.get(at) or []
            hits = {
                number: passing.lines(at, (*hypotheses[number].places, *hypotheses[number].trace))
                for number in owners_of
            }
            most = max(hits.values(), default=0)
            likely = [number for number in owners_of if hits[number] == most]
            unsettled = [n for n in likely if hypotheses[n].guard is None]
            for number in unsettled or likely:
                self.of[number].append(seen)


def _onward(hypothesis: Hypothesis) -> Sequence[Place]:
    """Where the value of a hypothesis comes to in the end. That what is on the way has run, or
    what came before, does not show that it was used."""
    if hypothesis.code not in _SOURCES:
        return ()
    made = {(place.span.path, place.definition) for place in hypothesis.places}
    stops = [(stop.span.path, stop.definition) in made for stop in hypothesis.trace]
    return hypothesis.trace[-1:] if True in stops[:-1] else ()


def _frames_of(seen: Seen) -> "list[object]":
    sites = seen.record.get("sites")
    stacks = [site.get("stack") for site in _list(sites) if isinstance(site, Mapping)]
    return [frame for stack in stacks for frame in _list(stack)]


def _list(value: object) -> "list[object]":
    return value if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class _Ran:
    """What was seen of a hypothesis's code.

    directly  whether its functions were on the stack; else what proves that they were
    """

    calls: Sequence[Called]
    directly: bool

    @property
    def processes(self) -> set[Process]:
        return {call.process for call in self.calls}

    @property
    def count(self) -> int:
        return sum(call.count for call in self.calls)

    def lists(self, process: Process) -> set[int]:
        return {n for call in self.calls if call.process == process for n in call.lists}

    def __str__(self) -> str:
        times: Counter[str] = Counter()
        for call in self.calls:
            times[call.call] += call.count
        told = [f"{number:,} {name}" for name, number in times.most_common()]
        how = "its code ran" if self.directly else "its class or module was in use"
        return f"{how} ({', '.join(told)})"


class _Run:
    """The calls and the geometry of a folder."""

    def __init__(
        self, story: Story, geometries: Mapping[str, Geometry], calls: Sequence[Called]
    ) -> None:
        self.calls = calls
        self.lost = story.lost
        # Processes with calls of which nobody knows where they came from.
        self.unplaced = {call.process for call in calls if not call.stack}
        self._passing = Passing([call.stack for call in calls])
        self._geometries = geometries
        # Ranks are alike but for where their memory lies: each question is decided once.
        one: dict[Geometry, Geometry] = {}
        anywhere = {label: _anywhere(geometry) for label, geometry in geometries.items()}
        self._anywhere = {label: one.setdefault(g, g) for label, g in anywhere.items()}
        self._parts: dict[tuple[str, frozenset[str]], Geometry] = {}
        self._lists = {(one.process, one.number): one for one in story.lists}

    def of(self, hypothesis: Hypothesis) -> _Ran:
        through = self._passing.through
        seen = through(hypothesis.places) or through(_onward(hypothesis))
        numbers = seen or self._passing.implied(hypothesis.places)
        return _Ran([self.calls[at] for at in sorted(numbers)], directly=bool(seen))

    def is_whole(self, label: str, ran: _Ran) -> bool:
        """Whether the lists of its own memory that the code has used are those of the geometry,
        with all of their regions, as far as lists are known."""
        process = process_of(label)
        if any(len(c.lists) >= MOST_NAMES for c in ran.calls if c.process == process):
            return False
        if self._geometries[label].engine == FOLDED:
            return True
        own = self._own(process, ran)
        named = [one for one in own if one.named]
        if own and not named:
            return False
        return all(one.named == len(one.regions) for one in named)

    def verdicts(self, hypothesis: Hypothesis, ran: _Ran) -> list[tuple[str, Verdict]]:
        """On each geometry. Where the code ran, only those lists count that it has used, as far as
        that is known."""
        processes, known = ran.processes, dict[int, Verdict]()
        found = []
        about_addresses = "address" in hypothesis.formula
        for label, geometry in (self._geometries if about_addresses else self._anywhere).items():
            process = process_of(label)
            if process in processes:
                geometry = self._used(label, process, ran)
            if id(geometry) not in known:
                known[id(geometry)] = verdict(hypothesis, geometry)
            found.append((label, known[id(geometry)]))
        return found

    def _own(self, process: Process, ran: _Ran) -> list[Listed]:
        """Lists of the process's own memory that the code has used."""
        lists = [self._lists.get((process, number)) for number in ran.lists(process)]
        return [one for one in lists if one is not None and one.side == "local"]

    def _used(self, label: str, process: Process, ran: _Ran) -> Geometry:
        """Of a geometry the lists that the code has used. What it has prepared itself lies in
        regions of lists that were declared, by their names."""
        geometry = self._geometries[label]
        if geometry.engine == FOLDED:
            lists = frozenset(f"kv.{number}" for number in ran.lists(process))
        else:
            used = {region.name for one in self._own(process, ran) for region in one.regions}
            lists = frozenset(one.list for one in geometry.regions if one.name in used)
            if not lists:
                return geometry
        if (label, lists) not in self._parts:
            regions = tuple(region for region in geometry.regions if region.list in lists)
            self._parts[label, lists] = replace(geometry, regions=regions)
        return self._parts[label, lists]


def _judged(hypothesis: Hypothesis, seen: Sequence[Seen], near: bool, run: _Run) -> Judged:
    ran = run.of(hypothesis)
    on = run.verdicts(hypothesis, ran)
    here = [(label, one) for label, one in on if process_of(label) in ran.processes]
    broken = [(label, one) for label, one in here if one.outcome is Outcome.BROKEN]
    holds = [(label, one) for label, one in here if one.outcome is Outcome.HOLDS]
    told = [(label, one) for label, one in holds if run.is_whole(label, ran)]

    def answered(answer: Answer, *reasons: str) -> Judged:
        return Judged(hypothesis, answer, reasons, tuple(seen), ran.count, tuple(on))

    looked, all_of_them = (0, False) if near else _looked(hypothesis, ran, run)
    silence = f"{LOOKS.get(hypothesis.code)} has looked at {count(looked, 'call')}, and found none"
    if broken and not seen and all_of_them:
        why = f"{ran}, and {silence} that rests on it"
        return answered(Answer.NOT_EXERCISED, why, f"would break on {_told(broken)}")
    if seen or broken:
        return answered(Answer.REFUTED, *_refuted(hypothesis, seen, broken, ran))
    evidence = []
    guard = hypothesis.guard
    # A guard that lets no such list through, and code that ran: what came there is not known.
    if guard is not None and ran.calls and (guard.relation is None or holds or not here):
        evidence.append(f"settled by {guard.place}")
    elif told:
        evidence.append(f"holds on {_told(told)}")
    if looked:
        evidence.append(f"{silence} wrong")
    if evidence:
        return answered(Answer.CONFIRMED, *evidence, str(ran))
    return answered(Answer.NOT_EXERCISED, *_not_exercised(ran, run, here, holds, on))


def _refuted(
    hypothesis: Hypothesis,
    seen: Sequence[Seen],
    broken: Sequence[tuple[str, Verdict]],
    ran: _Ran,
) -> Iterator[str]:
    if seen:
        number = sum(one.count for one in seen)
        least = "" if all(one.exact or one.count == 1 for one in seen) else "at least "
        first = str(seen[0].record.get("message"))
        yield f"by {least}{count(number, 'observation')}, first: {first}"
    if broken:
        yield f"breaks on {_told(broken)}"
    if hypothesis.guard is not None:
        yield f"its guard at {hypothesis.guard.place} does not hold"
    if ran.calls:
        yield str(ran)


def _looked(hypothesis: Hypothesis, ran: _Ran, run: _Run) -> tuple[int, bool]:
    """On how many calls the check of its code has looked, where all that was found is known; and
    whether these are all that it could have looked at."""
    check = LOOKS.get(hypothesis.code)
    if check is None or not ran.directly:
        return 0, False
    known = [call for call in ran.calls if call.process not in run.lost]
    looked = sum(call.checked.get(check, 0) for call in known)
    names = _LOOKED_AT.get(check, ())
    could = sum(call.count for call in ran.calls if call.call in names)
    return looked, looked == could > 0 and not ran.processes & run.unplaced


def _not_exercised(
    ran: _Ran,
    run: _Run,
    here: Sequence[tuple[str, Verdict]],
    holds: Sequence[tuple[str, Verdict]],
    on: Sequence[tuple[str, Verdict]],
) -> Iterator[str]:
    if ran.calls and holds:
        yield f"{ran}, on lists with regions that {spoken(holds[0][0])} has not"
    elif ran.calls and here:
        yield f"{ran}, and nothing is decided by {_told(here[:1])}"
    elif ran.calls:
        yield f"{ran}, and no geometry of that process was captured"
    elif run.unplaced:
        yield "its code was not seen in this run, as far as its calls were told apart"
    elif run.calls:
        yield "its code was not seen in this run"
    else:
        yield "this run has no record of calls"
    would = [(label, one) for label, one in on if one.outcome is Outcome.BROKEN]
    if would:
        yield f"would break on {_told(would)}"


def _anywhere(geometry: Geometry) -> Geometry:
    """The same without what is its process's alone."""
    regions = [replace(region, address=0) for region in geometry.regions]
    return replace(geometry, process=None, regions=tuple(regions))


def _told(verdicts: Sequence[tuple[str, Verdict]]) -> str:
    """The first in full, and how many more there are."""
    label, first = verdicts[0]
    more = f" and on {len(verdicts) - 1} more" if len(verdicts) > 1 else ""
    return f"{spoken(label)} ({first.why}){more}"
