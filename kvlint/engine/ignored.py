"""What git ignores, asked of git itself: once for each repository that the walk meets."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from kvlint.engine.git import ask, said

# Tracked files are not listed, whatever matches them.
_LIST = (
    *("--literal-pathspecs", "ls-files", "-z"),
    *("--others", "--ignored", "--exclude-standard", "--directory"),
)


@dataclass
class Ignored:
    """Absolute paths of files and folders; of a folder nothing below it is listed.

    `notices`: one line for each repository that git could not tell about; nothing in it is
    ignored then.
    """

    notices: list[str] = field(default_factory=list)
    _asked: dict[str, frozenset[str]] = field(default_factory=dict)

    def around(self, folder: str, top: str) -> frozenset[str]:
        """What is ignored in `folder`, which lies in `top` or is it, and in what is below.

        The repository that counts is the nearest one at or above the folder; where that begins
        above `top`, git is only asked about what is in `top`.
        """
        at = folder
        while True:
            if os.path.lexists(f"{at.rstrip('/')}/.git"):
                return self.within(at, at if len(at) > len(top) else top)
            above = at.rpartition("/")[0] or "/"
            if above == at:
                return frozenset()
            at = above

    def within(self, repository: str, folder: str) -> frozenset[str]:
        """What is ignored in a folder of a repository, or in the whole of it."""
        if folder not in self._asked:
            self._asked[folder] = frozenset(self._ask(repository, folder))
        return self._asked[folder]

    def _ask(self, repository: str, folder: str) -> list[str]:
        top = repository.rstrip("/")
        # Asked from within a folder that is ignored itself, git 2.39 fails.
        only = [] if folder == repository else ["--", folder[len(top) + 1 :]]
        try:
            ran = ask(Path(repository), *_LIST, *only)
        except OSError as error:
            return self._nothing(folder, f"git does not run: {error.strerror}")
        if ran.returncode:
            return self._nothing(folder, said(ran))
        names = os.fsdecode(ran.stdout).split("\0")
        return [f"{top}/{name.rstrip('/')}" for name in names if name]

    def _nothing(self, folder: str, why: str) -> list[str]:
        self.notices.append(f".gitignore is not respected in {os.path.relpath(folder)}: {why}")
        return []
