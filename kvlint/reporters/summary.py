"""The last line: what was found, and how much is there that is not shown."""

from collections.abc import Iterable

from kvlint.findings import Confidence, Finding, Silence, Status, counted, counted_faults
from kvlint.reporters.view import View

# What a hidden finding is called, here and in statistics; the README explains the words.
HIDDEN = {
    Status.GUARDED: "guarded",
    Status.CONDITIONAL: "conditional",
    Status.UNGUARDED: "less sure",
}


def last_line(view: View) -> str:
    found = _found(view)
    rest = "; ".join(filter(None, (_silenced(view), _hidden(view))))
    if not rest:
        return found
    return f"{found} ({rest})" if found.endswith("!") else f"{found}; {rest}"


def _found(view: View) -> str:
    if not (view.files or view.shown or view.faults):
        return "No file checked"
    place = view.choice.place
    if place is not None and not view.shown and not view.faults:
        asked = f"{view.path(place.path)}:{place.line}"
        return f"kvlint sees no assumption at {asked}{_nearest(view)}"
    parts = []
    if view.shown:
        files = len({finding.span.path for finding in view.shown})
        parts.append(f"{counted(_ids(view.shown), 'assumption')} in {counted(files, 'file')}")
    parts += counted_faults(view.faults)
    if not parts and _less_certain(view):
        return "Nothing certain found"
    return ", ".join(parts) or "All checks passed!"


def _less_certain(view: View) -> list[Finding]:
    return [finding for finding in view.hidden if finding.status is not Status.GUARDED]


def _nearest(view: View) -> str:
    """The line asked about is often one off."""
    place = view.choice.place
    lines = [f.span.line for f in view.hidden if place and f.span.path == place.path]
    if place is None or not lines:
        return ""
    nearest = min(lines, key=lambda line: abs(line - place.line))
    return f"; the nearest in this file is at line {nearest}"


def _silenced(view: View) -> str:
    """Counts what would be shown, had the user not answered it."""
    if view.choice.place is not None:
        return ""
    answered = [s for s in view.silenced if view.choice.counts(s.finding)]
    counts = {by: _ids(s.finding for s in answered if s.by is by) for by in Silence}
    return ", ".join(f"{count} {by}" for by, count in counts.items() if count)


def _hidden(view: View) -> str:
    if view.choice.place is not None:
        return ""
    by_status = {
        status: _ids(f for f in view.hidden if f.status is status) for status in reversed(Status)
    }
    parts = [f"{count} {HIDDEN[status]}" for status, count in by_status.items() if count]
    return f"{', '.join(parts)} hidden{_how_to_see(view)}" if parts else ""


def _how_to_see(view: View) -> str:
    """Only where there is nothing else to read: silence must not pass for a verdict."""
    hidden = _less_certain(view)
    if not hidden or view.shown or view.faults:
        return ""
    enough = next(c for c in Confidence if all(f.confidence.at_least(c) for f in hidden))
    what = "more" if len(hidden) < len(view.hidden) else "them"
    return f" (--min-confidence {enough} shows {what})"


def _ids(findings: Iterable[Finding]) -> int:
    return len({finding.assumption_id for finding in findings})
