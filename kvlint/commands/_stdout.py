"""What goes to standard output: lines, with colours where a terminal shows them."""

import sys
from collections.abc import Iterable


def write(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
