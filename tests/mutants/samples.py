"""The code that is mutated and rewritten, and what its comments say about it.

`# operator, operator: KV101, KV103` names what is found on this line once one of these
operators has been at work; `# KV101` names what is found as it stands. A semicolon parts what
other operators bring about. Preview rules run where a comment names them. A line
`# rewrites without: a, b` near the top lists the rewrites that find nothing in the file.
"""

import ast
import re
from collections import Counter
from pathlib import Path

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.findings import Finding
from kvlint.reporters.view import Choice
from kvlint.rule import Rule

HERE = Path(__file__).parent
GUARDED = sorted((HERE / "guarded").glob("*.py"))
FAULTY = sorted((HERE / "faulty").glob("*.py"))

_PART = r"(?:[\w-]+(?:, [\w-]+)*: )?KV\d+(?:, KV\d+)*"
_MARK = re.compile(rf"  # ({_PART}(?:; {_PART})*)$", re.MULTILINE)
_WITHOUT = re.compile(r"^# rewrites without: (.*)$", re.MULTILINE)

Places = set[tuple[str, int]]


def marked(text: str, operator: str | None = None) -> Places:
    """Codes and lines that the comments promise: of an operator, or as the code stands."""
    found: Places = set()
    for number, line in enumerate(text.splitlines(), 1):
        mark = _MARK.search(line)
        if mark is None:
            continue
        for part in mark[1].split("; "):
            operators, _, codes = part.rpartition(": ")
            if operators.split(", ").count(operator) if operators else operator is None:
                found |= {(code, number) for code in codes.split(", ")}
    return found


def without(text: str) -> set[str]:
    found = _WITHOUT.search(text)
    return set(found[1].split(", ")) if found else set()


def rules(text: str) -> list[Rule]:
    """The rules that run by default, and those of preview that a comment names."""
    named = {code for mark in _MARK.findall(text) for code in re.findall(r"KV\d+", mark)}
    return [rule for rule in all_rules() if not rule.preview or rule.code in named]


def shown(root: Path, text: str) -> list[Finding]:
    """What `kvlint check` shows of the project that holds this text, with the rules for it."""
    report = check(root, [root], rules(text))
    assert not report.faults
    return [f for f in report.findings if Choice().shows(f)]


def places(findings: list[Finding]) -> Places:
    return {(f.code, f.span.line) for f in findings}


def verdict(text: str, findings: list[Finding]) -> Counter[tuple[str, int]]:
    """Code and number of the definition, so that moved lines make no difference."""
    defined = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    ]
    lines = ((f.code, f.span.line) for f in findings)
    return Counter((c, sum(a <= at for a, _ in defined)) for c, at in lines)
