"""What changed since a git revision: lines of the working tree, and places where lines went.

Git is asked in a way that no configuration of the user's or the repository's changes the answer.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvlint.engine.errors import UsageError
from kvlint.engine.git import ask, said

if TYPE_CHECKING:
    from subprocess import CompletedProcess

# Options of `git diff` that settle what configuration could change, or would run a program for.
_PLAIN = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--text",  # an attribute can call any file binary
    "--unified=0",
    "--inter-hunk-context=0",
    "--find-renames",
    "--relative",  # to the project, which may be a folder of the repository
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--submodule=short",
    "--ignore-submodules=none",
    "--no-indent-heuristic",
    "--diff-algorithm=histogram",
)

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `first` to `last` are new (none where `last` is less); they stand for `removed`,
    which stood between lines `first - 1` and `last + 1`."""

    first: int
    last: int
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """By path, relative to the project: what changed in it. A path that is neither in `hunks`
    nor in `whole` nor in `tracked` is not known to git, so all of it is new; `whole` holds
    submodules, of which all counts as changed."""

    revision: str
    hunks: Mapping[str, Sequence[Hunk]]
    tracked: frozenset[str] = frozenset()
    whole: tuple[str, ...] = ()

    def all_of(self, path: str) -> bool:
        """Whether every line of a file counts as changed."""
        if any(path.startswith(f"{folder}/") for folder in self.whole):
            return True
        return path not in self.tracked

    def any_of(self, path: str) -> bool:
        return bool(self.hunks.get(path)) or self.all_of(path)


def changes_since(root: Path, revision: str) -> Changes:
    """What differs between `revision` and the working tree, below `root`.

    Raises UsageError where there is no git, no repository around `root`, or no such commit.
    """
    if not revision or revision.startswith("-"):
        raise UsageError(f"--since takes a git revision, not {revision!r}")
    commit = _commit(root, revision)
    diff = _git(root, "diff", *_PLAIN, commit, "--")
    hunks = parse(diff)
    whole = tuple(path for path in hunks if (root / path).is_dir())  # as only submodules are
    listed = _git(root, "ls-files", "-z", "--recurse-submodules")
    tracked = frozenset(os.fsdecode(name) for name in listed.split(b"\0") if name)
    return Changes(revision, hunks, tracked, whole)


def _commit(root: Path, revision: str) -> str:
    """The full name of the commit that `revision` means."""
    inside = _ran(root, "rev-parse", "--is-inside-work-tree")
    if inside.returncode != 0 or inside.stdout.strip() != b"true":
        why = said(inside)
        why = "no git repository" if not why or why.startswith("not a git repo") else why
        raise UsageError(f"--since {revision}: {root}: {why}")
    found = _ran(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if b"ambiguous" in found.stderr:
        raise UsageError(f"--since {revision}: the revision is ambiguous; write it in full")
    if found.returncode == 0:
        return found.stdout.decode().strip()
    if ".." in revision:
        raise UsageError(f"--since {revision}: one revision is needed, not a range")
    shallow = _ran(root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
    hint = (
        "; this clone is shallow: fetch it with its history (`fetch-depth: 0` in "
        "actions/checkout, `git fetch --unshallow`)"
        if shallow
        else ""
    )
    raise UsageError(f"--since {revision}: no such commit here{hint}")


def _git(root: Path, *arguments: str) -> bytes:
    ran = _ran(root, *arguments)
    if ran.returncode != 0:
        raise UsageError(f"--since: git {arguments[0]} failed: {said(ran)}")
    return ran.stdout


def _ran(root: Path, *arguments: str) -> "CompletedProcess[bytes]":
    try:
        return ask(root, *arguments)
    except OSError as error:
        raise UsageError(f"--since needs git: {error.strerror}") from None


def parse(diff: bytes) -> dict[str, list[Hunk]]:
    """Hunks by path, from the output of `git diff` as it is asked for here.

    A line of content is never taken for a header: hunks say how many lines they have.
    """
    hunks: dict[str, list[Hunk]] = {}
    lines = iter(diff.split(b"\n"))
    path: str | None = None
    for line in lines:
        if line.startswith(b"+++ "):
            path = _new_path(line[4:])
        elif found := _HUNK.match(line):
            old, first, new = found.groups()
            removed = _content(lines, b"-", _count(old))
            _content(lines, b"+", _count(new))
            if path is not None:
                # Git names the line before where nothing is new.
                begin = int(first) + (_count(new) == 0)
                hunk = Hunk(begin, begin + _count(new) - 1, tuple(removed))
                hunks.setdefault(path, []).append(hunk)
    return hunks


def _count(number: bytes | None) -> int:
    return 1 if number is None else int(number)


def _content(lines: Iterator[bytes], sign: bytes, count: int) -> list[str]:
    """The next `count` lines that begin with `sign`, without it."""
    content: list[str] = []
    while len(content) < count:
        line = next(lines)
        if line.startswith(sign):  # what else stands there says "No newline at end of file"
            content.append(line[1:].decode("utf-8", "replace"))
    return content


def _new_path(written: bytes) -> str | None:
    """The path behind `+++ `, None for a file that is gone."""
    name = written.removesuffix(b"\t")  # a tab ends a name with blanks
    if name.startswith(b'"'):
        name = _unquoted(name[1:-1])
    return None if name == b"/dev/null" else os.fsdecode(name.removeprefix(b"b/"))


_ESCAPE = re.compile(rb'\\([abfnrtv"\\]|[0-7]{3})')
_ESCAPED = dict(zip(b'abfnrtv"\\', b'\a\b\f\n\r\t\v"\\', strict=True))


def _unquoted(name: bytes) -> bytes:
    """As git quotes: C's escapes, other bytes as three octal digits."""

    def plain(hit: re.Match[bytes]) -> bytes:
        code = hit.group(1)
        return bytes([int(code, 8) if len(code) == 3 else _ESCAPED[code[0]]])

    return _ESCAPE.sub(plain, name)
