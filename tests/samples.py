"""Hand-made claims, findings and rules for tests of what comes after the analysis."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvlint.assumptions import Entry, Own, Relation
from kvlint.findings import (
    Claim,
    Confidence,
    Fault,
    Finding,
    Given,
    Report,
    Severity,
    Silence,
    Silenced,
    Span,
    Step,
    decide,
)
from kvlint.reporters.view import Choice, View, view
from kvlint.rule import Rule

SAME_SLOTS = Relation(Own("slots"), "=", Entry("slots", 0))


def span(path: str = "pkg/a.py", line: int = 1, column: int = 1, width: int = 4) -> Span:
    return Span(path, line, column, line, column + width)


def claim(at: Span | None = None, **changes: Any) -> Claim:
    """A claim that some geometry refutes."""
    plain = Claim(
        code="KV900",
        relation=SAME_SLOTS,
        at=at or span(),
        scope="pkg.a.f",
        subject="slots",
        message="every region gets the slots of the first",
        label="taken from region 0",
        settle="take the minimum over all regions",
    )
    return replace(plain, **changes)


def guarded(at: Span | None = None, guard_line: int = 9, **changes: Any) -> Claim:
    """The same claim, settled by a check in the same file."""
    at = at or span()
    step = Step(span(at.path, guard_line), "all counts are compared")
    return claim(at, given=(Given(SAME_SLOTS, step),), **changes)


def conditional(at: Span | None = None, **changes: Any) -> Claim:
    return claim(at, unresolved=("n: a parameter without a caller",), **changes)


def finding(
    made: Claim | None = None,
    severity: Severity = Severity.ERROR,
    confidence: Confidence = Confidence.HIGH,
    name: str = "sample-rule",
) -> Finding:
    return decide(made or claim(), name, severity, confidence)


def fault(path: str = "pkg/broken.py", line: int = 2) -> Fault:
    return Fault("invalid-syntax", span(path, line, 3), "'(' was never closed")


def silenced(
    made: Claim | None = None, by: Silence = Silence.COMMENT, reason: str = "it is so"
) -> Silenced:
    return Silenced(finding(made), by, reason)


def seen(
    claims: Iterable[Claim] = (),
    choice: Choice | None = None,
    root: Path = Path("/project"),
    here: Path | None = None,
    faults: Iterable[Fault] = (),
    files: int = 3,
    silenced: Iterable[Silenced] = (),
    rules: Sequence[Rule] = (),
    failures: Sequence[str] = (),
) -> View:
    """What a reporter is given for these claims."""
    found = tuple(finding(made) for made in claims)
    report = Report(found, tuple(faults), files, silenced=tuple(silenced))
    return view(report, choice or Choice(), root, here or root, rules=rules, failures=failures)


def rule(check: Callable[[Any], Iterator[Claim]], number: str = "KV900") -> Rule:
    """A rule whose check is this function."""

    class Sample(Rule):
        """Samples assume nothing."""

        name = "sample-rule"
        code = number
        severity = Severity.ERROR
        since = "0.1.0"
        BAD = "x = 1\n"
        GOOD = "x = 2\n"

        def check(self, program: Any) -> Iterator[Claim]:
            return check(program)

    return Sample()
