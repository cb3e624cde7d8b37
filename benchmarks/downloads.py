"""Released engines as the index has them, and what is built for them: kept from run to run."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

CACHE = Path(os.environ.get("KVLINT_ENGINES_CACHE") or Path.home() / ".cache/kvlint-engines")
# Of vllm's wheel nine tenths are libraries that need CUDA to load, and headers to build more.
LEFT_OUT = {"vllm": re.compile(r"\.(so|h|hpp|cuh|inl)$|^vllm/vllm-rs$")}


def unpacked(package: str) -> Path:
    """The folder with the wheel of `package` (`name==version`): modules, data and metadata.

    Nothing of it is installed, and nothing run. Raises as `pip` does.
    """
    unused = LEFT_OUT.get(package.partition("==")[0])

    def unpack(folder: Path) -> None:
        downloads = folder.with_name("downloads")
        pip("download", "--dest", downloads, package)
        (wheel,) = downloads.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            archive.extractall(folder, [n for n in names if not (unused and unused.search(n))])

    return made(f"wheels/{package.replace('==', '-')}", unpack)


def made(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache; where it is not there yet, `make` fills it.

    One process makes it and others wait: the lock ends with the process that holds it. It is made
    aside, since what an interrupted process started may go on for a while without it.
    """
    folder = CACHE / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            aside = f".{folder.name}-"
            for left in folder.parent.glob(f"{aside}*"):
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=aside) as temporary:
                making = Path(temporary) / folder.name
                making.mkdir()
                make(making)
                making.rename(folder)
    return folder


class NoWheelError(Exception):
    """A distribution that the index has no wheel of for this platform."""


def pip(*arguments: str | Path) -> None:
    """Raises `NoWheelError`, or `RuntimeError` with pip's words where the index was not reached."""
    command = [sys.executable, "-m", "pip", *map(str, arguments), "--quiet", "--no-deps"]
    ran = subprocess.run([*command, "--only-binary=:all:"], capture_output=True, text=True)
    if ran.returncode == 0:
        return
    missing = re.search(r"No matching distribution found for (\S+)", ran.stderr)
    if missing is None or "Retrying" in ran.stderr:
        raise RuntimeError(f"pip {' '.join(map(str, arguments))}\n{ran.stderr}")
    raise NoWheelError(f"no wheel of {missing[1]} for {here()}")


def here() -> str:
    return f"{sysconfig.get_platform()}, Python {sys.version_info.major}.{sys.version_info.minor}"
