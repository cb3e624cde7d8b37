"""What the user has answered already, as `check` is told it: options in, a quieter report out."""

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kvlint.engine.errors import UsageError
from kvlint.findings import Finding, Report
from kvlint.rule import Rule
from kvlint.tree import Tree

if TYPE_CHECKING:
    from kvlint.engine.baseline import Baseline, Entry
    from kvlint.engine.changes import Changes


@dataclass(frozen=True, slots=True)
class Run:
    """What a run looked at: the rules there are, the codes whose findings in a file are
    complete, and the paths that were asked for (none: one line was)."""

    tree: Tree
    rules: Sequence[Rule]
    ran: Callable[[str], Collection[str]]
    paths: Sequence[Path]


@dataclass(frozen=True, slots=True)
class Answers:
    """What comments, a baseline and the history of the code take from a report."""

    baseline: "Baseline | None" = None
    path: Path | None = None
    write: bool = False
    changes: "Changes | None" = None

    def applied(self, report: Report, run: Run, counts: Callable[[Finding], bool]) -> Report:
        """Comments first, then the baseline, which is written here where that was asked for,
        then what changed. `counts` says which findings are complaints."""
        if report.directives:
            from kvlint.engine.suppressions import suppress

            report = suppress(report, run.rules, run.ran)
        if self.baseline is not None and self.path is not None:
            report = self._known(self.baseline, self.path, report, run, counts)
        if self.changes is not None:
            from kvlint.engine.since import changed_only

            report = changed_only(report, self.changes, run.tree)
        return report

    def _known(
        self,
        baseline: "Baseline",
        path: Path,
        report: Report,
        run: Run,
        counts: Callable[[Finding], bool],
    ) -> Report:
        from kvlint.engine.baseline import known_before, renewed, stale

        judged = _judge(report, run)
        notices: tuple[str, ...]
        if self.write:
            new = renewed(baseline, report, counts, judged)
            new.save(path)
            notices = (_written(baseline, new, path),)
            baseline = new
        else:
            notices = tuple(
                f"stale in {path}: {entry.id}, {entry.assumes} in {entry.path} "
                f"({entry.definition}); --write-baseline {path} takes it out"
                for entry in stale(report, baseline, judged)
            )
        report = known_before(report, baseline, str(path), counts)
        return replace(report, notices=(*report.notices, *notices))


def answers(
    root: Path, baseline: Path | None, write_baseline: Path | None, since: str | None
) -> Answers:
    """Read the baseline and ask git, before anything is checked. Raises UsageError."""
    if write_baseline is not None and since is not None:
        raise UsageError("--write-baseline takes all findings, --since only some: use one of them")
    changes = None
    if since is not None:
        from kvlint.engine.changes import changes_since

        changes = changes_since(root, since)
    path = write_baseline or baseline
    if path is None:
        return Answers(changes=changes)

    from kvlint.engine.baseline import Baseline

    place = _place(path, root)
    if write_baseline is not None and path.exists() and not path.is_file():
        raise UsageError(f"cannot write the baseline {path}: it is no file")
    if write_baseline is not None and not (path.exists() and path.stat().st_size):
        return Answers(Baseline({}, place), path, write=True)
    known = Baseline.load(path)
    if known.project is not None and known.project != place:
        given = os.path.relpath((path.resolve().parent / known.project).resolve())
        raise UsageError(f"{path} is of another project than {root}: add --project {given}")
    return Answers(known, path, write_baseline is not None, changes)


def project_of(baseline: Path | None) -> Path | None:
    """The project that a baseline was written for, where there is one and it says so: what it
    knows is known of that project only. Raises UsageError for what is no baseline."""
    if baseline is None or not (baseline.exists() and baseline.stat().st_size):
        return None

    from kvlint.engine.baseline import Baseline

    project = Baseline.load(baseline).project
    return None if project is None else baseline.resolve().parent / project


def _place(path: Path, root: Path) -> str | None:
    """How the project is reached from the folder of a baseline that lies in it."""
    folder = path.resolve().parent
    if not folder.is_relative_to(root):
        return None
    return "/".join([".."] * len(folder.relative_to(root).parts)) or "."


def _judge(report: Report, run: Run) -> Callable[["Entry"], bool]:
    """Whether a run would have found an entry's assumption, were it still made."""
    broken = {fault.span.path for fault in report.faults if fault.costs_file}
    root, known = run.tree.root, {rule.code for rule in run.rules}
    asked = [path.resolve().relative_to(root) for path in run.paths]

    def judged(entry: "Entry") -> bool:
        complete = entry.code in run.ran(entry.path) or entry.code not in known
        inside = any(Path(entry.path).is_relative_to(path) for path in asked)
        return inside and complete and entry.path not in broken

    return judged


def _written(old: "Baseline", new: "Baseline", path: Path) -> str:
    added, gone = new.entries.keys() - old.entries.keys(), old.entries.keys() - new.entries.keys()
    noun = "assumption" if len(new.entries) == 1 else "assumptions"
    return f"wrote {path}: {len(new.entries)} {noun}, {len(added)} new, {len(gone)} gone"
