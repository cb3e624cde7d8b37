"""Files of assumptions, as `kvlint check --emit-assumptions` writes them."""

from pathlib import Path

from kvlint.engine.errors import UsageError
from kvlint.hypotheses import Assumptions, HypothesisError


def read_assumptions(path: Path) -> Assumptions:
    """Raises UsageError, one line, for what is no such file."""
    try:
        if not path.is_file():
            raise UsageError(f"{path} is no file" if path.exists() else f"no such file: {path}")
        return Assumptions.from_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except HypothesisError as error:
        raise UsageError(f"{path}: {error}") from None
