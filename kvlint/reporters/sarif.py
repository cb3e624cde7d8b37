"""SARIF 2.1.0: one log for code scanning, viewers and dashboards.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; what of it GitHub reads:
https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support
"""

import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from kvlint import __version__
from kvlint.findings import Fault, Finding, Severity, Silence, Silenced, Span, Status, Step
from kvlint.reporters.facts import facts
from kvlint.reporters.fingerprints import fingerprints
from kvlint.reporters.objects import assumption, dump
from kvlint.reporters.paint import Paint
from kvlint.reporters.sarif_rules import described
from kvlint.reporters.view import View

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}
# What is left out of a run that was asked for changes only is no one's decision.
_SUPPRESSED = {Silence.COMMENT: "inSource", Silence.BASELINE: "external"}
# `](` makes a link in a message; in code it is an index and a call.
_LINK = re.compile(r"\](?=\()")

Json = dict[str, Any]


def render(view: View, paint: Paint) -> Iterator[str]:
    known = fingerprints(view)
    results = [_fault(view, fault) for fault in view.faults]
    for finding, silence in _told_of(view):
        result = _finding(view, finding, known[finding])
        if silence is not None and silence.by in _SUPPRESSED:
            result["suppressions"] = [_suppression(silence)]
        results.append(result)
    rules = described(view)
    numbers = {rule["id"]: number for number, rule in enumerate(rules)}
    for result in results:
        result["ruleIndex"] = numbers[result["ruleId"]]
    root = quote(os.fsencode(view.repository.as_posix()))
    run = {
        "tool": {"driver": {"name": "kvlint", "version": __version__, "rules": rules}},
        "invocations": [_invocation(view)],
        "originalUriBaseIds": {ROOT: {"uri": f"file://{root.rstrip('/')}/"}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    yield dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _told_of(view: View) -> Iterator[tuple[Finding, Silenced | None]]:
    """What is shown, and what would be shown, had the user not decided otherwise."""
    for finding in view.shown:
        yield finding, view.silence(finding)
    if view.choice.place is None:
        for silence in view.silenced:
            if silence.by in _SUPPRESSED and view.choice.shows(silence.finding):
                yield silence.finding, silence


def _invocation(view: View) -> Json:
    """A rule that failed is no result: what it would have found is not known."""
    failures = [{"level": "error", "message": _message(line)} for line in view.failures]
    return {
        "executionSuccessful": not failures,
        "toolExecutionNotifications": failures,
    }


def _fault(view: View, fault: Fault) -> Json:
    """A result as any other: it fails the run, and a notification is shown to nobody."""
    return {
        "ruleId": fault.name,
        "level": "error",
        "message": _message(fault.message),
        "locations": [_location(view, fault.span)],
    }


def _finding(view: View, finding: Finding, known_by: str) -> Json:
    guarded = finding.status is Status.GUARDED
    result = {
        "ruleId": finding.code,
        "kind": "pass" if guarded else "fail",
        "level": "none" if guarded else _LEVELS[finding.severity],
        "message": _message(_text(view, finding)),
        "locations": [_location(view, finding.span)],
        # Under a name of its own: for `primaryLocationLineHash`, which GitHub reads, its upload
        # action takes a hash of the line, and warns of every other value.
        "partialFingerprints": {"assumption/v1": known_by},
        "properties": {
            "status": finding.status,
            "confidence": finding.confidence,
            "assumption": assumption(finding),
            "unresolved": list(finding.unresolved),
        },
    }
    if finding.trace:
        end = Step(finding.span, finding.label)
        flow = [{"location": _stop(view, step)} for step in (*finding.trace, end)]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if finding.guard is not None:
        result["relatedLocations"] = [{"id": 1, **_stop(view, finding.guard)}]
    return result


def _text(view: View, finding: Finding) -> str:
    """All that is said: viewers show the message, and not every one the properties."""

    def tell(step: Step) -> str:
        return f"{step.says} ({view.in_repository(step.span.path)}:{step.span.line})"

    told = [f"{title}: {text}" for title, text in facts(view, finding, tell)]
    return "\n".join((finding.message, *told))


def _suppression(silence: Silenced) -> Json:
    written = silence.by is Silence.COMMENT
    return {
        "kind": _SUPPRESSED[silence.by],
        "status": "accepted",
        "justification": silence.reason if written else silence.because,
    }


def _stop(view: View, step: Step) -> Json:
    return {**_location(view, step.span), "message": _message(step.says)}


def _location(view: View, span: Span) -> Json:
    # From the bytes of the name, so that a name which is no UTF-8 keeps its own.
    uri = quote(os.fsencode(view.in_repository(span.path)))
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": ROOT},
            "region": {
                "startLine": span.line,
                "startColumn": span.column,
                "endLine": span.end_line,
                "endColumn": span.end_column,
            },
        }
    }


def _message(text: str) -> Json:
    return {"text": _LINK.sub(r"\\]", text)}
