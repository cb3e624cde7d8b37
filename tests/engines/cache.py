"""What tests on released engines download and build, kept from one run to the next."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("KVLINT_ENGINES_CACHE") or Path.home() / ".cache/kvlint-engines")


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


@contextmanager
def skipping() -> Iterator[None]:
    """A test that finds a wheel missing skips, and says which."""
    try:
        yield
    except NoWheelError as error:
        pytest.skip(str(error))


def here() -> str:
    return f"{sysconfig.get_platform()}, Python {sys.version_info.major}.{sys.version_info.minor}"
