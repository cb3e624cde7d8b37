"""Colour, kept out of the reporters: they paint words, and off a terminal paint is nothing."""

import os
from collections.abc import Callable
from typing import TextIO

# (text, a style in rich's words such as "bold red") -> text
Paint = Callable[[str, str], str]


def plain(text: str, style: str) -> str:
    """Paint for pipes, files and tests."""
    return text


def paint_for(stream: TextIO) -> Paint:
    """Colours on a terminal, nothing elsewhere; NO_COLOR and FORCE_COLOR are respected.

    Lines are never wrapped, only coloured: what a terminal shows can be piped unchanged.
    """
    if os.environ.get("NO_COLOR"):
        return plain
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    if not terminal and not os.environ.get("FORCE_COLOR"):
        return plain

    try:
        from rich.color import ColorSystem  # slow to import, and of use on terminals only
        from rich.style import Style
    except ModuleNotFoundError:
        return plain  # beside a server, the companion is installed without it

    def coloured(text: str, style: str) -> str:
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)

    return coloured


def printable(text: str) -> str:
    """Source text made safe for a terminal: no control character of the checked code gets out."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
