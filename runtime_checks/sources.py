"""Whether a frame of a running process is in a definition that was checked.

The checker has a path relative to a project, a process an absolute one: of another checkout, say,
or of what was installed from it. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Folders that hold packages, and are no part of what those are imported by.
_INSTALLED: Final = ("site-packages", "dist-packages")
_BEFORE_PACKAGES: Final = ("src", "python", "lib")


@dataclass(frozen=True, slots=True)
class Frame:
    """`file:line in name`; the name is that of the innermost function or class that has one, ""
    at the top of a module."""

    file: str
    line: int
    name: str


def frames(stack: Iterable[object]) -> list[Frame]:
    """What is no frame is passed over."""
    return [found for text in stack if isinstance(text, str) and (found := frame(text))]


@lru_cache(maxsize=8192)
def frame(text: str) -> Frame | None:
    where, said, name = text.rpartition(" in ")
    file, _, line = where.rpartition(":")
    if not (said and file and line.isascii() and line.isdecimal() and len(line) < 10):
        return None
    return Frame(file, int(line), plain(name))


@lru_cache(maxsize=8192)
def plain(name: str) -> str:
    """A qualified name without what has no name of its own: a comprehension or a lambda is of the
    function that it stands in."""
    return ".".join(part for part in name.split(".") if not part.startswith("<"))


@lru_cache(maxsize=65536)
def is_file(checked: str, running: str) -> bool:
    """Whether the path that was checked is that file's: in whole components, from the end.

    Of an installed file the whole path by which it is imported counts, so that a file of one name
    in another package is another one; of a checked one nothing before its package does.
    """
    path, file = _parts(checked), _parts(running)
    if not path or not file or path[-1] != file[-1]:
        return False
    installed = max((n for n, part in enumerate(file) if part in _INSTALLED), default=None)
    if installed is not None:
        imported = file[installed + 1 :]
        if len(imported) == 1 or len(path) == 1:
            return imported == _imported(path)
        return _ends(path, imported) or _ends(imported, path)
    return _ends(file, path) or _ends(file, _imported(path))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in ("", "."))


def _imported(path: tuple[str, ...]) -> tuple[str, ...]:
    while len(path) > 1 and path[0] in _BEFORE_PACKAGES:
        path = path[1:]
    return path


def _ends(path: tuple[str, ...], end: tuple[str, ...]) -> bool:
    return path[-len(end) :] == end
