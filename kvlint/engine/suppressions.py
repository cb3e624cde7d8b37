"""What comments silence, and what is wrong with the comments.

A suppression silences every finding of its rules that begins in its lines, whatever the
confidence; what is guarded needs none. One that silences nothing is unused, unless a rule
that it names did not run: then nobody can tell.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kvlint.engine.errors import UsageError
from kvlint.engine.selection import find
from kvlint.findings import Directive, Fault, Finding, Report, Silence, Silenced, Span, Status
from kvlint.rule import Rule

MALFORMED = "malformed-suppression"
UNUSED = "unused-suppression"


@dataclass(slots=True)
class _Suppression:
    """A directive whose codes are rules; `used` are those that silenced something."""

    directive: Directive
    codes: dict[str, Span]
    used: set[str] = field(default_factory=set)

    def covers(self, finding: Finding) -> bool:
        first, last = self.directive.lines
        return finding.code in self.codes and first <= finding.span.line <= last


def suppress(
    report: Report, rules: Sequence[Rule], ran: Callable[[str], Collection[str]]
) -> Report:
    """The report without the findings that comments silence, and with a fault for each comment
    that is malformed or unused.

    `rules` are all there are; `ran(path)` gives the codes of those whose findings in `path`
    are complete. In a file that could not be parsed no comment counts.
    """
    broken = {fault.span.path for fault in report.faults if fault.costs_file}
    faults: list[Fault] = []
    by_path: dict[str, list[_Suppression]] = defaultdict(list)
    for directive in report.directives:
        path = directive.span.path
        if path in broken:
            continue
        match _read(directive, rules):
            case Fault() as fault:
                faults.append(fault)
            case suppression:
                by_path[path].append(suppression)

    found: dict[str, list[Finding]] = defaultdict(list)
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    for finding in report.findings:
        found[finding.span.path].append(finding)
        covering = [s for s in by_path.get(finding.span.path, ()) if s.covers(finding)]
        if finding.status is Status.GUARDED or not covering:
            kept.append(finding)
            continue
        for suppression in covering:
            suppression.used.add(finding.code)
        closest = min(covering, key=lambda s: s.directive.whole_file)
        silenced.append(Silenced(finding, Silence.COMMENT, closest.directive.reason))

    for path, suppressions in by_path.items():
        complete = ran(path)
        for suppression in suppressions:
            faults.extend(_unused(suppression, complete, found[path]))
    return replace(
        report,
        findings=tuple(kept),
        faults=tuple(sorted((*report.faults, *faults), key=lambda fault: fault.span)),
        silenced=(*report.silenced, *silenced),
    )


def _read(directive: Directive, rules: Sequence[Rule]) -> _Suppression | Fault:
    if directive.error is not None:
        return _fault(MALFORMED, directive.span, directive.error)
    codes: dict[str, Span] = {}
    for written, span in directive.codes:
        try:
            codes.setdefault(find(rules, written).code, span)
        except UsageError as unknown:
            return _fault(MALFORMED, span, str(unknown))
    return _Suppression(directive, codes)


def _unused(
    suppression: _Suppression, complete: Collection[str], findings: Iterable[Finding]
) -> Iterable[Fault]:
    """One fault for the whole comment where all of it can go, else one for each code.

    `findings` are those of its file."""
    directive = suppression.directive
    unused = [c for c in suppression.codes if c not in suppression.used and c in complete]
    apart = [([code], suppression.codes[code]) for code in unused]
    if len(unused) == len(suppression.codes):
        apart = [(unused, directive.span)]
    guarded = {finding.code for finding in findings if suppression.covers(finding)}
    where = "file" if directive.whole_file else "statement"
    for codes, span in apart:
        why = "is guarded" if guarded.issuperset(codes) else "is not found"
        yield _fault(UNUSED, span, f"not needed: {', '.join(codes)} {why} in this {where}")


def _fault(name: str, span: Span, message: str) -> Fault:
    return Fault(name, span, message, costs_file=False)
