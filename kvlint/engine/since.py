"""`--since`: which findings have to do with what changed.

A finding does where its own place, a step of its way or its guard lies in changed lines. Where
lines are gone, a guard may have gone with them, so everything in that definition counts; so it
does where lines were replaced, unless these were assignments alone: where a value comes from is
on a finding's way. A guard that went from another definition is not seen.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kvlint.engine.changes import Changes, Hunk
from kvlint.findings import Fault, Finding, Report, Silence, Silenced, Span
from kvlint.tree import Tree

_ASSIGNMENT = re.compile(r"\s*[\w.,*\s\[\]\"']+(?::[^=]+)? = ")


def changed_only(report: Report, changes: Changes, tree: Tree) -> Report:
    """The report without the findings that have nothing to do with `changes`.

    Faults of files in which nothing changed are left out, and counted in a notice.
    """
    judge = _Judge(changes, tree)
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    for finding in report.findings:
        if any(map(judge.touched, _places(finding))):
            kept.append(finding)
        else:
            silenced.append(Silenced(finding, Silence.UNCHANGED, changes.revision))
    faults = tuple(fault for fault in report.faults if changes.any_of(fault.span.path))
    return replace(
        report,
        findings=tuple(kept),
        faults=faults,
        silenced=(*report.silenced, *silenced),
        notices=(*report.notices, *_left_out(report.faults, faults, changes.revision)),
    )


def _places(finding: Finding) -> Iterator[Span]:
    yield finding.span
    for step in (*finding.trace, *((finding.guard,) if finding.guard else ())):
        yield step.span


def _left_out(all_of: tuple[Fault, ...], kept: tuple[Fault, ...], revision: str) -> Iterator[str]:
    number = len(all_of) - len(kept)
    if number:
        faults = "fault is" if number == 1 else "faults are"
        yield f"{number} {faults} not shown: in files that have not changed since {revision}"


@dataclass(slots=True)
class _Judge:
    changes: Changes
    tree: Tree
    _definitions: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def touched(self, span: Span) -> bool:
        changes = self.changes
        if changes.all_of(span.path):
            return True
        hunks = changes.hunks.get(span.path, ())
        if any(hunk.first <= span.end_line and span.line <= hunk.last for hunk in hunks):
            return True
        if not any(map(_may_have_guarded, hunks)):
            return False
        if span.path not in self._definitions:
            self._definitions[span.path] = list(self._that_lost_lines(span.path))
        return any(first <= span.line <= last for first, last in self._definitions[span.path])

    def _that_lost_lines(self, path: str) -> Iterator[tuple[int, int]]:
        """First and last lines of the definitions from which a guard may have gone."""
        from kvlint.analysis.outline import outline

        try:
            source = outline(path, _text(self.tree.read(path)))
        except (OSError, SyntaxError, LookupError, ValueError, RecursionError, MemoryError):
            return  # no finding lies in a file that cannot be parsed
        hunks = [hunk for hunk in self.changes.hunks[path] if _may_have_guarded(hunk)]
        for definition in source.definitions.values():
            first, last = definition.first_line, definition.last_line
            if any(_lay_in(hunk, first, last, definition.column) for hunk in hunks):
                yield first, last


def _may_have_guarded(hunk: Hunk) -> bool:
    told = [line for line in hunk.removed if line.strip() and not line.lstrip().startswith("#")]
    new = hunk.last - hunk.first + 1
    return len(told) > new or any(_ASSIGNMENT.match(line) is None for line in told)


def _lay_in(hunk: Hunk, first: int, last: int, column: int) -> bool:
    """Whether what is gone stood in the definition with these lines that begins at `column`."""
    if hunk.first <= hunk.last:
        return hunk.first <= last and first <= hunk.last
    before, after = hunk.last, hunk.first
    if first <= before and after <= last:
        return True
    # Behind the last line that is left, what stood deeper belonged to it.
    told = [line for line in hunk.removed if line.strip()]
    return before == last and bool(told) and _depth(told[0]) > column


def _depth(line: str) -> int:
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _text(data: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()
