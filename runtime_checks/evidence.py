"""What a process leaves in the folder that its operator named.

Files are readable by their owner alone, links are not followed, and all files of a process
together stay within 64 MiB: of the violations the oldest half goes, of the ring its oldest
entries. The folder is opened anew each time. A server may close every descriptor it did not open,
and the number of a kept one would then be another's file.
"""

import itertools
import json
import operator
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

MIB: Final = 1 << 20
# Two files of violations; the ring, the ledger of stages, the callers and the geometry, with what
# replaces each; and the state: under 64 MiB.
VIOLATIONS: Final = 9 * MIB
RING: Final = 8 * MIB
CALLS: Final = 2 * MIB
GEOMETRY: Final = 4 * MIB
RECORD: Final = 256 << 10

_REPLACED: Final = itertools.count()
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class EvidenceError(ValueError):
    """The folder cannot take evidence; the message is one line."""


class Evidence:
    """The files of one process. Every method may raise OSError."""

    def __init__(self, folder: Path, run: str, pid: int) -> None:
        self.folder = folder
        self._name = f"{run}-{pid}"

    @property
    def violations(self) -> Path:
        return self.folder / f"violations-{self._name}.jsonl"

    def add_violation(self, record: Mapping[str, object]) -> None:
        line = _line(_bounded(record))
        name, older = self.violations.name, f"violations-{self._name}.1.jsonl"
        with _opened(self.folder) as folder:
            file = _appendable(name, folder)
            try:
                if os.fstat(file).st_size + len(line) > VIOLATIONS:
                    os.replace(name, older, src_dir_fd=folder, dst_dir_fd=folder)
                    os.close(file)
                    file = -1
                    file = _appendable(name, folder)
                _write(file, line)
            finally:
                if file >= 0:
                    os.close(file)

    def replace_ring(self, entries: Sequence[Mapping[str, object]]) -> None:
        """The newest entries that the bound leaves room for, oldest of them first."""
        replace(self.folder, f"transfers-{self._name}.jsonl", _newest(entries, RING))

    def replace_calls(self, entries: Sequence[Mapping[str, object]]) -> None:
        """Likewise."""
        replace(self.folder, f"calls-{self._name}.jsonl", _newest(entries, CALLS))

    def replace_stages(self, entries: Sequence[Mapping[str, object]]) -> None:
        """Likewise; of pools, which later entries speak of, all stay."""
        pools = b"".join(_line(entry) for entry in entries if entry["kind"] == "pool")
        stages = [entry for entry in entries if entry["kind"] != "pool"]
        content = pools + _newest(stages, RING - len(pools))
        replace(self.folder, f"stages-{self._name}.jsonl", content)

    def replace_state(self, state: Mapping[str, object]) -> None:
        replace(self.folder, f"armed-{self._name}.json", _line(state))

    def give_up(self) -> None:
        """What is proven is no longer all there was. A name takes no room on a full disk."""
        name = f"armed-{self._name}"
        with _opened(self.folder) as folder:
            os.replace(f"{name}.json", f"{name}.lost", src_dir_fd=folder, dst_dir_fd=folder)


def replace(folder: Path, name: str, content: bytes) -> None:
    """The file with this content, or what it was before. Raises OSError."""
    # A signal may interrupt one replacement with another: each has a name of its own.
    beside = f".{name}.{next(_REPLACED)}.new"
    with _opened(folder) as opened:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=opened)
        file = os.open(beside, _CREATE, 0o600, dir_fd=opened)
        try:
            _write(file, content)
        except OSError:
            os.unlink(beside, dir_fd=opened)
            raise
        finally:
            os.close(file)
        os.replace(beside, name, src_dir_fd=opened, dst_dir_fd=opened)


def prepare(folder: Path | None, what: str = "evidence") -> None:
    """Makes the folder that is wanted where it is missing, and tries it. Raises EvidenceError."""
    if folder is None:
        return
    probe = f".kvlint-{os.getpid()}.new"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(folder) as opened:
            with suppress(FileNotFoundError):
                os.unlink(probe, dir_fd=opened)
            os.close(os.open(probe, _CREATE, 0o600, dir_fd=opened))
            os.unlink(probe, dir_fd=opened)
    except OSError as error:
        reason = "it is a link" if folder.is_symlink() else error.strerror or type(error).__name__
        raise EvidenceError(f"cannot write {what} to {folder}: {reason}") from None


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


def _appendable(name: str, folder: int) -> int:
    """The file, made now or by this process earlier; a file put there by others is refused."""
    try:
        return os.open(name, _CREATE | os.O_APPEND, 0o600, dir_fd=folder)
    except FileExistsError:
        file = os.open(name, _APPEND, dir_fd=folder)
    found = os.fstat(file)
    ours = found.st_uid == os.geteuid() and found.st_nlink == 1
    if not (ours and stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077):
        os.close(file)
        raise PermissionError(f"{name} is not a file of this process")
    return file


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _newest(entries: Sequence[Mapping[str, object]], room: int) -> bytes:
    lines: list[bytes] = []
    for entry in reversed(entries):
        line = _line(entry)
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    return b"".join(reversed(lines))


def _line(record: Mapping[str, object]) -> bytes:
    return json.dumps(record, default=_plain, separators=(",", ":")).encode() + b"\n"


def _plain(value: object) -> object:
    """Integers of any kind and mappings are told; of anything else only its type, since its text
    could hold what it was made of."""
    if isinstance(value, Mapping):
        return dict(value)
    with suppress(TypeError):
        return operator.index(value)  # type: ignore[arg-type]
    return f"<{type(value).__name__}>"


def _bounded(record: Mapping[str, object]) -> Mapping[str, object]:
    """The record, or what of it is sure to be short."""
    if len(_line(record)) <= RECORD:
        return record
    short = {name: value for name, value in record.items() if name not in ("history", "values")}
    return {**short, "message": str(record.get("message"))[:1000], "left_out": "history, values"}
