"""The last line: what was found, and how much is there that is not shown."""

from collections import Counter
from collections.abc import Iterable

from kvlint.findings import Confidence, Finding, Silence, Status
from kvlint.reporters.view import View

# What a hidden finding is called, here and in statistics; the README explains the words.
HIDDEN = {
    Status.GUARDED: "guarded",
    Status.CONDITIONAL: "conditional",
    Status.UNGUARDED: "less sure",
}


def last_line(view: View) -> str:
    return "; ".join(filter(None, (_found(view), _silenced(view), _hidden(view))))


def _found(view: View) -> str:
    place = view.choice.place
    if place is not None and not view.shown and not view.faults:
        return f"No assumption is made at {view.path(place.path)}:{place.line}{_nearest(view)}"
    parts = []
    if view.shown:
        files = len({finding.span.path for finding in view.shown})
        parts.append(f"{_count(_ids(view.shown), 'assumption')} in {_count(files, 'file')}")
    files = len({fault.span.path for fault in view.faults if fault.costs_file})
    if files:
        parts.append(f"{_count(files, 'file')} not understood")
    told = Counter(fault.name for fault in view.faults if not fault.costs_file)
    parts += [_count(number, name.replace("-", " ")) for name, number in sorted(told.items())]
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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
