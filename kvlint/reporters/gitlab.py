"""GitLab's Code Quality report: https://docs.gitlab.com/ci/testing/code_quality/"""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from kvlint.findings import Severity, Span
from kvlint.reporters.fingerprints import fingerprints
from kvlint.reporters.objects import dump
from kvlint.reporters.paint import Paint
from kvlint.reporters.view import View

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor"}


def render(view: View, paint: Paint) -> Iterator[str]:
    known = fingerprints(view)
    entries, seen = [], Counter[tuple[str, str]]()
    for fault in view.faults:
        seen[fault.span.path, fault.name] += 1
        known_by = f"{fault.name}/{seen[fault.span.path, fault.name]}"
        entries.append(_entry(view, fault.name, fault.message, "major", fault.span, known_by))
    for finding in view.shown:
        severity = "info" if view.settled(finding) else _SEVERITIES[finding.severity]
        entries.append(
            _entry(view, finding.code, finding.message, severity, finding.span, known[finding])
        )
    yield dump(entries, indent=2)


def _entry(
    view: View, code: str, message: str, severity: str, span: Span, known_by: str
) -> dict[str, Any]:
    path = view.in_repository(span.path)
    # GitLab drops what has the fingerprint of another: two projects of one repository may
    # write into one report.
    text = f"{path}\0{known_by}".encode(errors="surrogatepass")
    return {
        # GitLab does not show the name of the check.
        "description": f"{code}: {' '.join(message.split())}",
        "check_name": code,
        "fingerprint": blake2b(text, digest_size=16).hexdigest(),
        "severity": severity,
        "location": {"path": path, "lines": {"begin": span.line, "end": span.end_line}},
    }
