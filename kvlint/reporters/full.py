"""For reading: each assumption once, with its source, its way and what would settle it.

An assumption made in many places is told at the first and lists the others.
"""

from collections.abc import Iterable, Iterator

from kvlint.findings import Fault, Finding, Severity, Span, Status, Step
from kvlint.reporters.excerpt import MARGIN, excerpt
from kvlint.reporters.facts import facts
from kvlint.reporters.paint import Paint, printable
from kvlint.reporters.summary import last_line
from kvlint.reporters.view import View

# How many further places are listed; `concise` lists every one.
PLACES = 10


def render(view: View, paint: Paint) -> Iterator[str]:
    for fault in view.faults:
        yield from _fault(view, fault, paint)
        yield ""
    for findings in _grouped(view.shown):
        yield from _assumption(view, findings, paint)
        yield ""
    yield last_line(view)


def _grouped(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """By assumption, in the order of first places. One that is guarded at one place and not at
    the next is two things to tell."""
    groups: dict[tuple[str, Status], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.assumption_id, finding.status), []).append(finding)
    return groups.values()


def _fault(view: View, fault: Fault, paint: Paint) -> Iterator[str]:
    yield f"{_where(view, fault.span)}: {paint(fault.name, 'bold red')}: {printable(fault.message)}"
    yield from excerpt(view, fault.span, "", paint)


def _assumption(view: View, findings: list[Finding], paint: Paint) -> Iterator[str]:
    first, *others = findings
    yield _header(view, first, paint)
    yield from (MARGIN + printable(line) for line in first.message.splitlines())
    yield from excerpt(view, first.span, first.label, paint)
    for step in first.trace:
        yield f"{MARGIN}{_step(view, step, first.span)}"
    for title, text in facts(view, first, lambda step: _step(view, step, first.span)):
        yield _fact(title, text, paint)
    for other in others[:PLACES]:
        yield _fact("also at", _where(view, other.span), paint)
    if len(others) > PLACES:
        more = f"and {len(others) - PLACES} more; --output-format concise lists them"
        yield _fact("", more, paint)


def _header(view: View, finding: Finding, paint: Paint) -> str:
    colour = "bold red" if finding.severity is Severity.ERROR else "bold yellow"
    rating = f"{finding.severity}, {finding.confidence}"
    if finding.status is not Status.UNGUARDED:
        rating = f"{finding.status}, {rating}"
        colour = "bold green" if finding.status is Status.GUARDED else colour
    where = paint(_where(view, finding.span), "bold")
    return f"{where}: {paint(finding.code, colour)} {finding.name} [{rating}]"


def _fact(title: str, text: str, paint: Paint) -> str:
    return f"{MARGIN}{paint(f'{title:<11}', 'bold')}  {printable(text)}"


def _step(view: View, step: Step, seen: Span) -> str:
    path = view.path(step.span.path)
    # The header has said where the file lies; its name is enough from there on.
    name = path.rpartition("/")[2] if step.span.path == seen.path else path
    return f"{printable(step.says)} ({printable(name)}:{step.span.line})"


def _where(view: View, span: Span) -> str:
    return f"{printable(view.path(span.path))}:{span.line}:{span.column}"
