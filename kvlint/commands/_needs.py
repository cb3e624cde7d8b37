"""What the analysis needs: the companion does without it, and may be installed so."""

import sys
from importlib.util import find_spec

from kvlint.engine.errors import UsageError


def demand(command: str) -> None:
    """Raises UsageError where the parser, or what shows progress, is not installed."""
    missing = " and ".join(name for name in ("libcst", "rich") if find_spec(name) is None)
    if missing:
        raise UsageError(f"{command} needs {missing}, not installed beside {sys.executable}")
