"""What the rules find from one file: the piece of a run that can be done, lost and kept alone."""

import os
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvlint.engine.errors import one_line
from kvlint.findings import Fault, Finding, decide
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.link import Program


@dataclass(frozen=True, slots=True)
class Unit:
    """`failures`: code and name of a rule that raised, and what. `files` and `words` are what
    the answer rests on, see `kvlint.analysis.files.Basis`."""

    findings: tuple[Finding, ...]
    faults: tuple[Fault, ...]
    failures: tuple[tuple[str, str, str], ...]
    files: frozenset[str]
    words: frozenset[str]


def unit(program: "Program", rules: Sequence[Rule], path: str) -> Unit:
    """What the rules say of `path`. The answer does not depend on what was asked before.

    A rule that says something of another file is not heard: it says so again when it starts
    from that one, and only then is it known what the answer rests on.
    """
    program.begin(path)
    failures: list[tuple[str, str, str]] = []
    findings = tuple(
        finding
        for rule in rules
        for finding in _decided(rule, program, failures)
        if finding.span.path == path
    )
    basis = program.basis
    # What only the analysis choked on is said, too.
    choked = [f for f in program.faults if f.span.path == path] if path in basis.files else []
    files, words = frozenset(basis.files), frozenset(basis.words)
    return Unit(findings, tuple(choked), tuple(failures), files, words)


def _decided(
    rule: Rule, program: "Program", failures: list[tuple[str, str, str]]
) -> Iterator[Finding]:
    try:
        for claim in rule.check(program):
            yield decide(claim, rule.name, rule.severity, rule.confidence)
    except Exception as error:  # whatever it is, it is the rule's, and is said by its name
        if os.environ.get("KVLINT_DEBUG"):
            traceback.print_exc()
        failures.append((rule.code, rule.name, one_line(error)))
