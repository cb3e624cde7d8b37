"""Released engines, unpacked once: only the Python files, nothing is imported or run."""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

CACHE = Path(os.environ.get("KVLINT_ENGINES_CACHE") or Path.home() / ".cache/kvlint-engines")
CODES = "KV101,KV102,KV103"

Found = dict[str, Any]


@cache
def unpacked(package: str) -> Path:
    """The folder with the Python files of `package` (`name==version`)."""
    folder = CACHE / package.replace("==", "-")
    if not (folder / ".complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as wheels:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--dest", wheels, package]
            subprocess.run(command, check=True)
            (wheel,) = Path(wheels).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder, [n for n in archive.namelist() if n.endswith(".py")])
        (folder / ".complete").touch()
    return folder


@cache
def findings(package: str, path: str) -> tuple[Found, ...]:
    """All that `kvlint check` has to say of these paths, hidden or not, with the package known."""
    command = [sys.executable, "-m", "kvlint", "check", "--project", ".", "--select", CODES]
    command += ["--show-guarded", "--min-confidence", "low", "--no-cache"]
    command += ["--output-format", "json", path]
    run = subprocess.run(command, cwd=unpacked(package), capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    return tuple(json.loads(run.stdout))
