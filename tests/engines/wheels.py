"""Released engines for tests, and what is found in them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks import downloads

CODES = "KV101,KV102,KV103,KV105"
Found = dict[str, Any]


@contextmanager
def skipping() -> Iterator[None]:
    """A test that finds a wheel missing skips, and says which."""
    try:
        yield
    except downloads.NoWheelError as error:
        pytest.skip(str(error))


@cache
def unpacked(package: str) -> Path:
    """The folder with the wheel of `package` (`name==version`): modules, data and metadata."""
    with skipping():
        return downloads.unpacked(package)


@cache
def findings(package: str, path: str, codes: str = CODES) -> tuple[Found, ...]:
    """All that `kvlint check` has to say of these paths, hidden or not, with the package known."""
    command = [sys.executable, "-m", "kvlint", "check", "--project", ".", "--select", codes]
    command += ["--show-guarded", "--min-confidence", "low", "--no-cache"]
    command += ["--output-format", "json", path]
    run = subprocess.run(command, cwd=unpacked(package), capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    return tuple(json.loads(run.stdout))
