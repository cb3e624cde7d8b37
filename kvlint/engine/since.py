"""`--since`: which findings have to do with what changed.

A finding does where its own place, a step of its way or its guard lies in changed lines. Where
lines are gone, a guard may have gone with them, so everything in that definition counts; so it
does where lines were replaced, unless these were assignments alone: where a value comes from is
on a finding's way. Where what went looks like a guard, so does everything in the same class, and
in definitions and classes that name the one it went from.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kvlint.engine.changes import Changes, Hunk
from kvlint.findings import Fault, Finding, Report, Silence, Silenced, Span, counted_faults
from kvlint.tree import Tree, decode

if TYPE_CHECKING:
    from kvlint.analysis.outline import Definition, Outline

# What a check or a minimum over all regions is made of.
_GUARD = re.compile(r"\b(?:assert|raise)\b|\b(?:min|set|all|any)\(|\blen\(\{")
_ASSIGNMENT = re.compile(r"\s*[\w.,*\s\[\]\"']+(?::[^=]+)? = ")


def changed_only(report: Report, changes: Changes, tree: Tree) -> Report:
    """The report without the findings that have nothing to do with `changes`.

    Faults of files in which nothing changed are left out, and counted in a notice.
    """
    judge = _Judge(changes, tree)
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    for finding in report.findings:
        if any(map(judge.touched, _places(finding))):
            kept.append(finding)
        else:
            silenced.append(Silenced(finding, Silence.UNCHANGED, changes.revision))
    faults = tuple(fault for fault in report.faults if changes.any_of(fault.span.path))
    return replace(
        report,
        findings=tuple(kept),
        faults=faults,
        silenced=(*report.silenced, *silenced),
        notices=(*report.notices, *_left_out(report.faults, faults, changes.revision)),
    )


def _places(finding: Finding) -> Iterator[Span]:
    yield finding.span
    for step in (*finding.trace, *((finding.guard,) if finding.guard else ())):
        yield step.span


def _left_out(all_of: tuple[Fault, ...], kept: tuple[Fault, ...], revision: str) -> Iterator[str]:
    left = [fault for fault in all_of if fault not in kept]
    if left:
        what = ", ".join(counted_faults(left))
        yield f"not shown, in files that have not changed since {revision}: {what}"


@dataclass(slots=True)
class _Judge:
    changes: Changes
    tree: Tree
    _outlines: dict[str, "Outline | None"] = field(default_factory=dict)
    _lost: "_Lost | None" = None
    _reached: dict[str, bool] = field(default_factory=dict)

    def touched(self, span: Span) -> bool:
        changes = self.changes
        if changes.all_of(span.path):
            return True
        hunks = changes.hunks.get(span.path, ())
        if any(hunk.first <= span.end_line and span.line <= hunk.last for hunk in hunks):
            return True
        if self._lost is None:
            self._lost = self._all_lost()
        if not self._lost.definitions:
            return False
        source = self._outline(span.path)
        definition = source.at(span.line) if source else None
        if source is None or definition is None:
            return False
        if definition.key not in self._reached:
            self._reached[definition.key] = self._lost.reaches(definition, source)
        return self._reached[definition.key]

    def _all_lost(self) -> "_Lost":
        lost = _Lost()
        for path, hunks in self.changes.hunks.items():
            suspect = [hunk for hunk in hunks if _may_have_guarded(hunk)]
            source = self._outline(path) if suspect else None
            for definition in source.definitions.values() if source else ():
                for hunk in suspect:
                    if _lay_in(hunk, definition):
                        lost.add(definition, any(map(_GUARD.search, hunk.removed)))
        return lost

    def _outline(self, path: str) -> "Outline | None":
        """What a file defines; None where it is no Python, and no finding can lie in it."""
        from kvlint.analysis.outline import outline

        if path not in self._outlines:
            try:
                self._outlines[path] = outline(path, decode(self.tree.read(path)))
            except (OSError, SyntaxError, LookupError, ValueError, RecursionError, MemoryError):
                self._outlines[path] = None
        return self._outlines[path]


@dataclass(slots=True)
class _Lost:
    """The definitions that lost lines, and who may have leaned on what went: who calls them, and,
    since an object is checked once for all its methods, their class and who names it."""

    definitions: set[str] = field(default_factory=set)
    classes: set[tuple[str, str]] = field(default_factory=set)
    called: set[str] = field(default_factory=set)

    def add(self, definition: "Definition", guard: bool) -> None:
        self.definitions.add(definition.key)
        if not guard:
            return
        if definition.class_name:
            self.classes.add((definition.path, definition.class_name))
        made = definition.short in ("__init__", "__post_init__", "__new__")
        name = definition.class_name.rpartition(".")[2] if made else definition.short
        self.called.add(name)

    def reaches(self, definition: "Definition", source: "Outline") -> bool:
        if definition.key in self.definitions:
            return True
        owner = definition.class_name
        if (definition.path, owner) in self.classes:
            return True
        beside = (d for d in source.definitions.values() if owner and d.class_name == owner)
        texts = [source.text(known) for known in (definition, *beside)]
        names = [re.compile(rf"\b{re.escape(name)}\b") for name in self.called]
        return any(name.search(text) for name in names for text in texts)


def _may_have_guarded(hunk: Hunk) -> bool:
    told = [line for line in hunk.removed if line.strip() and not line.lstrip().startswith("#")]
    new = hunk.last - hunk.first + 1
    return len(told) > new or any(_ASSIGNMENT.match(line) is None for line in told)


def _lay_in(hunk: Hunk, definition: "Definition") -> bool:
    """Whether what is gone stood in the definition."""
    first, last = definition.first_line, definition.last_line
    if hunk.first <= hunk.last:
        return hunk.first <= last and first <= hunk.last
    before, after = hunk.last, hunk.first
    if first <= before and after <= last:
        return True
    # Behind the last line that is left, what stood deeper belonged to it.
    told = [line for line in hunk.removed if line.strip()]
    return before == last and bool(told) and _depth(told[0]) > definition.column


def _depth(line: str) -> int:
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())
