"""One line a place, for editors and grep."""

from collections.abc import Iterator

from kvlint.findings import Finding, Span, Status
from kvlint.reporters.paint import Paint, printable
from kvlint.reporters.summary import last_line
from kvlint.reporters.view import View


def render(view: View, paint: Paint) -> Iterator[str]:
    for fault in view.faults:
        name = paint(fault.name, "bold red")
        yield f"{_where(view, fault.span, paint)}: {name}: {_one_line(fault.message)}"
    for finding in view.shown:
        code = paint(finding.code, "bold red")
        text = f"{_status(view, finding)}{_one_line(finding.message)}"
        yield f"{_where(view, finding.span, paint)}: {code} {text}"
    yield last_line(view)


def _status(view: View, finding: Finding) -> str:
    silence = view.silence(finding)
    if silence is not None:
        return f"[silenced by {_one_line(silence.because)}] "
    if finding.status is Status.UNGUARDED:
        return ""
    if finding.guard is None:
        return f"[{finding.status}] "
    at = finding.guard.span
    return f"[{finding.status} by {printable(view.path(at.path))}:{at.line}] "


def _where(view: View, span: Span, paint: Paint) -> str:
    return paint(f"{printable(view.path(span.path))}:{span.line}:{span.column}", "bold")


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
