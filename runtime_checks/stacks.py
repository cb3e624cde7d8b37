"""Where a call came from: cheap to take at every call, told as text only when it matters."""

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from types import CodeType
from typing import Final

DEPTH: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Code and position in it of each frame, innermost first. No frame, no local is kept."""

    frames: tuple[tuple[CodeType, int], ...]

    @property
    def key(self) -> tuple[tuple[int, int], ...]:
        """Equal for the same calls; unique for as long as the stack is kept."""
        return tuple([(id(code), position) for code, position in self.frames])

    def after(self, function: object) -> "Stack":
        """The stack as it was in the function, which was called from here and has returned since,
        or is called next; at its first line. One without code of its own leaves nothing."""
        code = code_of(function)
        return self if code is None else Stack(((code, 0), *self.frames))

    def lines(self) -> list[str]:
        """`file:line in function` for each frame but kvlint's own, innermost last."""
        return [f"{file}:{line} in {name}" for file, line, name in self._told()][::-1]

    def place(self) -> str | None:
        """`file:line` of the innermost frame that is neither kvlint's nor NIXL's, and still goes
        on."""
        for file, line, _ in Stack(tuple(one for one in self.frames if one[1]))._told():
            if not PurePath(file).parent.name.startswith("nixl_"):
                return f"{file}:{line}"
        return None

    def _told(self) -> Iterator[tuple[str, int, str]]:
        for code, position in self.frames:
            if not code.co_filename.startswith(FOLDER):
                yield code.co_filename, _line(code, position), code.co_qualname


def code_of(function: object) -> CodeType | None:
    """None of what is not written in Python, or is none at all."""
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    return code if isinstance(code, CodeType) else None


def here(skip: int = 0, depth: int = DEPTH) -> Stack:
    """The stack of the caller, without the innermost `skip` frames; at most `depth` of them."""
    frames = []
    frame = sys._getframe(1)
    while frame is not None and depth > 0:
        if skip > 0:
            skip -= 1
        else:
            frames.append((frame.f_code, frame.f_lasti))
            depth -= 1
        frame = frame.f_back  # type: ignore[assignment]
    return Stack(tuple(frames))


# kvlint's own frames, under the name that this process knows them by.
FOLDER: Final = here.__code__.co_filename.removesuffix("stacks.py")


def _line(code: CodeType, position: int) -> int:
    for start, end, line in code.co_lines():
        if line is not None and start <= position < end:
            return line
    return code.co_firstlineno
