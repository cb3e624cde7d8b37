"""What is to be said of a finding besides its message, in the words that the README explains."""

from collections.abc import Callable, Iterator

from kvlint.findings import Finding, Status, Step
from kvlint.reporters.summary import HIDDEN
from kvlint.reporters.view import View


def facts(view: View, finding: Finding, tell: Callable[[Step], str]) -> Iterator[tuple[str, str]]:
    """Title and text of each fact; `tell` words a step with its place."""
    yield "assumes", finding.formula
    if finding.counterexample is not None:
        yield "breaks on", str(finding.counterexample)
    if finding.holds_today is not None:
        yield "holds today", finding.holds_today
    silence = view.silence(finding)
    if silence is not None:
        yield "silenced by", silence.because
    if finding.guard is not None:
        yield "guarded by", tell(finding.guard)
    for reason in finding.unresolved:
        yield "unresolved", reason
    if finding.by_name_only and finding.status is not Status.GUARDED:
        yield HIDDEN[Status.UNGUARDED], "the roles rest on names alone"
    if finding.status is not Status.GUARDED:
        yield "settle it", finding.settle
