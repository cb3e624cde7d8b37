"""The whole static run as one call: project, paths and rules in, a report out. No printing."""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kvlint.engine.discover import Files, discover
from kvlint.engine.errors import FileError, InternalError, RuleError
from kvlint.engine.syntax import Looked, look, spoken_of
from kvlint.engine.unit import Unit, unit
from kvlint.engine.workers import Died, can_fork, done, each
from kvlint.findings import Directive, Fault, Finding, Report
from kvlint.rule import Rule

# From this many files on, two processes share the work.
APART = 30
WORKERS = 2
# Files whose syntax is asked at once: few enough that both end at the same time.
CHUNK = 50


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
) -> Report:
    """`check` for files that are chosen already."""
    found = _Found()
    for task, answer in _answers(files, rules, on_progress or _ignore):
        found.take(task, answer)
    for failure in found.failures():
        on_failure(failure)
    return Report(
        findings=tuple(sorted(dict.fromkeys(found.findings), key=_place)),
        faults=tuple(found.faults[path] for path in sorted(found.faults)),
        files=len(files.reported),
        skipped=files.unreadable,
        directives=tuple(sorted(found.directives, key=lambda told: told.span)),
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """A task: what rules find from one file, or what Python's parser says of several."""

    paths: tuple[str, ...]
    by_rules: bool


Answer = Unit | Looked | Died


def _answers(
    files: Files, rules: Sequence[Rule], on_progress: OnProgress
) -> Iterator[tuple[_Look, Answer]]:
    """Every task of a run with its answer, as they come; by processes where that is worth it."""
    # Terms and trees only grow during a run: collecting them would cost a third of it.
    gc.disable()
    reported = files.reported
    starts: list[str] = []
    if any(spoken_of(files.tree, path) for path in reported):
        from kvlint.analysis.link import Program  # brings the parser

        program = Program.open(files.tree, files.known)
        shown = set(reported)
        starts = sorted(program.texts.keys() & shown, key=lambda p: (-len(program.texts[p]), p))

    def work(task: _Look) -> Unit | Looked:
        return unit(program, rules, *task.paths) if task.by_rules else look(files.tree, task.paths)

    size = CHUNK if len(reported) >= APART and can_fork() else 1
    tasks = [_Look((path,), True) for path in starts]
    tasks += [_Look(reported[at : at + size], False) for at in range(0, len(reported), size)]
    total = len(tasks)
    answers = each(tasks, work, WORKERS) if size > 1 else ((t, done(work, t)) for t in tasks)
    again: list[_Look] = []
    for number, (task, answer) in enumerate(answers, 1):
        on_progress(number, total)
        if isinstance(answer, Died) and size > 1:
            again += [_Look((path,), task.by_rules) for path in task.paths]
        else:
            yield task, answer
    # What ended a process may have been its neighbours, or all that it had seen before: each
    # file of a lost task has one try of its own.
    for one in again:
        yield from each([one], work, 1)


@dataclass(slots=True)
class _Found:
    """The answers of a run so far."""

    findings: list[Finding] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)
    directives: list[Directive] = field(default_factory=list)
    broken: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)

    def take(self, task: _Look, answer: Answer) -> None:
        match answer:
            case Unit():
                self.findings += answer.findings
                for failure in answer.failures:
                    self.broken.setdefault(failure, []).extend(task.paths)
            case Looked():
                self.directives += answer.directives
            case Died(how):
                self.lost.update(dict.fromkeys(task.paths, how))
                return
        for fault in answer.faults:
            # Python's parser has the say where both choke on a file.
            if isinstance(answer, Looked) or fault.span.path not in self.faults:
                self.faults[fault.span.path] = fault

    def failures(self) -> Iterator[InternalError]:
        for (code, name, cause), paths in sorted(self.broken.items()):
            yield RuleError(code, name, cause, min(paths), len(paths) - 1)
        for path, how in sorted(self.lost.items()):
            yield FileError(path, how)


def _place(finding: Finding) -> tuple[str, int, int, str]:
    return (finding.span.path, finding.span.line, finding.span.column, finding.code)
