"""The one place where the text of checked code comes from."""

import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


def decode(data: bytes, errors: str = "strict") -> str:
    """The text of a source, line ends as line feeds. Raises SyntaxError, LookupError or, with
    `errors` as they are, UnicodeError where its encoding does not fit."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding, errors, newline=None).read()


@dataclass(frozen=True, slots=True)
class Tree:
    """What the files of a project hold: what is on disk, save where an editor holds newer text.

    Paths are relative to `root`, with forward slashes; those of `overlay` need not be on disk.
    """

    root: Path
    overlay: Mapping[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """Raises OSError where the file cannot be read."""
        held = self.overlay.get(path)
        if held is not None:
            return held
        with open(f"{self.root}/{path}", "rb") as file:  # noqa: PTH123 (half of pathlib's time)
            return file.read()
