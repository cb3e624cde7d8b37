"""How many of each rule: a table instead of findings."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from kvlint.findings import Finding, Status
from kvlint.reporters.paint import Paint
from kvlint.reporters.summary import HIDDEN, last_line
from kvlint.reporters.view import View


@dataclass(frozen=True, slots=True)
class Row:
    """Numbers of places, not of assumptions: these are what a file is edited at."""

    code: str | None
    name: str
    shown: int
    guarded_hidden: int = 0
    conditional_hidden: int = 0
    less_sure_hidden: int = 0

    def hidden(self) -> dict[Status, int]:
        return {
            Status.GUARDED: self.guarded_hidden,
            Status.CONDITIONAL: self.conditional_hidden,
            Status.UNGUARDED: self.less_sure_hidden,
        }


def rows(view: View) -> list[Row]:
    """One row a rule with any finding, the most frequent first; faults as rows without code."""
    findings = (*view.shown, *view.hidden)
    names = {finding.code: finding.name for finding in findings}
    table = [
        Row(
            code=code,
            name=name,
            shown=_count(view.shown, code),
            guarded_hidden=_count(view.hidden, code, Status.GUARDED),
            conditional_hidden=_count(view.hidden, code, Status.CONDITIONAL),
            less_sure_hidden=_count(view.hidden, code, Status.UNGUARDED),
        )
        for code, name in names.items()
    ]
    faults = Counter(fault.name for fault in view.faults)
    table += [Row(None, name, number) for name, number in faults.items()]
    return sorted(table, key=lambda row: (-row.shown, row.code or "", row.name))


def render(view: View, paint: Paint) -> Iterator[str]:
    table = rows(view)
    width = max((len(str(row.shown)) for row in table), default=1)
    for row in table:
        hidden = [f"{count} {HIDDEN[status]}" for status, count in row.hidden().items() if count]
        rest = f" ({', '.join(hidden)} hidden)" if hidden else ""
        code = paint(f"{row.code or '-':<5}", "bold red")
        yield f"{paint(f'{row.shown:>{width}}', 'bold')}  {code}  {row.name}{rest}"
    yield last_line(view)


def render_json(view: View) -> Iterator[str]:
    yield json.dumps([asdict(row) for row in rows(view)], indent=2)


def _count(findings: tuple[Finding, ...], code: str, status: Status | None = None) -> int:
    return sum(f.code == code and status in (None, f.status) for f in findings)
