"""What must hold of `check` on any input, however broken."""

import json
import re
from pathlib import Path

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.findings import Confidence, Report, Span
from kvlint.reporters import reporter
from kvlint.reporters.paint import plain
from kvlint.reporters.view import Choice, view


def what_is_wrong(root: Path, *, twice: bool) -> str:
    """'' where all holds: nothing is raised, every span lies in its file, the JSON is valid, no
    definition is lost but by its depth or size, and a second run says the same."""
    report = check(root, [root], all_rules())
    for span in _spans(report):
        wrong = _outside(root, span)
        if wrong:
            return wrong
    for fault in report.faults:
        if fault.name == "not-judged" and not re.search(r"more than|too deep", fault.message):
            return fault.message
    told = _json(report, root)
    json.loads(told)
    if twice and _json(check(root, [root], all_rules()), root) != told:
        return "a second run says something else"
    return ""


def _json(report: Report, root: Path) -> str:
    seen = view(report, Choice(Confidence.LOW, guarded=True), root, root)
    return "\n".join(reporter("json").render(seen, plain))


def _spans(report: Report) -> list[Span]:
    findings = report.findings
    spans = [f.span for f in findings]
    spans += [step.span for f in findings for step in f.trace]
    spans += [f.guard.span for f in findings if f.guard]
    return spans + [fault.span for fault in report.faults]


def _outside(root: Path, span: Span) -> str:
    text = (root / span.path).read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = text.split(b"\n")
    start, end = (span.line, span.column), (span.end_line, span.end_column)
    # A fault may point one line behind the end; columns count characters, of which a line has
    # at most as many as bytes.
    if not (1 <= span.line <= len(lines) + 1 and span.line <= span.end_line <= len(lines) + 1):
        return f"{span} is not in the file, which has {len(lines)} lines"
    if start > end or span.column < 1:
        return f"{span} ends before it starts"
    return ""
