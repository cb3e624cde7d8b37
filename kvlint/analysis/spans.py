"""Where the nodes of one definition were written, without libcst's metadata.

libcst's position provider costs twice the parse; writing the tree out once, with the
cursor kept, and remembering only expressions costs a third of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

Place = tuple[int, int, int, int]  # line, column, end line, end column; lines and columns from 1


class _Cursor(CodegenState):
    def __init__(self, default_indent: str, default_newline: str) -> None:
        super().__init__(default_indent, default_newline)
        self.line = 1
        self.column = 1
        self.places: dict[int, Place] = {}
        self._open: list[tuple[int, int]] = []

    def add_indent_tokens(self) -> None:
        super().add_indent_tokens()
        self.column += sum(map(len, self.indent_tokens))

    def add_token(self, value: str) -> None:
        super().add_token(value)
        newlines = value.count("\n")
        if newlines:
            self.line += newlines
            self.column = len(value) - value.rfind("\n")
        else:
            self.column += len(value)

    @contextmanager
    def record_syntactic_position(
        self, node: Any, *, start_node: Any = None, end_node: Any = None
    ) -> Iterator[None]:
        start = (self.line, self.column)
        yield
        self.places[id(node)] = (*start, self.line, self.column)


def places(module: cst.Module) -> dict[int, Place]:
    """Place of each node, by `id(node)`; `module` must stay alive while it is used."""
    cursor = _Cursor(module.default_indent, module.default_newline)
    module._codegen(cursor)
    return cursor.places
