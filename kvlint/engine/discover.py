"""Which files are known and which are reported.

The project is what is known: a call is understood by code in files that nobody asked to see.
The paths only choose what is reported, so `check FILE` and `check .` say the same about FILE.
No symbolic link is followed below a given path: a file has one name, its real one.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvlint.engine.errors import UsageError
from kvlint.tree import Tree

MARKERS = ("pyproject.toml", "kvlint.toml", ".git")

# What a given file may end in, besides nothing at all: a script needs no ending.
PYTHON = (".py", ".pyi", ".pyw")

# Folders that hold what was built or installed, besides everything hidden and every folder
# with a pyvenv.cfg (a virtual environment, whatever its name).
SKIPPED = frozenset(
    {
        "__pycache__",
        "__pypackages__",
        "_build",
        "buck-out",
        "build",
        "dist",
        "node_modules",
        "site-packages",
        "venv",
    }
)


@dataclass(frozen=True, slots=True)
class Files:
    """`known` and `reported` are paths of `tree`, sorted; `reported` is part of `known`.

    `unreadable` names the folders that could not be listed.
    """

    tree: Tree
    known: tuple[str, ...]
    reported: tuple[str, ...]
    unreadable: tuple[str, ...] = ()


def find_project(paths: Sequence[Path], project: Path | None = None) -> Path:
    """The folder that is known: `project`; else the nearest one with a marker at or above what
    all paths share; else the working directory, or, where that does not hold the paths, what
    they share. Raises UsageError when a path or the project does not exist."""
    if project is not None:
        if not project.is_dir():
            raise UsageError(f"the project is no folder: {project}")
        return project.resolve()
    shared = Path(os.path.commonpath([_folder(path) for path in paths]))
    for folder in (shared, *shared.parents):
        if any((folder / marker).exists() for marker in MARKERS):
            return folder
    here = Path.cwd().resolve()
    return here if shared.is_relative_to(here) else shared


def discover(root: Path, paths: Sequence[Path]) -> Files:
    """All Python files of the project, and those of them that lie in `paths`.

    A given file is read wherever it lies, and so is a given folder that the walk over the
    project would skip. Raises UsageError for a path that does not exist, is neither file nor
    folder, lies outside the project, or ends as Python files do not.
    """
    root = root.resolve()
    unreadable: list[str] = []
    reported: set[Path] = set()
    for path in paths:
        real = _existing(path)
        if not real.is_relative_to(root):
            raise UsageError(f"{path} lies outside the project {root}")
        if real.is_dir():
            reported.update(_walk(real, unreadable))
        elif real.is_file():
            if real.suffix not in ("", *PYTHON):
                raise UsageError(f"not a Python file: {path}")
            reported.add(real)
        else:
            raise UsageError(f"neither a file nor a folder: {path}")
    known = reported.union(_walk(root, unreadable))
    return Files(
        tree=Tree(root),
        known=_within(root, known),
        reported=_within(root, reported),
        unreadable=tuple(dict.fromkeys(unreadable)),
    )


def _within(root: Path, files: Iterable[Path]) -> tuple[str, ...]:
    return tuple(sorted(file.relative_to(root).as_posix() for file in files))


def _existing(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except FileNotFoundError:
        raise UsageError(f"no such file or folder: {path}") from None
    except (OSError, RuntimeError) as error:  # a loop of links, a folder that may not be entered
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot open {path}: {reason}") from None


def _folder(path: Path) -> Path:
    real = _existing(path)
    return real if real.is_dir() else real.parent


def _walk(top: Path, unreadable: list[str]) -> Iterator[Path]:
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as error:
            unreadable.append(f"{folder}: {error.strerror}")
            continue
        if folder is not top and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in SKIPPED:
                    folders.append(folder / entry.name)
            elif entry.name.endswith(".py") and entry.is_file(follow_symlinks=False):
                yield folder / entry.name
