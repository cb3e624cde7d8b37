"""The whole static run as one call: project, paths and rules in, a report out. No printing."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kvlint.engine.discover import Files, discover
from kvlint.engine.errors import FileError, InternalError, RuleError
from kvlint.engine.record import Record
from kvlint.engine.syntax import Looked, look
from kvlint.engine.tasks import Died, done
from kvlint.engine.triggers import speaker, spoken
from kvlint.engine.unit import Unit, unit
from kvlint.findings import Directive, Fault, Finding, Report
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.memory import Search
    from kvlint.engine.cache import Cache

# From this many files on, two processes share the work.
APART = 30
WORKERS = 2
# Files whose syntax is asked at once: few enough that both end at the same time.
CHUNK = 50

# How many pieces of the run are done, and of how many.
OnProgress = Callable[[int, int], None]


def _raise(failure: InternalError) -> None:
    raise failure


def _ignore(done: int, total: int) -> None:
    """Nobody watches."""


def check(
    project: Path,
    paths: Sequence[Path],
    rules: Sequence[Rule],
    on_failure: Callable[[InternalError], None] = _raise,
    on_progress: OnProgress | None = None,
) -> Report:
    """What the rules find in `paths`, knowing all of `project`.

    A file that cannot be read or parsed is a fault of the report and stops nothing. A rule that
    raises is handed to `on_failure`: when that returns, what the rule had yielded before is
    kept and the other rules run. `on_progress` is told how many of the run's pieces are done,
    and how many there are. Raises UsageError for paths that do not exist or lie outside the
    project.
    """
    return check_files(discover(project, paths), rules, on_failure, on_progress)


def check_files(
    files: Files,
    rules: Sequence[Rule],
    on_failure: Callable[[InternalError], None] = _raise,
    on_progress: OnProgress | None = None,
    cache_at: Callable[[], "Cache"] | None = None,
) -> Report:
    """`check` for files that are chosen already; what the cache holds is not asked again."""
    record, folder = Record(), None
    speaks = speaker(rules)
    cache = cache_at() if cache_at and _worth_remembering(files, speaks) else None
    if cache is not None:
        record, folder = cache.load(), cache.facts
        cache.prepare()
    collecting = gc.isenabled()
    # Terms and trees only grow during a run: collecting them would cost a third of it.
    gc.disable()
    try:
        lost = _fill(record, files, rules, speaks, on_progress or _ignore, folder)
    finally:
        if collecting:
            gc.enable()
    report, failures = _report(record, files, lost)
    if cache is not None and record.changed:
        cache.forget(record.distrust(files.tree))
        cache.save(record)
    for failure in failures:
        on_failure(failure)
    return report


def _worth_remembering(files: Files, speaks: Callable[[bytes], bool]) -> bool:
    """Few files that say nothing of cache memory are looked at faster than a record is read."""
    if len(files.reported) >= APART:
        return True
    for path in files.reported:
        with suppress(OSError):
            if speaks(files.tree.read(path)):
                return True
    return False


def _fill(
    record: Record,
    files: Files,
    rules: Sequence[Rule],
    speaks: Callable[[bytes], bool],
    on_progress: OnProgress,
    folder: Path | None,
) -> dict[str, str]:
    """Ask for what the record does not tell yet about the reported files. Files about which
    nothing could be found out, with the reason."""
    reported = files.reported
    record.update(files.tree, reported, files.stamp, speaks)
    starts = [path for path in reported if record.files[path].speaks]
    if starts:
        record.update(files.tree, files.known, files.stamp, speaks)
        record.keep(files.known)
    starts = [path for path in starts if record.files[path].unit is None]
    unread = [path for path in reported if record.files[path].looked is None]
    record.looks_into(unread)
    lost: dict[str, str] = {}
    for task, answer in _answers(record, files, rules, starts, unread, on_progress, folder):
        if isinstance(answer, Died):
            lost.update(dict.fromkeys(task.paths, answer.how))
            continue
        record.searches |= answer.searches
        for path, found in zip(task.paths, answer.found, strict=True):
            if isinstance(found, Unit):
                record.files[path].unit = found
            else:
                record.files[path].looked = found
    record.changed |= bool(starts or unread)
    return lost


@dataclass(frozen=True, slots=True)
class _Task:
    """What to ask about: what rules find from each file, or what Python's parser says of it."""

    paths: tuple[str, ...]
    by_rules: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was found from or said of each file of a task, and what was searched for."""

    found: tuple[Unit | Looked, ...]
    searches: dict[tuple[str, str], "Search"] = field(default_factory=dict)


def _answers(
    record: Record,
    files: Files,
    rules: Sequence[Rule],
    starts: Sequence[str],
    unread: Sequence[str],
    on_progress: OnProgress,
    folder: Path | None,
) -> Iterator[tuple[_Task, _Answer | Died]]:
    """Every task with its answer, as they come; by processes where that is worth it."""
    apart = len(starts) + len(unread) // CHUNK >= APART and hasattr(os, "fork")
    if starts:
        from kvlint.analysis.files import Texts
        from kvlint.analysis.link import Program
        from kvlint.engine.facts import Facts

        memory = Facts(record, folder)
        speaking = [path for path in files.known if record.files[path].speaks]
        program = Program(Texts(files.tree, speaking), memory)
        if apart:
            # What every process needs is made before they part.
            for path in program.texts:
                program.listed(path)
            # What speaks of most is in the thick of it, and rests on the same files.
            said = {path: spoken(program.texts[path]) for path in starts}
            starts = sorted(starts, key=lambda path: (-said[path], path))

    def work(task: _Task) -> _Answer:
        if task.by_rules:
            units = tuple(unit(program, rules, path) for path in task.paths)
            return _Answer(units, memory.searches())
        return _Answer(tuple(look(files.tree, path) for path in task.paths))

    def finish() -> None:
        if starts:
            memory.flush()

    size = CHUNK if apart else 1
    units = [_Task((path,), True) for path in starts]
    looks = [_Task(tuple(unread[at : at + size]), False) for at in range(0, len(unread), size)]
    if apart:
        from kvlint.engine.workers import each  # brings the standard library's processes

        answers = each(units, work, WORKERS, finish, looks)
    else:
        answers = ((task, done(work, task)) for task in (*units, *looks))
    again: list[_Task] = []
    for number, (task, answer) in enumerate(answers, 1):
        on_progress(number, len(units) + len(looks))
        if isinstance(answer, Died) and apart:
            again += [_Task((path,), task.by_rules) for path in task.paths]
        else:
            yield task, answer
    # What ended a process may have been its neighbours, or all that it had seen before: each
    # file of a lost task has one try of its own.
    for one in again:
        yield from each([one], work, 1, finish)
    if not apart:
        finish()


def _report(
    record: Record, files: Files, lost: dict[str, str]
) -> tuple[Report, list[InternalError]]:
    """What the record tells of the reported files."""
    findings: list[Finding] = []
    faults: list[Fault] = []
    directives: list[Directive] = []
    broken: dict[tuple[str, str, str], list[str]] = {}
    for path in files.reported:
        known = record.files[path]
        looked, found = known.looked or Looked(), known.unit
        directives += looked.directives
        # Python's parser has the say where both choke on a file.
        faults += looked.faults or (found.faults if found else ())
        if found is not None:
            findings += found.findings
            for failure in found.failures:
                broken.setdefault(failure, []).append(path)
            if found.failures:
                known.unit = None  # to be tried again
    failures: list[InternalError] = [
        RuleError(code, name, cause, paths[0], len(paths) - 1)
        for (code, name, cause), paths in sorted(broken.items())
    ]
    failures += [FileError(path, how) for path, how in sorted(lost.items())]
    report = Report(
        findings=tuple(sorted(dict.fromkeys(findings), key=_place)),
        faults=tuple(faults),
        files=len(files.reported),
        skipped=files.unreadable,
        directives=tuple(sorted(directives, key=lambda told: told.span)),
    )
    return report, failures


def _place(finding: Finding) -> tuple[str, int, int, str]:
    return (finding.span.path, finding.span.line, finding.span.column, finding.code)
