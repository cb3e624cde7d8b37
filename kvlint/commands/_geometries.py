"""Captured geometry from files."""

from pathlib import Path

from kvlint.commands._contents import contents
from kvlint.engine.errors import UsageError
from kvlint.geometry import Geometry, GeometryError
from kvlint.hypotheses import Assumptions, HypothesisError


def read_geometry(path: Path) -> Geometry:
    """Raises UsageError, one line, for what is no readable geometry of schema 1."""
    content = contents(path, "a geometry")
    if not content.strip():
        raise UsageError(f"{path}: the file is empty, not a kvlint geometry")
    try:
        return Geometry.from_json(content)
    except GeometryError as error:
        if _is_of_assumptions(content):
            raise UsageError(f"{path}: a file of assumptions, not a geometry") from None
        raise UsageError(f"{path}: {str(error).removeprefix('geometry: ')}") from None


def _is_of_assumptions(content: bytes) -> bool:
    """The other file that kvlint writes and takes: the two are easily exchanged."""
    try:
        Assumptions.from_json(content)
    except HypothesisError:
        return False
    return True
