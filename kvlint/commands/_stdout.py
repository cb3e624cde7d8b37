"""What goes to standard output: lines, with colours where a terminal shows them."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kvlint.engine.errors import UsageError


def write(lines: Iterable[str]) -> None:
    """Raises UsageError where nothing can be written, BrokenPipeError where nobody reads on."""
    for line in lines:
        with _spoken():
            sys.stdout.write(f"{line}\n")
    with _spoken():
        sys.stdout.flush()


@contextmanager
def _spoken() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or "it is closed"
        raise UsageError(f"cannot write to standard output: {reason}") from None
