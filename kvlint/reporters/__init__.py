"""One module an output format. Each has `render(view, paint)`, which yields lines of text."""

import importlib
from collections.abc import Iterator
from typing import Protocol, cast

from kvlint.reporters.paint import Paint
from kvlint.reporters.view import View

# For people: the last line says what is hidden.
TEXT = ("full", "concise")
# For programs: nothing but the format, in UTF-8.
DATA = ("json", "json-lines", "sarif", "github", "gitlab", "junit")
FORMATS = (*TEXT, *DATA)


class Reporter(Protocol):
    def render(self, view: View, paint: Paint) -> Iterator[str]: ...


def reporter(name: str) -> Reporter:
    """The module for one of `FORMATS`, imported when asked for."""
    module = f"kvlint.reporters.{name.replace('-', '_')}"
    return cast("Reporter", importlib.import_module(module))
