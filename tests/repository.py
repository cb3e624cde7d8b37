"""A real git repository in a folder, independent of the configuration of who runs the tests."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

OWN = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def environment() -> dict[str, str]:
    """What tests run git with: a hook that runs the suite must not lend them its repository."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return inherited | OWN


@dataclass(frozen=True)
class Repository:
    root: Path

    @classmethod
    def new(cls, root: Path) -> "Repository":
        root.mkdir(parents=True, exist_ok=True)
        made = cls(root)
        made.git("init", "--quiet", "--initial-branch=main")
        return made

    def git(self, *arguments: object, **variables: str) -> str:
        ran = subprocess.run(
            ["git", *map(str, arguments)],
            cwd=self.root,
            env=environment() | variables,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def commit(self, message: str = "a commit") -> str:
        """Everything in the folder. Gives the commit's name."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
