"""What is in force for a file: its nearest configuration, and what the command line says instead.

As in Ruff, the nearest folder at or above a file that has a configuration decides alone: nothing
is merged with what lies further up. Two settings are of the whole run, since they change what is
known or remembered of all files: `baseline` and `vocabulary` are those of the project's root.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kvlint.analysis.vocabulary.own import Own
from kvlint.engine.configuration import (
    OWN_FILE,
    SHARED_FILE,
    Configuration,
    FileIgnore,
    read,
    shown,
    wrong,
)
from kvlint.engine.errors import UsageError
from kvlint.engine.globs import Globs
from kvlint.engine.selection import EVERYTHING, matching, running, select
from kvlint.findings import Confidence, Report
from kvlint.rule import Rule

MAX_FILE_SIZE = 1 << 20  # bytes; the largest file of two engines read in full has a third of it


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says; None, or nothing, where it does not.

    `select` stands instead of a configuration's `select` and `ignore`; `ignore` and `exclude` are
    added to the configuration's. `force_exclude`: what is excluded is left out though it is given.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    exclude: Globs | None = None
    min_confidence: Confidence | None = None
    max_file_size: int | None = None
    force_exclude: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in force for the files that one configuration governs."""

    configuration: Configuration
    rules: tuple[Rule, ...]
    file_ignores: tuple[tuple[FileIgnore, frozenset[str]], ...]
    excludes: tuple[Globs, ...]
    min_confidence: Confidence
    max_file_size: int  # bytes

    def exclude(self, path: str, name: str, end: str = "") -> bool:
        """Whether a file, or with `end` "/" a folder, is left out; those above are not asked."""
        return any(globs.match(path, name, end) for globs in self.excludes)

    def codes(self, path: str) -> frozenset[str]:
        """The rules that are reported in a file, by its absolute path."""
        left = frozenset(rule.code for rule in self.rules)
        for files, codes in self.file_ignores:
            if codes & left and files.covers(path):
                left -= codes
        return left


