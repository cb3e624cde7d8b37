"""The whole static run as one call: project, paths and rules in, a report out. No printing."""

import gc
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvlint.engine import syntax
from kvlint.engine.discover import Files, discover
from kvlint.engine.errors import RuleError, one_line
from kvlint.findings import Directive, Fault, Finding, Report, decide
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.link import Program

# From this many files on, two processes share the work.
APART = 100
WORKERS = 2
# Files whose syntax is asked at once: few enough that both end at the same time.
CHUNK = 50


@dataclass(frozen=True, slots=True)
class _Part:
    """What one worker found in its share of the files."""

    findings: list[Finding]
    faults: list[Fault]
    failures: list[tuple[str, str, str]]  # code and name of the rule, what it raised
    directives: list[Directive]


OnProgress = Callable[[int, int], None]


def _raise(failure: RuleError) -> None:
    raise failure


def _ignore(done: int, total: int) -> None:
    """Nobody watches."""


def check(
    project: Path,
    paths: Sequence[Path],
    rules: Sequence[Rule],
    on_failure: Callable[[RuleError], None] = _raise,
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
    on_failure: Callable[[RuleError], None] = _raise,
    on_progress: OnProgress | None = None,
) -> Report:
    """`check` for files that are chosen already."""
    parts = _parts(files, rules, on_progress or _ignore)
    for code, name, cause in (failure for part in parts for failure in part.failures):
        on_failure(RuleError(code, name, cause))
    faults: dict[str, Fault] = {}
    for fault in (fault for part in parts for fault in part.faults):
        faults.setdefault(fault.span.path, fault)
    findings = (finding for part in parts for finding in part.findings)
    return Report(
        findings=tuple(sorted(dict.fromkeys(findings), key=_place)),
        faults=tuple(faults[path] for path in sorted(faults)),
        files=len(files.reported),
        skipped=files.unreadable,
        directives=tuple(
            sorted((d for part in parts for d in part.directives), key=lambda d: d.span)
        ),
    )


def _parts(files: Files, rules: Sequence[Rule], on_progress: OnProgress) -> list[_Part]:
    """What Python's parser says, then what the rules find.

    Where the tree is worth the start of another process, the rules' work is split beforehand
    and the files' syntax goes to whoever is free first.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_all_start_methods, get_context

    reported = files.reported
    if len(files.known) < APART or "fork" not in get_all_start_methods():
        parsed_here = _syntax(files, reported)
        on_progress(1, 2)
        return [parsed_here, _part(files, rules, 0, 1)]
    fork = get_context("fork")
    # What is given at the start is forked along, not pickled: rules can be any objects.
    with ProcessPoolExecutor(WORKERS - 1, fork, _take, (files, rules)) as pool:
        others = [pool.submit(_taken_part, number) for number in range(1, WORKERS)]
        chunks = [reported[at : at + CHUNK] for at in range(0, len(reported), CHUNK)]
        asked = [(pool.submit(_taken_syntax, chunk), chunk) for chunk in chunks]
        pieces = len(asked) + WORKERS
        own = _part(files, rules, 0, WORKERS)
        parsed: list[_Part] = []
        # The last that were asked wait longest: those that still wait are done here.
        for future, chunk in reversed(asked):
            on_progress(1 + len(parsed), pieces)
            parsed.append(_syntax(files, chunk) if future.cancel() else future.result())
        on_progress(1 + len(parsed), pieces)
        return [*parsed, own, *(other.result() for other in others)]


_given: list[tuple[Files, Sequence[Rule]]] = []  # of a worker, from its start on


def _take(files: Files, rules: Sequence[Rule]) -> None:
    _given.append((files, rules))


def _taken_part(number: int) -> _Part:
    return _part(*_given[-1], number, WORKERS)


def _taken_syntax(paths: Sequence[str]) -> _Part:
    return _syntax(_given[-1][0], paths)


def _syntax(files: Files, paths: Sequence[str]) -> _Part:
    faults, directives = syntax.read(files.tree, paths)
    return _Part([], faults, [], directives)


def _part(files: Files, rules: Sequence[Rule], number: int, workers: int) -> _Part:
    from kvlint.analysis.link import Program  # brings the parser, which most commands never need

    # Terms and trees only grow during a run: collecting them would cost a third of it.
    gc.disable()
    program = Program.open(files.tree, files.known)
    program.share = (number, workers)
    failures: list[tuple[str, str, str]] = []
    shown = set(files.reported)
    findings = [
        finding
        for rule in rules
        for finding in _decided(rule, program, failures)
        if finding.span.path in shown
    ]
    # What only the analysis choked on is said, too.
    faults = [fault for fault in program.faults if fault.span.path in shown]
    return _Part(findings, faults, failures, [])


def _decided(
    rule: Rule, program: "Program", failures: list[tuple[str, str, str]]
) -> Iterator[Finding]:
    try:
        for claim in rule.check(program):
            yield decide(claim, rule.name, rule.severity, rule.confidence)
    except Exception as error:  # whatever it is, it is the rule's, and is said by its name
        if os.environ.get("KVLINT_DEBUG"):
            traceback.print_exc()
        failures.append((rule.code, rule.name, one_line(error)))


def _place(finding: Finding) -> tuple[str, int, int, str]:
    return (finding.span.path, finding.span.line, finding.span.column, finding.code)
