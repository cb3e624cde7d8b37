"""Workflow commands: a job on GitHub Actions that prints them has annotations in the diff.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from collections.abc import Iterator

from kvlint.findings import Finding, Severity, Span, Step
from kvlint.reporters.facts import facts
from kvlint.reporters.paint import Paint, printable
from kvlint.reporters.view import View

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def render(view: View, paint: Paint) -> Iterator[str]:
    for fault in view.faults:
        yield _command(view, "error", fault.name, fault.span, f"{fault.name}: {fault.message}")
    for finding in view.shown:
        level = "notice" if view.settled(finding) else _LEVELS[finding.severity]
        yield _command(view, level, finding.code, finding.span, _text(view, finding))


def _text(view: View, finding: Finding) -> str:
    def tell(step: Step) -> str:
        return f"{step.says} ({view.in_repository(step.span.path)}:{step.span.line})"

    told = [f"{title}: {text}" for title, text in facts(view, finding, tell)]
    return "\n".join((f"{finding.code} {finding.message}", *told))


def _command(view: View, level: str, code: str, span: Span, text: str) -> str:
    path = view.in_repository(span.path)
    properties = {"title": f"kvlint ({code})", "file": path, "line": str(span.line)}
    # GitHub refuses columns where the lines differ.
    if span.line == span.end_line:
        properties["col"] = str(span.column)
    properties["endLine"] = str(span.end_line)
    if span.line == span.end_line:
        properties["endColumn"] = str(span.end_column)
    named = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    # The log shows the text alone, without the place that the command names.
    return f"::{level} {named}::{_data(f'{path}:{span.line}:{span.column}: {text}')}"


def _data(text: str) -> str:
    lines = text.replace("%", "%25").splitlines()
    return "%0A".join(map(printable, lines))


def _property(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return printable(escaped.replace(":", "%3A").replace(",", "%2C"))
