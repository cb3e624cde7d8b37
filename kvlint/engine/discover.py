"""Which files are known and which are reported.

The project is what is known: a call is understood by code in files that nobody asked to see.
The paths only choose what is reported, so `check FILE` and `check .` say the same about FILE.
What is excluded, ignored by git or too large is neither known nor reported, but a given file is
read wherever it lies, unless it is too large. No symbolic link is followed below a given path: a
file has one name, its real one.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kvlint.engine.errors import UsageError
from kvlint.engine.ignored import Ignored
from kvlint.engine.settings import Configured, Settings, joined
from kvlint.engine.sizes import show_size
from kvlint.tree import Tree

MARKERS = ("pyproject.toml", "kvlint.toml", ".git")

# What a given file may end in, besides nothing at all: a script needs no ending.
PYTHON = (".py", ".pyi", ".pyw", ".wsgi")
NOTEBOOK = ".ipynb"

# Size in bytes, times of the last change to content and to anything in ns, number on its disk:
# while these stay the same, so does what a file holds.
Stamp = tuple[int, int, int, int]

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


class Files:
    """`known` and `reported` are paths of `tree`, sorted; `reported` is part of `known`."""

    def __init__(self, walk: "_Walk", asked: Callable[[str], bool], tree: Tree) -> None:
        self.tree = tree
        self._walk = walk
        self._asked = asked
        self.reported = walk.paths(asked)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """All of the project; looked for when it is first asked for, which it may never be."""
        self._walk.over(self._walk.root)
        return self._walk.paths(lambda path: True)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Names, with the reason, of the folders met so far that could not be listed and of the
        files that were asked for and left out."""
        return tuple(dict.fromkeys([*self._walk.unreadable, *self._walk.large(self._asked)]))

    @property
    def notices(self) -> tuple[str, ...]:
        """Lines about what git could not tell."""
        return tuple(self._walk.ignored.notices)

    def stamp(self, path: str) -> Stamp | None:
        """What a found file looked like from outside; None where only its content counts."""
        held = path in self.tree.overlay
        return None if held else self._walk.stamp(path)

    def size(self, path: str) -> int:
        """Bytes of a found file."""
        stamp = self._walk.stamp(path)
        return stamp[0] if stamp else 0

    def tells_of(self, path: str) -> bool:
        """Whether the reported files say all about a path: it is one of them, or it is gone."""
        at = bisect_left(self.reported, path)
        return self.reported[at : at + 1] == (path,) or not os.path.lexists(self.tree.root / path)


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


def discover(root: Path, paths: Sequence[Path], configured: Configured | None = None) -> Files:
    """All Python files of the project, and those of them that lie in `paths`.

    Raises UsageError for a path that does not exist, is neither file nor folder, lies outside the
    project, or ends as Python files do not, and for a configuration that is broken and needed.
    """
    walk = _Walk(root.resolve().as_posix(), configured or Configured())
    tops: list[str] = []
    files: set[str] = set()
    left_out: list[Path] = []
    for path in paths:
        real = _within(walk.root, path)
        if walk.configured.overrides.force_exclude and walk.configured.excluded(real.as_posix()):
            left_out.append(path)
            continue
        if real.is_dir():
            tops.append(joined(real.as_posix(), ""))
            walk.over(real.as_posix())
        elif real.is_file():
            if _is_python(real, path, walk):
                files.add(real.as_posix())
                walk.add(real.as_posix(), real.stat())
        else:
            raise UsageError(f"neither a file nor a folder: {path}")
    if len(left_out) == len(paths):  # a hook gives many: beside others they are no news
        walk.unreadable += [f"{path}: it is excluded" for path in left_out]
    asked = tuple(tops)
    return Files(walk, lambda file: file in files or file.startswith(asked), Tree(Path(walk.root)))


def discover_held(root: Path, path: Path, data: bytes, configured: Configured) -> Files:
    """As `discover`, with `path`, which need not exist, the one reported file, and `data` what it
    holds. An editor opens files that nobody would have asked for: one that is excluded is left
    out."""
    walk = _Walk(root.resolve().as_posix(), configured)
    real = _within(walk.root, path, must_exist=False)
    held = real.as_posix()
    if _is_python(real, path, walk):
        if configured.excluded(held):
            walk.unreadable.append(f"{path}: it is excluded")
        else:
            walk.hold(held, len(data))
    tree = Tree(Path(walk.root), dict.fromkeys(walk.paths(lambda file: file == held), data))
    return Files(walk, lambda file: file == held, tree)


def _is_python(real: Path, path: Path, walk: "_Walk") -> bool:
    """Whether a given file is to be read; a notebook is named. Raises UsageError for others."""
    if real.suffix == NOTEBOOK:
        walk.unreadable.append(f"{path}: notebooks are not read")
    elif real.suffix not in ("", *PYTHON) and not _is_script(real):
        raise UsageError(f"not a Python file: {path}")
    return real.suffix != NOTEBOOK


