"""For programs: a list with one object a place; a fault has code null."""

import json
from collections.abc import Iterator
from typing import Any

from kvlint.findings import Fault, Finding, Span, Step
from kvlint.reporters.paint import Paint
from kvlint.reporters.view import View


def render(view: View, paint: Paint) -> Iterator[str]:
    objects = [_fault(view, fault) for fault in view.faults]
    objects += [_finding(view, finding) for finding in view.shown]
    objects.sort(key=lambda item: (item["path"], item["line"], item["column"]))
    yield json.dumps(objects, indent=2)


def _finding(view: View, finding: Finding) -> dict[str, Any]:
    counterexample, silence = finding.counterexample, view.silence(finding)
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
        "assumption": {
            "id": finding.assumption_id,
            "formula": finding.formula,
            "counterexample": counterexample and counterexample.to_dict(),
            "holds_today": finding.holds_today,
        },
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
