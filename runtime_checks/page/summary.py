"""What a run comes to: one sentence, the facts it rests on, and what nobody has looked at."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from kvlint.drawing.words import count
from kvlint.runtime_checks.page.given import Given
from kvlint.runtime_checks.page.lanes import line_of
from kvlint.runtime_checks.page.markup import Child, clean, first, make, rows
from kvlint.runtime_checks.page.timeline import duration
from kvlint.runtime_checks.reading import Process
from kvlint.runtime_checks.settings import Mode

MOST_NAMED: Final = 8


def sentence(given: Given) -> tuple[str, str]:
    """`2 of 7 hypotheses are refuted, 1 is confirmed, 4 were not exercised; ` and, the other half,
    `2 violations were seen, 12 times in all.`"""
    return f"{_hypotheses(given)}; ", f"{_violations(given)}."


def facts(given: Given) -> Iterator[Child]:
    yield rows(
        ("run", _joined(process.run for process in given.processes) or given.name),
        ("engine", _versions(given, engine=True)),
        ("mode", _joined(process.mode for process in given.processes)),
        ("processes", _processes(given)),
        ("time", _time(given)),
        ("transfers", _transfers(given)),
        ("hypotheses", given.source and make("code", given.source)),
        ("versions", _versions(given, engine=False)),
        ("not seen", _listed(unseen(given))),
    )


def _listed(lines: Iterable[str]) -> Child:
    items = [make("li", line) for line in lines]
    return make("ul", items, class_="plain") if items else None


def unseen(given: Given) -> Iterator[str]:
    """What this run cannot tell, one line each."""
    processes, story = given.processes, given.story
    if not processes:
        yield "which processes were watched: no process has left its state here"
    modes = {process.mode for process in processes}
    if modes and not any(mode in set(Mode) and Mode(mode).reads for mode in modes):
        yield "the bytes: in this mode nobody compares what arrived with what was sent"
    unmet = [process for process in processes if not process.met]
    if unmet:
        yield f"{_those(unmet)}: NIXL was never imported there"
    unhooked = [process for process in processes if process.met and not process.hooked]
    if unhooked:
        yield f"transfers of {_those(unhooked)}: NIXL's classes could not be hooked there"
    for process in processes[:MOST_NAMED]:
        for check in process.switched_off[:MOST_NAMED]:
            yield f"{check} in process {process.pid}: switched off by an error of kvlint's own"
    made = sum(process.transfers for process in processes)
    if made > len(story.transfers):
        yield f"{count(made - len(story.transfers), 'transfer')} of {made:,}: the last are kept"
    uncompared = sum(process.uncompared for process in processes)
    if uncompared:
        yield f"whether {count(uncompared, 'transfer')} arrived: digested, and not compared"
    if not given.geometries:
        yield "how the pools lie in memory: no geometry was captured (KVLINT_CAPTURE)"
    if given.judged is None:
        yield "which of the code's assumptions held: no file of assumptions was given"
    yield from story.changes.apart[:MOST_NAMED]
    if story.unread:
        yield f"{count(len(story.unread), 'file')} of this folder, in part or all: see the end"


def _hypotheses(given: Given) -> str:
    if given.judged is None:
        return "No hypotheses were given"
    total = len(given.judged)
    if not total:
        return "The file of assumptions holds none"
    refuted, confirmed, rest = (
        len(given.answered(answer)) for answer in ("refuted", "confirmed", "not exercised")
    )
    if total == 1:
        one = given.judged[0].answer
        return f"The only hypothesis {'was' if one == 'not exercised' else 'is'} {one}"
    begun = f"{refuted:,} of {total:,} hypotheses {_is(refuted)} refuted"
    if not refuted:
        begun = f"None of {total:,} hypotheses is refuted"
    return (
        f"{begun}, {confirmed:,} {_is(confirmed)} confirmed, "
        f"{rest:,} {'was' if rest == 1 else 'were'} not exercised"
    )


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _violations(given: Given) -> str:
    found = given.story.violations
    changed = len({change.owner for change in given.story.changes.found})
    pages = f", and pages of {count(changed, 'request')} changed" if changed else ""
    if not found:
        return f"no violation was seen{pages}"
    times = sum(seen.count for seen in found)
    least = "" if all(seen.exact or seen.count == 1 for seen in found) else "at least "
    many = "once" if times == 1 else f"{least}{times:,} times"
    if len(found) == 1:
        return f"1 violation was seen {many}{pages}"
    many = "once each" if times == len(found) else f"{many} in all"
    return f"{count(len(found), 'violation')} were seen, {many}{pages}"


def _processes(given: Given) -> str:
    hooked = sum(process.hooked for process in given.processes)
    if not given.processes:
        return ""
    pools = sum(process.pools > 0 for process in given.processes)
    looked = f", {pools:,} had pools that were looked at" if pools else ""
    return f"{hooked:,} of {count(len(given.processes), 'process', 'processes')} used NIXL{looked}"


def _time(given: Given) -> str:
    line = line_of(given.story.transfers, given.numbered)
    if not line.begin:
        return ""
    begin = datetime.fromisoformat(line.begin)
    end = begin + timedelta(microseconds=line.span)
    since, until = (f"{moment:%Y-%m-%d %H:%M:%S.%f}"[:-3] for moment in (begin, end))
    if begin.date() == end.date():
        until = until.partition(" ")[2]
    return f"{since} to {until} UTC, {duration(line.span)}"


def _transfers(given: Given) -> str:
    found = given.story.transfers
    if not found:
        return "none recorded"
    line = line_of(found, ())
    lanes = [*line.lanes, *line.others]
    done = sum(lane.count("done") for lane in lanes)
    pairs = count(len(lanes), "pair")
    return f"{len(found):,} recorded, {done:,} of them done; between {pairs} of agents"


def _versions(given: Given, *, engine: bool) -> str:
    """Those of an engine, or all others."""
    engines = ("sglang", "vllm")
    found = {
        f"{name} {version}"
        for process in given.processes
        for name, version in process.versions.items()
        if (name in engines) is engine
    }
    return _joined(sorted(found))


def _those(processes: list[Process]) -> str:
    pids = [str(process.pid) for process in processes]
    shown, more = first(pids, MOST_NAMED)
    also = f" and {more:,} more" if more else ""
    return f"{'process' if len(pids) == 1 else 'processes'} {', '.join(shown)}{also}"


def _joined(names: Iterable[str]) -> str:
    shown, more = first([clean(name) for name in dict.fromkeys(names) if name], MOST_NAMED)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
