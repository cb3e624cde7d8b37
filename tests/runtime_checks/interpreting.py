"""What begins a process in which Triton interprets."""

import os


def interpret() -> None:
    """Before anything imports Triton."""
    os.environ["TRITON_INTERPRET"] = "1"
