"""The last line: what was found, and how much is there that is not shown."""

from collections.abc import Iterable

from kvlint.findings import Finding, Status
from kvlint.reporters.view import View


def last_line(view: View) -> str:
    hidden = _hidden(view)
    return f"{_found(view)}{'; ' if hidden else ''}{hidden}"


def _found(view: View) -> str:
    place = view.choice.place
    if place is not None and not view.shown and not view.faults:
        return f"No assumption is made at {view.path(place.path)}:{place.line}{_nearest(view)}"
    parts = []
    if view.shown:
        files = len({finding.span.path for finding in view.shown})
        parts.append(f"{_count(_ids(view.shown), 'assumption')} in {_count(files, 'file')}")
    if view.faults:
        files = len({fault.span.path for fault in view.faults})
        parts.append(f"{_count(files, 'file')} not understood")
    return ", ".join(parts) or "All checks passed!"


def _nearest(view: View) -> str:
    """The line asked about is often one off."""
    place = view.choice.place
    lines = [f.span.line for f in view.hidden if place and f.span.path == place.path]
    if place is None or not lines:
        return ""
    nearest = min(lines, key=lambda line: abs(line - place.line))
    return f"; the nearest in this file is at line {nearest}"


def _hidden(view: View) -> str:
    if view.choice.place is not None:
        return ""
    by_status = {
        status: _ids(f for f in view.hidden if f.status is status) for status in reversed(Status)
    }
    names = {
        Status.GUARDED: "guarded",
        Status.CONDITIONAL: "conditional",
        Status.UNGUARDED: f"below {view.choice.minimum} confidence",
    }
    parts = [f"{count} {names[status]}" for status, count in by_status.items() if count]
    return f"{', '.join(parts)} hidden" if parts else ""


def _ids(findings: Iterable[Finding]) -> int:
    return len({finding.assumption_id for finding in findings})


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
