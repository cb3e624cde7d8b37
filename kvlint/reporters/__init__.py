"""One module an output format. Each has `render(view, paint)`, which yields lines of text."""

import importlib
from collections.abc import Iterator
from typing import Protocol, cast

from kvlint.reporters.paint import Paint
from kvlint.reporters.view import View

FORMATS = ("full", "concise", "json")


class Reporter(Protocol):
    def render(self, view: View, paint: Paint) -> Iterator[str]: ...


def reporter(name: str) -> Reporter:
    """The module for one of `FORMATS`, imported when asked for."""
    return cast("Reporter", importlib.import_module(f"kvlint.reporters.{name}"))