@dataclass
class Configured:
    """The settings of every folder, looked up on the way and remembered.

    `fixed`: the configuration of all files, whatever lies beside them. Raises UsageError where
    the command line selects what is no rule, or by itself leaves no rule.
    """

    rules: Sequence[Rule] = ()
    overrides: Overrides = field(default_factory=Overrides)
    fixed: Configuration | None = None
    _known: dict[str, Settings | UsageError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.overrides
        if given.select is not None or given.ignore:
            chosen = (EVERYTHING,) if given.select is None else given.select
            select(self.rules, chosen, given.ignore)
        self._outermost = self._settings(self.fixed or Configuration())

    def at(self, folder: str) -> Settings:
        """What is in force in an absolute folder, which may not exist. Raises UsageError when the
        configuration that decides is broken."""
        if self.fixed is not None:
            return self._outermost
        way = []
        found = self._known.get(folder)
        while found is None:
            way.append(folder)
            found = self._of(folder, (OWN_FILE, SHARED_FILE))
            above = folder.rpartition("/")[0] or "/"
            if found is None:
                found = self._outermost if above == folder else self._known.get(above)
            folder = above
        for passed in way:
            self._known[passed] = found
        if isinstance(found, UsageError):
            raise found
        return found

    def excluded(self, path: str) -> bool:
        """Whether a file or a folder is excluded, or one above it. Raises UsageError as `at`."""
        excludes = self.at(path.rpartition("/")[0] or "/").excludes
        return any(globs.cover(path) for globs in excludes)

    def entered(self, folder: str, names: Iterable[str], above: Settings) -> Settings:
        """As `at`, for a walk that knows what a folder holds and what is in force above it.

        A broken configuration is of no account here: whether it is needed is known only when a
        file below it is to be reported.
        """
        if self.fixed is not None:
            return self._outermost
        found = self._of(folder, names) or above
        self._known[folder] = found
        return above if isinstance(found, UsageError) else found

    def for_files(self, root: Path, paths: Iterable[str]) -> "InForce":
        """What is in force for these paths of a project. Raises UsageError as `at` does."""
        top = root.as_posix()
        folders = {path.rpartition("/")[0] for path in paths}
        return InForce(
            top, self.at(top), {f: self.at(joined(top, f) if f else top) for f in folders}
        )

    def _of(self, folder: str, names: Iterable[str]) -> Settings | UsageError | None:
        try:
            for name in (OWN_FILE, SHARED_FILE):
                if name in names and (file := Path(folder, name)).is_file():
                    configuration = read(file)
                    if configuration is not None:
                        return self._settings(configuration)
        except UsageError as error:
            return error
        return None

    def _settings(self, configuration: Configuration) -> Settings:
        given = self.overrides
        for selector in (*(configuration.select or ()), *configuration.ignore):
            self._matching(configuration, selector)
        chosen, ignored = given.select, given.ignore
        if chosen is None:
            chosen = (EVERYTHING,) if configuration.select is None else configuration.select
            ignored = (*configuration.ignore, *given.ignore)
        return Settings(
            configuration=configuration,
            rules=tuple(running(self.rules, chosen, ignored)),
            file_ignores=tuple(
                (files, frozenset(c for s in files.codes for c in self._matching(configuration, s)))
                for files in configuration.file_ignores
            ),
            excludes=tuple(globs for globs in (configuration.exclude, given.exclude) if globs),
            min_confidence=given.min_confidence or configuration.min_confidence or Confidence.HIGH,
            max_file_size=given.max_file_size or configuration.max_file_size or MAX_FILE_SIZE,
        )

    def _matching(self, configuration: Configuration, selector: str) -> list[str]:
        try:
            return [rule.code for rule in matching(self.rules, selector)]
        except UsageError as error:
            if configuration.source is None:
                raise
            raise wrong(configuration.source, selector, str(error)) from None


@dataclass(frozen=True, slots=True)
class InForce:
    """The settings of a run: `whole` for the project's root, the others by folder below it."""

    root: str
    whole: Settings
    by_folder: Mapping[str, Settings]

    def of(self, path: str) -> Settings:
        """Of a file that is gone, or was not asked for, the project's."""
        return self.by_folder.get(path.rpartition("/")[0], self.whole)

    def codes(self, path: str) -> frozenset[str]:
        """The rules that are reported in a file."""
        return self.of(path).codes(joined(self.root, path))

    def rules(self) -> list[Rule]:
        """All that some file wants, in the order of codes."""
        every = {rule.code: rule for settings in self._settings() for rule in settings.rules}
        return [every[code] for code in sorted(every)]

    def filtered(self, report: Report) -> Report:
        """The report with what each file's own settings select."""
        paths = {finding.span.path for finding in report.findings}
        codes = {path: self.codes(path) for path in paths}
        findings = tuple(f for f in report.findings if f.code in codes[f.span.path])
        return replace(report, findings=findings)

    def minima(self, report: Report) -> dict[str, Confidence]:
        """How sure a finding must be to be shown, by path."""
        return {f.span.path: self.of(f.span.path).min_confidence for f in report.findings}

    @property
    def baseline(self) -> Path | None:
        """From the working directory, as paths on a command line are."""
        found = self.whole.configuration.baseline
        return None if found is None else Path(shown(found))

    @property
    def vocabulary(self) -> Own:
        return self.whole.configuration.vocabulary or Own()

    def notices(self) -> list[str]:
        """One line for each configuration that says what only the project's root can say."""
        lines = set()
        for configuration in (settings.configuration for settings in self._settings()):
            if configuration is self.whole.configuration or configuration.source is None:
                continue
            said = [n for n in ("baseline", "vocabulary") if getattr(configuration, n) is not None]
            if said:
                lines.add(
                    f"{shown(configuration.source)}: {' and '.join(said)} not used: what is of the "
                    f"whole project stands in the configuration of its root, {self.root}"
                )
        return sorted(lines)

    def _settings(self) -> list[Settings]:
        return list(self.by_folder.values()) or [self.whole]


def joined(root: str, path: str) -> str:
    """A path below `root` as an absolute one; of an empty path, how all below it begin."""
    return f"{root.rstrip('/')}/{path}"
