"""The source of a function as it is known to the interpreter, and what its names stand for."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from kvlint.runtime_checks.launches.terms import UnreadableError
from kvlint.runtime_checks.launches.values import NOTHING, Element, Function


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """The globals of a function, and the variables that it closes over."""

    names: Mapping[str, Any]

    def look(self, name: str) -> object:
        first, *more = name.split(".")
        found: Any = self.names.get(first, NOTHING)
        for attribute in more:
            if not inspect.ismodule(found):
                return NOTHING
            found = vars(found).get(attribute, NOTHING)
        return known(found)

    def is_language(self, name: str) -> bool:
        found = self.names.get(name)
        return inspect.ismodule(found) and found.__name__.partition(".")[0] == "triton"


def source_of(kernel: Any) -> Function:
    """Of a `JITFunction`, an `InterpretedFunction`, or a plain function. Raises
    `UnreadableError` for one without source."""
    plain = getattr(kernel, "fn", kernel)
    try:
        text, first = _text(kernel, plain)
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnreadableError("no source") from None
    nodes = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if len(nodes) != 1:
        raise UnreadableError("no plain function")
    ast.increment_lineno(nodes[0], first - 1)
    names = dict(plain.__globals__)
    cells = zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=False)
    for name, cell in cells:
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return Function(nodes[0], Around(names), PurePath(plain.__code__.co_filename).name)


def _text(kernel: Any, plain: Any) -> tuple[str, int]:
    """What Triton would compile, and the line where it begins; 1 for text that is in no file."""
    own = getattr(kernel, "src", None)
    text = textwrap.dedent(inspect.getsource(plain))
    if own is None or str(own).strip() in text:
        return text, int(plain.__code__.co_firstlineno)
    return textwrap.dedent(own), 1


def known(found: Any) -> object:
    """Of what a program has under a name; nothing of it is called."""
    if found is None or isinstance(found, bool | int | float | str | Element):
        return found
    kind = type(found)
    if not kind.__module__.startswith("triton."):
        return NOTHING
    match kind.__name__:
        case "constexpr":
            return known(found.value)
        case "dtype":
            return Element.named(str(found)) or NOTHING
        case "JITFunction" | "InterpretedFunction" if not _is_language(found):
            try:
                return source_of(found)
            except UnreadableError:
                return NOTHING
    return NOTHING


def _is_language(function: Any) -> bool:
    """Triton's own helpers, `cdiv` say, are known by name."""
    plain: Callable[..., Any] = function.fn
    return (plain.__module__ or "").startswith("triton.")
