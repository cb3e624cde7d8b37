"""What is found in one release, as text of one line a finding, and what changed in it.

A line keeps what a user would act on: the place, the rule, how sure, and the assumption. The
words of a message are left out: to word a rule anew changes no line.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from kvlint.findings import Confidence, Fault, Finding, Report, Status
from kvlint.reporters.view import Choice
from kvlint.rule import Rule

SHOWN = Choice()
LISTED = Choice(Confidence.MEDIUM)

_CODE = re.compile(r":\d+:\d+: ([\w-]+)")


def render(release: str, report: Report, rules: Sequence[Rule]) -> str:
    """The snapshot of a release: a table of counts by rule, then a line for each finding.

    What is listed has confidence medium or more. `hidden` marks what is not shown by default,
    `preview` what a rule says that runs only when selected; `shown` is all else.
    """
    found = [finding for finding in report.findings if LISTED.counts(finding)]
    preview = {rule.code for rule in rules if rule.preview}
    lines = [
        *((f.span.path, f.span.line, f.span.column, _finding(f, preview)) for f in found),
        *((f.span.path, f.span.line, f.span.column, _fault(f)) for f in report.faults),
    ]
    head = [f"# {line}".rstrip() for line in ("", *_table(found, rules), "")]
    body = [f"{path}:{line}:{column}: {says}" for path, line, column, says in sorted(lines)]
    return "\n".join([f"# {release}", *head, *body, ""])


def _table(found: Sequence[Finding], rules: Sequence[Rule]) -> Iterator[str]:
    shown = Counter(f.code for f in found if SHOWN.counts(f))
    listed = Counter(f.code for f in found)
    width = max((len(rule.name) for rule in rules), default=0)
    yield f"{'rule':<{7 + width}}  shown  hidden"
    for rule in rules:
        counts = f"{shown[rule.code]:>5}  {listed[rule.code] - shown[rule.code]:>6}"
        yield f"{rule.code}  {rule.name:<{width}}  {counts}{'  preview' if rule.preview else ''}"


def _finding(finding: Finding, preview: set[str]) -> str:
    how = []
    if finding.code in preview:
        how.append("preview")
    if not SHOWN.counts(finding):
        how.append("hidden")
    if finding.status is Status.CONDITIONAL:
        how.append("conditional")
    if finding.by_name_only:
        how.append("by name")
    marks = ", ".join((finding.severity, *(how or ["shown"])))
    return f"{finding.code} [{marks}] {finding.formula}"


def _fault(fault: Fault) -> str:
    return f"{fault.name} [fault]"


def difference(old: str, new: str, name: str) -> str:
    """A unified diff without context, the empty text where nothing changed."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (now)", n=0
    )
    return "".join(lines)


def summary(old: str, new: str) -> str:
    """What came and went by rule, `KV101 -1, KV201 +2 -1`, or `nothing changed`.

    A finding whose severity, status or assumption changed came and went.
    """
    before, after = Counter(_findings(old)), Counter(_findings(new))
    came, went = Counter(_codes(after - before)), Counter(_codes(before - after))
    changes = []
    for code in sorted(came | went):
        numbers = [f"{sign}{n[code]}" for sign, n in (("+", came), ("-", went)) if n[code]]
        changes.append(" ".join((code, *numbers)))
    return ", ".join(changes) or ("nothing changed" if old == new else "no finding changed")


def _findings(snapshot: str) -> list[str]:
    return [line for line in snapshot.splitlines() if not line.startswith("#")]


def _codes(lines: Counter[str]) -> Iterator[str]:
    for line in lines.elements():
        if found := _CODE.search(line):
            yield found[1]
