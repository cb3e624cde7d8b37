"""Files of assumptions, as `kvlint check --emit-assumptions` writes them."""

from pathlib import Path

from kvlint.commands._contents import contents
from kvlint.engine.errors import UsageError
from kvlint.hypotheses import Assumptions, HypothesisError


def read_assumptions(path: Path) -> Assumptions:
    """Raises UsageError, one line, for what is no such file."""
    content = contents(path, "a file of assumptions")
    if not content.strip():
        raise UsageError(f"{path}: the file is empty, no file of assumptions")
    try:
        return Assumptions.from_json(content)
    except HypothesisError as error:
        raise UsageError(f"{path}: {error}") from None
