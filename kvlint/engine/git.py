"""How git is asked: so that no configuration runs a program of its own or changes what is
printed, and so that it works inside a hook, where git's variables speak of another folder or of
another index than the caller's.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import CompletedProcess

# What ties git to one repository, `git rev-parse --local-env-vars`, and what shapes its output.
# A hook gets these from the git that calls it, some relative to another folder than the project.
_TIES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)


def ask(folder: Path, *arguments: str) -> "CompletedProcess[bytes]":
    """Run git in a folder. Raises OSError where there is no git, or no such folder."""
    import subprocess  # slow to import, and needed in repositories only

    environment = {name: value for name, value in os.environ.items() if name not in _TIES}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    # The first two would run programs or print what is not asked for.
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def said(ran: "CompletedProcess[bytes]") -> str:
    """What git complains of, in one line."""
    lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    fatal = [line for line in lines if line.startswith("fatal: ")]
    return (fatal or lines or [f"exit {ran.returncode}"])[0].removeprefix("fatal: ")
