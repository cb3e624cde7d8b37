"""A bar on long runs that somebody watches."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from kvlint.engine.check import OnProgress

if TYPE_CHECKING:
    from rich.progress import Progress

# Seconds: what is over by then needs no bar, and no terminal shows more than ten a second.
PATIENCE = 1.0
PAUSE = 0.1


@contextmanager
def progress(patience: float = PATIENCE) -> Iterator[OnProgress | None]:
    """What to call as the work goes on, or None where nobody watches standard error.

    The bar appears at the first call after `patience` seconds and is gone at the end, whatever
    the end is. No thread draws it: the engine forks.
    """
    if not _watched(sys.stderr):
        yield None
        return
    bar = _Bar(time.monotonic() + patience)
    try:
        yield bar.show
    finally:
        bar.remove()


def _watched(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


class _Bar:
    def __init__(self, due: float) -> None:
        self._due = due
        self._drawn: Progress | None = None

    def show(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + PAUSE
        if self._drawn is None:
            self._drawn = _new()
            self._drawn.add_task("Checking")
            self._drawn.start()
        self._drawn.update(self._drawn.task_ids[0], completed=done, total=total, refresh=True)

    def remove(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()


def _new() -> "Progress":
    from rich.console import Console  # slow to import, and of use on terminals only
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # Standard output is not redirected: it may be a pipe, and gets no byte of this.
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