def _is_script(real: Path) -> bool:
    try:
        with real.open("rb") as file:
            first = file.readline(100)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def _within(root: str, path: Path, must_exist: bool = True) -> Path:
    real = _existing(path, must_exist)
    if not real.is_relative_to(root):
        raise UsageError(f"{path} lies outside the project {root}")
    return real


def _existing(path: Path, must_exist: bool = True) -> Path:
    try:
        return path.resolve(strict=must_exist)
    except FileNotFoundError:
        raise UsageError(f"no such file or folder: {path}") from None
    except (OSError, RuntimeError) as error:  # a loop of links, a folder that may not be entered
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot open {path}: {reason}") from None


def _folder(path: Path) -> Path:
    real = _existing(path)
    return real if real.is_dir() else real.parent


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def stamp_on_disk(tree: Tree, path: str) -> Stamp | None:
    """How a file looks now; None when it is gone."""
    try:
        return _stamp(os.stat(f"{tree.root}/{path}"))  # noqa: PTH116 (as in Tree.read)
    except OSError:
        return None


@dataclass
class _Walk:
    """What lies in a project, as strings: a path object a file would take half of the time."""

    root: str
    configured: Configured
    ignored: Ignored = field(default_factory=Ignored)
    unreadable: list[str] = field(default_factory=list)
    _found: dict[str, Stamp] = field(default_factory=dict)
    _large: dict[str, str] = field(default_factory=dict)
    _visited: set[str] = field(default_factory=set)

    def over(self, top: str) -> None:
        """Find what lies in `top`, unless a walk has been there."""
        if top in self._visited:
            return
        ignored = self.ignored.around(top, self.root)
        folders = [(top, self.configured.at(top), ignored)]
        while folders:
            folder, settings, ignored = folders.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = list(listing)
            except OSError as error:
                self.unreadable.append(f"{os.path.relpath(folder)}: {error.strerror}")
                continue
            if folder != top:
                names = {entry.name for entry in entries}
                if "pyvenv.cfg" in names:
                    continue
                if ".git" in names:
                    ignored = self.ignored.within(folder, folder)
                settings = self.configured.entered(folder, names, settings)
            self._visited.add(folder)
            start = joined(folder, "")
            picky = bool(settings.excludes)
            for entry in entries:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    path = start + name
                    if (
                        not name.startswith(".")
                        and name not in SKIPPED
                        and path not in ignored
                        and not (picky and settings.exclude(path, name, "/"))
                    ):
                        folders.append((path, settings, ignored))
                elif name.endswith(".py") and entry.is_file(follow_symlinks=False):
                    path = start + name
                    if path not in ignored and not (picky and settings.exclude(path, name)):
                        self._met(entry, path, settings)

    def _met(self, entry: os.DirEntry[str], file: str, settings: Settings) -> None:
        try:
            self._add(file, _stamp(entry.stat(follow_symlinks=False)), settings)
        except FileNotFoundError:
            pass  # it has gone since its folder was listed
        except OSError as error:  # a folder that may be listed and not entered
            self.unreadable.append(f"{os.path.relpath(file)}: {error.strerror}")

    def add(self, file: str, status: os.stat_result) -> None:
        """A file that somebody asked for."""
        self._add(file, _stamp(status), self._settings_of(file))

    def hold(self, file: str, size: int) -> None:
        """A file whose content, of `size` bytes, is not that on disk."""
        self._add(file, (size, 0, 0, 0), self._settings_of(file))

    def _settings_of(self, file: str) -> Settings:
        return self.configured.at(file.rpartition("/")[0] or "/")

    def paths(self, asked: Callable[[str], bool]) -> tuple[str, ...]:
        """What was found so far and is asked for, from the root on."""
        start = len(joined(self.root, ""))
        return tuple(sorted(file[start:] for file in self._found if asked(file)))

    def large(self, asked: Callable[[str], bool]) -> list[str]:
        return [
            self._large[file]
            for file in sorted(self._large)
            if asked(file) and file not in self._found
        ]

    def stamp(self, path: str) -> Stamp | None:
        return self._found.get(joined(self.root, path))

    def _add(self, file: str, stamp: Stamp, settings: Settings) -> None:
        size = stamp[0]
        if size > settings.max_file_size:
            name, limit = os.path.relpath(file), settings.max_file_size
            sizes = show_size(size), show_size(limit)
            if sizes[0] == sizes[1]:
                sizes = f"{size} bytes", f"{limit} bytes"
            self._large[file] = f"{name}: {sizes[0]} is over max-file-size ({sizes[1]})"
        else:
            self._found.setdefault(file, stamp)
