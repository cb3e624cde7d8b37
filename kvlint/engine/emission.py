"""A report as the hypotheses that it holds: every assumption, shown or hidden, once."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import kvlint
from kvlint.assumptions import Entry, Least, Most, Own, Relation, Starts, nodes
from kvlint.findings import Confidence, Finding, Given, Report, Span, Status, Step
from kvlint.hypotheses import Assumptions, Guard, Hypothesis, Place
from kvlint.tree import Tree, decode

# Words in names of lists. What has none of them is handed over page by page.
_KINDS: Final = (
    ("aux", frozenset({"aux", "metadata"})),
    ("state", frozenset({"state", "states", "ssm", "mamba"})),
)
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ORDER: Final = (Status.UNGUARDED, Status.CONDITIONAL, Status.GUARDED)


def assumptions(report: Report, tree: Tree) -> Assumptions:
    """By the first place of each; of several places the one that is settled least speaks."""
    silenced = {id(one.finding): one.because for one in report.silenced}
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in (*report.findings, *(one.finding for one in report.silenced)):
        found[finding.assumption_id].append(finding)
    definitions = _Definitions(tree)
    hypotheses = [
        _hypothesis(sorted(places, key=lambda f: f.span), silenced, definitions)
        for places in found.values()
    ]
    hypotheses.sort(key=lambda hypothesis: (hypothesis.places[0].span, hypothesis.id))
    return Assumptions(tuple(hypotheses), kvlint.__version__)


def _hypothesis(
    findings: list[Finding], silenced: dict[int, str], definitions: "_Definitions"
) -> Hypothesis:
    least = min(findings, key=_settled)
    answered = [silenced.get(id(finding)) for finding in findings]
    return Hypothesis(
        id=least.assumption_id,
        code=least.code,
        name=least.name,
        relation=least.relation,
        lists=(_kind(least),),
        every=_of_every_region(least.relation),
        status=least.status,
        severity=least.severity,
        confidence=least.confidence,
        message=least.message,
        settle=least.settle,
        places=tuple(definitions.place(finding.span, finding.label) for finding in findings),
        trace=tuple(definitions.step(step) for step in least.trace),
        guards=tuple(
            Guard(one.relation, definitions.step(one.step)) for one in _in_force(least, findings)
        ),
        counterexample=None if least.counterexample is None else str(least.counterexample),
        holds_today=least.holds_today,
        unresolved=least.unresolved,
        silenced_by=answered[0] if all(answered) else None,
    )


def _in_force(least: Finding, findings: list[Finding]) -> Iterator[Given]:
    """What is enforced wherever it is not settled: what guards one place keeps nothing from
    another."""
    unsettled = [f for f in findings if f.status is not Status.GUARDED] or [least]
    enforced = [{given.relation for given in f.given} for f in unsettled]
    return (given for given in least.given if all(given.relation in some for some in enforced))


def _settled(finding: Finding) -> tuple[int, int]:
    return _ORDER.index(finding.status), list(Confidence).index(finding.confidence)


def _kind(finding: Finding) -> str:
    """The kind of list that an assumption ranges over, from what it is about and where it is."""
    function = finding.scope.rpartition("::")[2].rpartition(".")[2]
    words = {word.lower() for word in _WORD.findall(f"{finding.subject} {function}")}
    return next((kind for kind, own in _KINDS if words & own), "kv")


def _of_every_region(relation: Relation) -> bool:
    """Not where the region's own value meets a constant: that speaks of the tensors which one
    place measures."""
    parts = [*nodes(relation.left), *nodes(relation.right)]
    several = any(isinstance(node, Entry | Least | Most | Starts) for node in parts)
    return several or sum(isinstance(node, Own) for node in parts) > 1


@dataclass(slots=True)
class _Definitions:
    """Which function or class a line lies in."""

    tree: Tree
    _known: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)

    def step(self, step: Step) -> Place:
        return self.place(step.span, step.says)

    def place(self, span: Span, says: str) -> Place:
        if span.path not in self._known:
            self._known[span.path] = list(self._of(span.path))
        around = [one for one in self._known[span.path] if one[0] <= span.line <= one[1]]
        name = max(around, default=(0, 0, ""))[2]  # the innermost one begins last
        return Place(span, says, name)

    def _of(self, path: str) -> Iterator[tuple[int, int, str]]:
        try:
            tree = ast.parse(decode(self.tree.read(path), "replace"))
        except (OSError, SyntaxError, LookupError, ValueError, RecursionError, MemoryError):
            return  # newer syntax than this Python's
        nodes: list[tuple[ast.AST, str]] = [(tree, "")]
        while nodes:
            node, prefix = nodes.pop()
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    nodes.append((child, prefix))
                    continue
                name = prefix + child.name
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                yield first, child.end_lineno or child.lineno, name
                inside = "." if isinstance(child, ast.ClassDef) else ".<locals>."
                nodes.append((child, name + inside))
