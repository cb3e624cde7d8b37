"""Findings and faults as JSON objects, for every format that is JSON."""

import json
import re
from typing import Any

from kvlint.findings import Fault, Finding, Span, Step
from kvlint.reporters.view import View

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def places(view: View) -> list[dict[str, Any]]:
    """One object a place, faults and findings alike, by path, line and column."""
    objects = [_fault(view, fault) for fault in view.faults]
    objects += [_finding(view, finding) for finding in view.shown]
    return sorted(objects, key=lambda item: (item["path"], item["line"], item["column"]))


def dump(value: object, indent: int | None = None) -> str:
    """JSON in ASCII: right in every encoding, and no character of a text ends a line.

    Half a surrogate pair, which a file name that is no UTF-8 has, becomes U+FFFD: escaped it
    would be JSON by its grammar, and refused by most of those who read it.
    """
    return _BEYOND_ASCII.sub(_escaped, json.dumps(value, indent=indent, ensure_ascii=False))


def assumption(finding: Finding) -> dict[str, Any]:
    counterexample = finding.counterexample
    return {
        "id": finding.assumption_id,
        "formula": finding.formula,
        "counterexample": counterexample and counterexample.to_dict(),
        "holds_today": finding.holds_today,
    }


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    lone = "\ud800" <= character <= "\udfff"
    return json.dumps("\N{REPLACEMENT CHARACTER}" if lone else character)[1:-1]


def _finding(view: View, finding: Finding) -> dict[str, Any]:
    silence = view.silence(finding)
    return {
        "code": finding.code,
        "name": finding.name,
        **_span(view, finding.span),
        "message": finding.message,
        "label": finding.label,
        "settle": finding.settle,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "status": finding.status,
        "assumption": assumption(finding),
        "unresolved": list(finding.unresolved),
        "trace": [_step(view, step) for step in finding.trace],
        "guard": None if finding.guard is None else _step(view, finding.guard),
        "silenced_by": None if silence is None else silence.because,
        "url": None,  # the documents are in the package: `kvlint explain CODE`
    }


def _fault(view: View, fault: Fault) -> dict[str, Any]:
    """The same keys as a finding's, so that a reader needs no second case."""
    return {
        "code": None,
        "name": fault.name,
        **_span(view, fault.span),
        "message": fault.message,
        "label": None,
        "settle": None,
        "severity": "error",
        "confidence": "high",
        "status": None,
        "assumption": None,
        "unresolved": [],
        "trace": [],
        "guard": None,
        "silenced_by": None,
        "url": None,
    }


def _step(view: View, step: Step) -> dict[str, Any]:
    return {**_span(view, step.span), "message": step.says}


def _span(view: View, span: Span) -> dict[str, Any]:
    return {
        "path": view.path(span.path),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
