"""Released engines, unpacked once. Nothing of them is installed, and nothing run from here."""

import json
import re
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.engines.cache import made, pip, skipping

CODES = "KV101,KV102,KV103"
# Of vllm's wheel nine tenths are libraries that need CUDA to load, and headers to build more.
LEFT_OUT = {"vllm": re.compile(r"\.(so|h|hpp|cuh|inl)$|^vllm/vllm-rs$")}

Found = dict[str, Any]


@cache
def unpacked(package: str) -> Path:
    """The folder with the wheel of `package` (`name==version`): modules, data and metadata."""
    unused = LEFT_OUT.get(package.partition("==")[0])

    def unpack(folder: Path) -> None:
        downloads = folder.with_name("downloads")
        pip("download", "--dest", downloads, package)
        (wheel,) = downloads.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            archive.extractall(folder, [n for n in names if not (unused and unused.search(n))])

    with skipping():
        return made(f"wheels/{package.replace('==', '-')}", unpack)


@cache
def findings(package: str, path: str) -> tuple[Found, ...]:
    """All that `kvlint check` has to say of these paths, hidden or not, with the package known."""
    command = [sys.executable, "-m", "kvlint", "check", "--project", ".", "--select", CODES]
    command += ["--show-guarded", "--min-confidence", "low", "--no-cache"]
    command += ["--output-format", "json", path]
    run = subprocess.run(command, cwd=unpacked(package), capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    return tuple(json.loads(run.stdout))
