"""What a report looks like from where the user stands: what is shown, what is hidden, and how
paths read from the working directory."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kvlint.findings import Confidence, Fault, Finding, Report, Silenced, Span, Status
from kvlint.rule import Rule
from kvlint.tree import Tree, decode


@dataclass(frozen=True, slots=True)
class Place:
    """A line that the user asked about; `path` is relative to the project."""

    path: str
    line: int

    def touches(self, finding: Finding) -> bool:
        return self.meets(finding.span)

    def meets(self, span: Span) -> bool:
        return span.path == self.path and span.line <= self.line <= span.end_line

    def passes(self, finding: Finding) -> bool:
        """Whether the way of the finding, or its guard, leads over this line."""
        steps = (*finding.trace, *((finding.guard,) if finding.guard else ()))
        return any(self.meets(step.span) for step in steps)


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user wants to see: everything at `place`, or else what is sure enough, with the
    guarded assumptions where `guarded` says so. `minima`: by path, where it is not `minimum`."""

    minimum: Confidence = Confidence.HIGH
    guarded: bool = False
    place: Place | None = None
    minima: Mapping[str, Confidence] = field(default_factory=dict)

    def counts(self, finding: Finding) -> bool:
        """Whether the finding is a complaint, one that the exit code speaks of."""
        minimum = self.minima.get(finding.span.path, self.minimum)
        return finding.status is not Status.GUARDED and finding.confidence.at_least(minimum)

    def shows(self, finding: Finding) -> bool:
        return self.counts(finding) or (self.guarded and finding.status is Status.GUARDED)


@dataclass(frozen=True)
class View:
    """The findings of a report, parted into shown and hidden, in the report's order.

    `rules` are those that ran; `failures` says in a line each which of them did not get through.
    """

    shown: tuple[Finding, ...]
    hidden: tuple[Finding, ...]
    faults: tuple[Fault, ...]
    files: int
    choice: Choice
    root: Path
    here: Path
    silenced: tuple[Silenced, ...] = ()
    overlay: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    rules: tuple[Rule, ...] = ()
    failures: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    sources: dict[str, Sequence[str]] = field(default_factory=dict, repr=False)

    @property
    def failed(self) -> bool:
        complaints = filter(self.choice.counts, self.shown)
        return bool(self.faults) or any(self.silence(finding) is None for finding in complaints)

    def silence(self, finding: Finding) -> Silenced | None:
        """Why a finding is shown only because its line was asked about; None where it is not."""
        if self.choice.place is None:
            return None
        return next((s for s in self.silenced if s.finding is finding), None)

    def settled(self, finding: Finding) -> bool:
        """Whether a finding is told though it is no complaint: a guard or the user answers it."""
        return finding.status is Status.GUARDED or self.silence(finding) is not None

    def path(self, path: str) -> str:
        """A path of the project as it reads from the working directory."""
        if path in self.names:
            return self.names[path]
        return seen_from(self.here, self.root, path)

    @cached_property
    def repository(self) -> Path:
        """The nearest folder at or above the project that git knows, else the project itself."""
        folders = (self.root, *self.root.parents)
        # A worktree and a submodule have a file of that name.
        return next((folder for folder in folders if (folder / ".git").exists()), self.root)

    def in_repository(self, path: str) -> str:
        """A path of the project as a forge names it, wherever the user stands."""
        return (self.root / path).relative_to(self.repository).as_posix()

    def line(self, path: str, number: int) -> str | None:
        """Line `number` of the source, counted from 1, or None when it cannot be had."""
        if path not in self.sources:
            self.sources[path] = _lines(Tree(self.root, self.overlay), path)
        lines = self.sources[path]
        return lines[number - 1] if 0 < number <= len(lines) else None


def view(
    report: Report,
    choice: Choice,
    root: Path,
    here: Path,
    overlay: Mapping[str, bytes] | None = None,
    rules: Sequence[Rule] = (),
    failures: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> View:
    """Part a report into what `choice` shows and hides. Paths read from `here`, save those that
    `names` calls otherwise; `overlay` is what the checked tree held instead of what is on disk."""
    found, faults = report.findings, report.faults
    if choice.place is not None:
        found = tuple(sorted((*found, *(s.finding for s in report.silenced)), key=_span))
        faults = tuple(f for f in faults if f.costs_file or choice.place.meets(f.span))
        shown = [f for f in found if choice.place.touches(f)]
        shown = shown or [f for f in found if choice.place.passes(f)]
    else:
        shown = [f for f in found if choice.shows(f)]
    seen = set(map(id, shown))
    hidden = [f for f in found if id(f) not in seen]
    return View(
        shown=tuple(shown),
        hidden=tuple(hidden),
        faults=faults,
        files=report.files,
        choice=choice,
        root=root,
        here=here,
        silenced=report.silenced,
        overlay=overlay or {},
        rules=tuple(rules),
        failures=tuple(failures),
        names=names or {},
    )


def seen_from(here: Path, root: Path, path: str) -> str:
    """A path of the project `root` as it reads from the folder `here`."""
    return Path(os.path.relpath(root / path, here)).as_posix()


def _span(finding: Finding) -> Span:
    return finding.span


def _lines(tree: Tree, path: str) -> Sequence[str]:
    try:
        # Universal newlines, and nothing but newlines: columns and lines as Python counts them.
        return decode(tree.read(path), "replace").split("\n")
    except (OSError, SyntaxError, LookupError):
        return ()
