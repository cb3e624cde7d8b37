"""What a rule says about a place, and what becomes of it once it is decided.

A rule yields `Claim`s: a relation over geometry, the guards in force, where, and the
trace. It never says whether the claim is right: `decide` asks `kvlint.assumptions`
and derives status, confidence and severity. Reporters see `Finding`s only.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvlint.assumptions import Counterexample, Relation


class Status(StrEnum):
    """Derived by `decide`, never set by a rule."""

    UNGUARDED = "unguarded"
    CONDITIONAL = "conditional"
    GUARDED = "guarded"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    def at_least(self, other: "Confidence") -> bool:
        order = list(Confidence)
        return order.index(self) <= order.index(other)


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """A stretch of source; lines and columns count from 1, the end is exclusive.

    `path` is relative to the project, with forward slashes.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __post_init__(self) -> None:
        # Syntax trees count columns from 0: a rule that forgets it is told, not shifted by one.
        if self.line < 1 or self.column < 1:
            place = f"{self.path}:{self.line}:{self.column}"
            raise ValueError(f"a span counts lines and columns from 1, not {place}")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Step:
    """One stop on the way from the source of a value to the place that uses it."""

    span: Span
    says: str


@dataclass(frozen=True, slots=True)
class Given:
    """A guard: a relation that code enforces (None: the guard settles the claim by
    construction, so there is nothing left to refute), and where it stands."""

    relation: "Relation | None"
    step: Step


@dataclass(frozen=True, slots=True)
class Claim:
    """What a rule yields: `relation` must hold at `at`, given `given`.

    `scope` is the definition that `at` lies in (`path::qualified.name`) and `subject` the
    roles and values meant, without line numbers: with code and relation they make
    the id. `unresolved` names each term nobody could resolve, with the reason; `by_name_only`
    says that names alone tell what the values are.
    """

    code: str
    relation: "Relation"
    at: Span
    scope: str
    subject: str
    message: str
    label: str
    settle: str
    trace: tuple[Step, ...] = ()
    given: tuple[Given, ...] = ()
    unresolved: tuple[str, ...] = ()
    holds_today: str | None = None
    by_name_only: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A decided claim, ready to be reported."""

    code: str
    name: str
    span: Span
    message: str
    label: str
    settle: str
    severity: Severity
    confidence: Confidence
    status: Status
    assumption_id: str
    relation: "Relation"
    counterexample: "Counterexample | None"
    holds_today: str | None
    trace: tuple[Step, ...]
    guard: Step | None
    unresolved: tuple[str, ...] = ()
    by_name_only: bool = False
    scope: str = ""  # as the claim has it: `path::qualified.name`
    subject: str = ""  # likewise
    given: tuple[Given, ...] = ()

    @property
    def formula(self) -> str:
        return str(self.relation)


@dataclass(frozen=True, slots=True)
class Fault:
    """Reported with code null: why a file could not be read or parsed, or, where
    `costs_file` is False, what is wrong with something that kvlint itself is told there."""

    name: str
    span: Span
    message: str
    costs_file: bool = True


@dataclass(frozen=True, slots=True)
class Directive:
    """A comment addressed to kvlint: `ignore[CODES] reason`.

    `lines` are the first and the last of what it speaks of, a statement's or the whole file's.
    `codes` are what stands between the brackets, each with its place, and not yet known to be
    rules. `error` says what is wrong with the comment: it silences nothing then.
    """

    span: Span
    lines: tuple[int, int]
    codes: tuple[tuple[str, Span], ...] = ()
    reason: str = ""
    error: str | None = None
    whole_file: bool = False


class Silence(StrEnum):
    """Why a finding is not reported, though nothing settles it."""

    COMMENT = "suppressed"
    BASELINE = "in the baseline"
    UNCHANGED = "not in what changed"


@dataclass(frozen=True, slots=True)
class Silenced:
    """A finding that the user has answered. `reason` is what a comment gives, the path of a
    baseline, or the revision since which nothing has changed."""

    finding: Finding
    by: Silence
    reason: str = ""

    @property
    def because(self) -> str:
        """Why it is silent, as words that follow "silenced by"."""
        match self.by:
            case Silence.COMMENT:
                return f"a comment: {self.reason}"
            case Silence.BASELINE:
                return f"the baseline {self.reason}"
            case Silence.UNCHANGED:
                return f"--since {self.reason}: nothing here has changed"


@dataclass(frozen=True, slots=True)
class Report:
    """What a run comes to. `skipped` and `notices` are lines for standard error; `directives`
    are the comments addressed to kvlint in the files that were reported on."""

    findings: tuple[Finding, ...]
    faults: tuple[Fault, ...] = ()
    files: int = 0
    skipped: tuple[str, ...] = field(default=())
    silenced: tuple[Silenced, ...] = ()
    notices: tuple[str, ...] = ()
    directives: tuple[Directive, ...] = ()


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def counted_faults(faults: Sequence[Fault]) -> list[str]:
    """`1 file not understood`, `2 unused suppressions`: each kind of fault with its number."""
    files = len({fault.span.path for fault in faults if fault.costs_file})
    told = Counter(fault.name for fault in faults if not fault.costs_file)
    return [
        *([f"{counted(files, 'file')} not understood"] if files else []),
        *(counted(number, name.replace("-", " ")) for name, number in sorted(told.items())),
    ]


def assumption_id(claim: Claim) -> str:
    """Stable across moved lines: code, definition, relation, roles; no line numbers."""
    from hashlib import blake2b

    text = "\0".join((claim.code, claim.scope, str(claim.relation), claim.subject))
    data = text.encode("utf-8", "surrogatepass")  # a path need not be text in any encoding
    return f"{claim.code}-{blake2b(data, digest_size=6).hexdigest()}"


def decide(claim: Claim, name: str, severity: Severity, confidence: Confidence) -> Finding:
    """Derive status, severity and confidence: nothing refutes it, it is guarded; refuted
    with every term resolved, unguarded; else conditional."""
    from kvlint.assumptions import refute  # most files have nothing to decide

    settled = next((g for g in claim.given if g.relation is None), None)
    relations = tuple(g.relation for g in claim.given if g.relation is not None)
    counterexample = None if settled else refute(claim.relation, relations)
    guard = None
    if counterexample is None:
        status = Status.GUARDED
        guard = settled.step if settled else (claim.given[0].step if claim.given else None)
    elif claim.unresolved:
        status = Status.CONDITIONAL
    else:
        status = Status.UNGUARDED
    if status is Status.CONDITIONAL or claim.by_name_only:
        confidence = Confidence.MEDIUM if confidence is Confidence.HIGH else confidence
    if claim.holds_today:
        severity = Severity.WARNING
    return Finding(
        code=claim.code,
        name=name,
        span=claim.at,
        message=claim.message,
        label=claim.label,
        settle=claim.settle,
        severity=severity,
        confidence=confidence,
        status=status,
        assumption_id=assumption_id(claim),
        relation=claim.relation,
        counterexample=counterexample,
        holds_today=claim.holds_today,
        trace=claim.trace,
        guard=guard,
        unresolved=claim.unresolved,
        by_name_only=claim.by_name_only,
        scope=claim.scope,
        subject=claim.subject,
        given=claim.given,
    )
