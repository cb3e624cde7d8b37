"""What is remembered from run to run, so that what did not change is not asked again.

One record for a project, a choice of rules, a vocabulary, this kvlint and this Python: for each
file what it holds (by digest) and what was said of it. A file is read again only when it looks
different from outside, and asked again only when what it holds, or what an answer rests on, has
changed. What is remembered is data: a record that holds anything else is not read, and one that
cannot be read or written costs nothing but time.
"""

import hashlib
import io
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeVar

import kvlint
from kvlint.analysis.vocabulary import own_names
from kvlint.engine.record import Record
from kvlint.rule import Rule

FOLDER = ".kvlint_cache"
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by kvlint; may be deleted at any time.\n"

# Two changes within one tick of the clock that files are stamped with look like one.
TICK = 2_000_000_000  # ns, generously

# Records beyond these, the oldest ones, are of versions and choices that nobody uses any more.
KEPT = 12

_SUM = 16  # bytes of the checksum in front

T = TypeVar("T")

# The only classes that a record may name, by module.
_DATA = {
    "kvlint.engine.record": {"Known", "Record"},
    "kvlint.engine.syntax": {"Looked"},
    "kvlint.engine.unit": {"Unit"},
    "kvlint.findings": {
        "Confidence", "Directive", "Fault", "Finding", "Severity", "Span", "Status", "Step",
    },
    "kvlint.assumptions": {
        "Counterexample", "Entry", "Least", "Most", "Number", "Own", "Product", "Quotient",
        "Relation", "Starts", "Unknown",
    },
    "kvlint.engine.facts": {"Kept"},
    "kvlint.analysis.memory": {"Contents", "Listed", "Search"},
    "kvlint.analysis.outline": {"ClassOutline", "Definition"},
    "kvlint.analysis.bodies": {"CallSite", "Guard", "Loop", "Root", "Store", "Where"},
    "kvlint.analysis.terms": {
        "Arange", "Call", "Choice", "Each", "Field", "Fold", "Global", "Index", "Item", "Literal",
        "Many", "Mapping", "Not", "Opaque", "Operation", "Parameter", "Running", "Sequence",
        "Slice", "This",
    },
    "builtins": {"Ellipsis", "complex"},
}  # fmt: skip


class Cache:
    """The record of one project, on disk."""

    def __init__(
        self, folder: Path, root: Path, rules: Sequence[Rule], *, writes: bool = True
    ) -> None:
        """`folder` is made when it is first written to, which it never is without `writes`."""
        self._writes = writes
        self._folder = folder / kvlint.__version__
        codes = [(rule.code, type(rule).__module__) for rule in rules]
        key = (root.as_posix(), codes, own_names(), sys.version, _parser(), _own_digest())
        self._file = self._folder / f"{digest_of(repr(key))}.record"

    @property
    def facts(self) -> Path | None:
        """Where to keep what is known of single files; None where nothing is to be written."""
        return self._file.with_suffix(".facts") if self._writes else None

    def load(self) -> Record:
        return read(self._file, Record) or Record()

    def save(self, record: Record) -> None:
        """Silent where nothing can be written: that is for another run to mind."""
        if not self._writes:
            return
        old = time.time_ns() - TICK
        for known in record.files.values():
            if known.stamp is not None and max(known.stamp[1:3]) > old:
                known.stamp = None
        with suppress(OSError):
            write(self._file, record)
            self._tidy()

    def forget(self, paths: Iterable[str]) -> None:
        """What is known of single files, where it may be of another text than the record says."""
        if self.facts is not None:
            for path in paths:
                with suppress(OSError):
                    (self.facts / digest_of(path)).unlink(missing_ok=True)

    def prepare(self) -> None:
        """Make the folders, so that tools for backups and versions leave them alone."""
        top = self._folder.parent
        with suppress(OSError):
            (self.facts or self._folder).mkdir(parents=True, exist_ok=True)
            for name, text in (("CACHEDIR.TAG", TAG), (".gitignore", "*\n")):
                if not (top / name).exists():
                    (top / name).write_text(text, encoding="utf-8")

    def _tidy(self) -> None:
        ages = sorted((f.stat().st_mtime_ns, f) for f in self._folder.parent.glob("*/*.record"))
        for _, file in ages[:-KEPT]:
            rmtree(file.with_suffix(".facts"), ignore_errors=True)
            file.unlink(missing_ok=True)


def read(file: Path, kind: type[T]) -> T | None:
    """What was written, None where it is anything else, damaged or not there."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    whole = _sum(data[_SUM:]) == data[:_SUM]
    return load(data[_SUM:], kind) if whole else None


def load(data: bytes, kind: type[T]) -> T | None:
    """What was dumped, None where it is anything else."""
    try:
        found = _Data(io.BytesIO(data)).load()
    except Exception:  # a damaged record fails in any way, and costs nothing but time
        return None
    return found if isinstance(found, kind) else None


def write(file: Path, found: object) -> None:
    """As a whole or not at all. Raises OSError."""
    data = pickle.dumps(found, protocol=5)
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".new")
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(_sum(data))
            new.write(data)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _sum(data: bytes) -> bytes:
    # A byte that a disk got wrong may still make a record, of something else.
    return hashlib.blake2b(data, digest_size=_SUM).digest()


class _Data(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name not in _DATA.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is no data of kvlint's")
        return super().find_class(module, name)


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def _parser() -> bytes:
    """Which libcst makes bodies of text, without importing it."""
    found = find_spec("libcst")
    with suppress(OSError):
        for folder in found.submodule_search_locations or () if found else ():
            return (Path(folder) / "_version.py").read_bytes()
    return b""


def _own_digest() -> str:
    """How kvlint's own files look: who works on a rule is not told what the old one found."""
    seen: list[tuple[str, int, int]] = []
    folders = [os.path.dirname(kvlint.__file__)]  # noqa: PTH120 (a path object takes longer)
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        folders.append(entry.path)
                elif entry.name.endswith((".py", ".toml")):
                    status = entry.stat()
                    seen.append((entry.path, status.st_size, status.st_mtime_ns))
    return digest_of(repr(sorted(seen)))
