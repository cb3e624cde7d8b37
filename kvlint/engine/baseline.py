"""The baseline: assumptions that were known before, so that only new ones are reported.

An entry is an assumption's id, which holds no line numbers, and the number of places it is made
at. One place more than that is news, and then all of its places are shown: which is the new one
cannot be told without lines. What stands in the file besides id and number is for readers.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from kvlint.engine.errors import UsageError
from kvlint.findings import Finding, Report, Silence, Silenced, Status

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """`path` and `definition` are those of the project that the ids were made in."""

    id: str
    code: str
    path: str
    definition: str
    assumes: str
    places: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was known. `project` is the folder that paths and ids start from, relative to the
    folder of the file; None where the file lies outside of it."""

    entries: Mapping[str, Entry]
    project: str | None = None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises UsageError for what is no readable baseline of a schema known here."""
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise UsageError(
                f"no such baseline: {path}; --write-baseline {path} makes one"
            ) from None
        except OSError as error:
            raise UsageError(f"cannot read the baseline {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"not a baseline of kvlint: {path}") from None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise UsageError(f"the baseline is broken: {path}{line} is no JSON") from None
        if not isinstance(found, dict) or found.get("tool") != "kvlint":
            raise UsageError(f"not a baseline of kvlint: {path}")
        if found.get("schema") != SCHEMA:
            raise UsageError(
                f"{path} has schema {found.get('schema')!r}, this kvlint reads {SCHEMA}: "
                "another version wrote it"
            )
        project, entries = found.get("project"), found.get("baseline")
        if not isinstance(project, str | None) or not isinstance(entries, list):
            raise UsageError(f"the baseline is broken: {path} has no list of entries")
        read: dict[str, Entry] = {}
        for number, item in enumerate(entries, 1):
            entry = _entry(item)
            if entry is None:
                raise UsageError(f"the baseline is broken: entry {number} of {path}")
            # A merge can leave two of one id.
            if entry.id not in read or read[entry.id].places < entry.places:
                read[entry.id] = entry
        return cls(read, project)

    def to_text(self) -> str:
        """JSON with one entry a line, sorted, so that two branches merge."""
        lines = ",\n".join(
            f"    {json.dumps(asdict(entry), ensure_ascii=False)}" for entry in _sorted(self)
        )
        body = f"[\n{lines}\n  ]" if lines else "[]"
        project = json.dumps(self.project, ensure_ascii=False)
        return (
            f'{{\n  "tool": "kvlint",\n  "schema": {SCHEMA},\n  "project": {project},\n'
            f'  "baseline": {body}\n}}\n'
        )

    def save(self, path: Path) -> None:
        """Write all of it or nothing. Raises UsageError where that cannot be done."""
        target = path.resolve()  # through a link, not over it
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        # A name that is no text in UTF-8 has escapes that JSON reads back.
        data = self.to_text().encode("utf-8", "backslashreplace")
        try:
            try:
                temporary.write_bytes(data)
                if target.exists():
                    temporary.chmod(target.stat().st_mode)
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write the baseline {path}: {error.strerror}") from None


def known_before(
    report: Report, baseline: Baseline, name: str, counts: Callable[[Finding], bool]
) -> Report:
    """The report without what `baseline` knows; `name` is how the user calls it. Only places
    that `counts` can be too many: what is not shown is no news."""
    places = _places(filter(counts, report.findings))
    more = {key: entry for key, entry in baseline.entries.items() if places[key] > entry.places}
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    for finding in report.findings:
        key = finding.assumption_id
        if finding.status is Status.GUARDED or key in more or key not in baseline.entries:
            kept.append(finding)
        else:
            silenced.append(Silenced(finding, Silence.BASELINE, name))
    notices = tuple(
        f"{key} is made at {places[key]} places, {name} knows {entry.places}: all are shown"
        for key, entry in sorted(more.items())
    )
    return replace(
        report,
        findings=tuple(kept),
        silenced=(*report.silenced, *silenced),
        notices=(*report.notices, *notices),
    )


def stale(report: Report, baseline: Baseline, judged: Callable[[Entry], bool]) -> list[Entry]:
    """The entries that none of the report's findings matches, of those that this run can judge:
    what was mended, or is silenced by a comment now."""
    alive = _places(report.findings)
    return [e for e in _sorted(baseline) if not alive[e.id] and judged(e)]


def renewed(
    old: Baseline,
    report: Report,
    counts: Callable[[Finding], bool],
    judged: Callable[[Entry], bool],
) -> Baseline:
    """`old` brought up to what was found: new are the assumptions of which one place `counts`,
    gone are those that nothing matches any more, of those that this run can judge."""
    places, counting = _places(report.findings), _places(filter(counts, report.findings))
    entries = {key: e for key, e in old.entries.items() if not judged(e) or places[key]}
    for finding in report.findings:
        key = finding.assumption_id
        known = entries[key].places if key in old.entries and key in entries else 0
        # A run that looks for what is surer than the last one did forgets nothing.
        number = max(counting[key], min(known, places[key]))
        if number:
            path, _, definition = finding.scope.partition("::")
            entries[key] = Entry(key, finding.code, path, definition, finding.formula, number)
    return replace(old, entries=entries)


def _places(findings: Iterable[Finding]) -> Counter[str]:
    """How many of these places make each assumption; guarded ones make none."""
    return Counter(f.assumption_id for f in findings if f.status is not Status.GUARDED)


def _sorted(baseline: Baseline) -> list[Entry]:
    return sorted(
        baseline.entries.values(),
        key=lambda entry: (entry.path, entry.definition, entry.code, entry.id),
    )


def _entry(item: object) -> Entry | None:
    match item:
        case {
            "id": str(key),
            "code": str(code),
            "path": str(path),
            "definition": str(definition),
            "assumes": str(assumes),
            "places": int(places),
        }:
            return Entry(key, code, path, definition, assumes, places)
    return None
