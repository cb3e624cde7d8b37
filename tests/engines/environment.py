"""Where released engines run: on the CPU, with real torch and real NIXL, apart from the suite.

Engines ask for torch with CUDA, and for much that serves no test here. What is installed instead
are the distributions that their modules import, named one by one, none with its dependencies.
"""

import hashlib
import json
import os
import subprocess
import tomllib
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.downloads import NoWheelError, here, made, pip
from tests.engines.wheels import unpacked

FOLDER = Path(__file__).parent
SCRIPTS = FOLDER / "scripts"
REQUIREMENTS = FOLDER / "requirements.txt"
# Classes that sglang brings for itself up to 0.5.17 are refused by a transformers that has them.
OLDER_REQUIREMENTS = FOLDER / "requirements-older.txt"
OLDER = ("sglang==0.5.13", "sglang==0.5.15.post1", "sglang==0.5.17")

GROUPS = tomllib.loads((FOLDER.parent.parent / "pyproject.toml").read_text())["dependency-groups"]
TORCH_FOR_CPU = "https://download.pytorch.org/whl/cpu"

QUIET = {
    "UCX_LOG_LEVEL": "fatal",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
}


def environment() -> Path:
    """The interpreter of the environment. Raises `NoWheelError`."""

    def make(folder: Path) -> None:
        venv.create(folder, symlinks=True, with_pip=False)
        install = ("--python", interpreter(folder), "install", "--no-compile")
        install_torch(install)
        pip(*install, *GROUPS["nixl"], "--requirement", REQUIREMENTS)

    return interpreter(made(f"environments/{key(REQUIREMENTS)}", make))


def older() -> Path:
    """A folder that goes before the environment's own packages. Raises `NoWheelError`."""

    def make(folder: Path) -> None:
        pip("install", "--no-compile", "--target", folder, "--requirement", OLDER_REQUIREMENTS)

    return made(f"environments/{key(OLDER_REQUIREMENTS)}-older", make)


def install_torch(install: Sequence[str | Path]) -> None:
    """From a wheel at hand (pip's find-links) or the index of wheels for the CPU."""
    try:
        pip(*install, "--no-index", *GROUPS["torch"])
    except NoWheelError:
        once = ("--retries", "1", "--timeout", "15")
        try:
            pip(*install, "--index-url", TORCH_FOR_CPU, *once, *GROUPS["torch"])
        except (NoWheelError, RuntimeError) as error:
            raise NoWheelError(
                f"no wheel of torch for the CPU at hand or at {TORCH_FOR_CPU} ({here()})"
            ) from error


def interpreter(folder: Path) -> Path:
    return folder / "bin/python"


def key(requirements: Path) -> str:
    """What makes one environment another."""
    parts = [requirements.read_text(), *GROUPS["torch"], *GROUPS["nixl"], here()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Engine:
    """A released engine, which can be run: one process a call, nothing armed unless asked for."""

    python: Path
    path: tuple[Path, ...]

    @classmethod
    def of(cls, package: str, python: Path, kvlint: Path) -> "Engine":
        """The engine of the wheel `package` (`name==version`), with kvlint as installed in the
        folder `kvlint`."""
        overlay = (older(),) if package in OLDER else ()
        return cls(python, (unpacked(package), *overlay, kvlint))

    def environment(self, **variables: str) -> dict[str, str]:
        """The environment of such a process: this one's without what Python and kvlint read."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KVLINT_", "PYTHON"))
        }
        path = os.pathsep.join(map(str, self.path))
        return {**kept, **QUIET, "PYTHONPATH": path, **variables}

    def run(
        self, script: str, *arguments: str, timeout: float = 240, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script of the folder scripts/ to its end, which may be any."""
        return subprocess.run(
            [self.python, SCRIPTS / script, *arguments],
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def result(self, script: str, *arguments: str, **variables: str) -> Any:
        """What the script printed as JSON on its last line; it must have ended well."""
        ran = self.run(script, *arguments, **variables)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])
