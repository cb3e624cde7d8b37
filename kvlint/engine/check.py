"""The whole static run as one call: project, paths and rules in, a report out. No printing."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kvlint.engine import syntax
from kvlint.engine.discover import Files, discover
from kvlint.engine.errors import RuleError
from kvlint.findings import Fault, Finding, Report, decide
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.link import Program

# From this many files on, their syntax is checked in a process of its own.
APART = 100


def _raise(failure: RuleError) -> None:
    raise failure


def check(
    project: Path,
    paths: Sequence[Path],
    rules: Sequence[Rule],
    on_failure: Callable[[RuleError], None] = _raise,
) -> Report:
    """What the rules find in `paths`, knowing all of `project`.

    A file that cannot be read or parsed is a fault of the report and stops nothing. A rule that
    raises is handed to `on_failure`: when that returns, what the rule had yielded before is
    kept and the other rules run. Raises UsageError for paths that do not exist or lie outside
    the project.
    """
    from kvlint.analysis.link import Program  # brings the parser, which most commands never need

    files = discover(project, paths)
    reported = {file.as_posix() for file in files.reported}
    with _syntax(files) as broken:
        # Terms and trees only grow during a run: collecting them would cost a third of it.
        gc.disable()
        program = Program.open(files.root, [file.as_posix() for file in files.known])
        findings = [
            finding
            for rule in rules
            for finding in _decided(rule, program, on_failure)
            if finding.span.path in reported
        ]
        faults = {fault.span.path: fault for fault in broken()}
    # What only the analysis choked on is said, too.
    for fault in program.faults:
        if fault.span.path in reported:
            faults.setdefault(fault.span.path, fault)
    return Report(
        findings=tuple(sorted(dict.fromkeys(findings), key=_place)),
        faults=tuple(faults[path] for path in sorted(faults)),
        files=len(reported),
        skipped=files.unreadable,
    )


@contextmanager
def _syntax(files: Files) -> Iterator[Callable[[], list[Fault]]]:
    """The faults of the reported files, worked out beside the analysis where a second process
    is worth its start. Forked before the analysis fills the memory."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_all_start_methods, get_context

    paths = [file.as_posix() for file in files.reported]
    if len(paths) < APART or "fork" not in get_all_start_methods():
        yield partial(syntax.faults, files.root, paths)
        return
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("fork")) as pool:
        yield pool.submit(syntax.faults, files.root, paths).result


def _decided(
    rule: Rule, program: "Program", on_failure: Callable[[RuleError], None]
) -> Iterator[Finding]:
    try:
        for claim in rule.check(program):
            yield decide(claim, rule.name, rule.severity, rule.confidence)
    except Exception as error:  # whatever it is, it is the rule's, and is said by its name
        on_failure(RuleError(rule.code, rule.name, error))


def _place(finding: Finding) -> tuple[str, int, int, str]:
    return (finding.span.path, finding.span.line, finding.span.column, finding.code)
