"""The table of contents of a file: definitions, classes, imports; by stdlib `ast`.

`ast` costs a tenth of libcst and refuses hostile nesting cleanly. Bodies stay text
until somebody asks for them.
"""

import ast
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kvlint.analysis.depth import MAX_DEPTH, nests_too_deep
from kvlint.analysis.newer import in_older_syntax


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or method; nested functions belong to the one they stand in.

    Lines count from 1 and include decorators; `class_name` is '' for functions. `too_deep`:
    the line of an expression that nests too deep for the rest to be read, 0 without one.
    """

    path: str
    name: str
    first_line: int
    last_line: int
    column: int
    parameters: tuple[str, ...]
    annotations: tuple[tuple[str, str], ...]
    decorators: tuple[str, ...]
    class_name: str
    defaults: tuple[tuple[str, object], ...] = ()
    returns: str = ""
    too_deep: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        # There are many: copied field by field they would take ten times as long.
        return Definition, tuple([getattr(self, name) for name in self.__match_args__])

    @property
    def key(self) -> str:
        return f"{self.path}::{self.name}"

    @property
    def owner(self) -> str:
        """Key of the class whose method this is; of none for a function."""
        return f"{self.path}::{self.class_name}"

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_static(self) -> bool:
        return "staticmethod" in self.decorators

    @property
    def zero_defaults(self) -> list[str]:
        """Parameters that are 0 unless said otherwise."""
        return [name for name, value in self.defaults if value == 0 and value is not False]

    @property
    def receives(self) -> str | None:
        """The name of the parameter that stands for the object or class, if any."""
        if self.class_name and not self.is_static and self.parameters:
            return self.parameters[0]
        return None


@dataclass(frozen=True, slots=True)
class ClassOutline:
    """`constants`: names that the class gives a dotted name or a whole number, as in
    `dtype = torch.uint8`."""

    path: str
    name: str
    line: int
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    annotated: tuple[str, ...]
    constants: tuple[tuple[str, str | int], ...] = ()

    @property
    def key(self) -> str:
        return f"{self.path}::{self.name}"


@dataclass(slots=True)
class Outline:
    """`source` gives the text: what is only looked up needs none."""

    path: str
    source: Callable[[], str]
    definitions: dict[str, Definition] = field(default_factory=dict)
    classes: dict[str, ClassOutline] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    _by_line: list[Definition] | None = None
    _lines: list[str] | None = None

    @property
    def lines(self) -> list[str]:
        if self._lines is None:
            # Only line feeds: `splitlines` also cuts at form feeds and the like, Python does not.
            self._lines = [f"{line}\n" for line in self.source().split("\n")]
        return self._lines

    def at(self, line: int) -> Definition | None:
        if self._by_line is None:
            # Definitions never overlap: inner functions belong to the outer one.
            self._by_line = sorted(self.definitions.values(), key=_first_line)
        number = bisect_right(self._by_line, line, key=_first_line) - 1
        if number >= 0 and line <= self._by_line[number].last_line:
            return self._by_line[number]
        return None

    def size(self, definition: Definition) -> int:
        """Characters of its text."""
        return sum(map(len, self.lines[definition.first_line - 1 : definition.last_line]))

    def text(self, definition: Definition) -> str:
        return "".join(self.lines[definition.first_line - 1 : definition.last_line])


def _first_line(definition: Definition) -> int:
    return definition.first_line


def module_of(path: str) -> str:
    """`a/b/c.py` -> `a.b.c`; a package's `__init__.py` is the package."""
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def outline(path: str, source: str) -> Outline:
    """Raises SyntaxError, ValueError (null bytes), RecursionError or MemoryError (nesting)."""
    try:
        tree = _parsed(source)
    except SyntaxError:
        older = in_older_syntax(source)
        if older is None:
            raise
        tree = _parsed(older)
    result = Outline(path, lambda: source)
    package = module_of(path).split(".")
    if not path.endswith("__init__.py"):
        package = package[:-1]
    _visit(tree.body, result, "", "", package)
    return result


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _visit(body: list[ast.stmt], out: Outline, prefix: str, owner: str, package: list[str]) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = list(_statements(node))
            definition = _definition(node, inside, out, prefix, owner)
            # A property's setter comes after its getter; the getter is what reads need. Of
            # overloads the last one has the body.
            known = out.definitions.get(definition.name)
            if known is None or "overload" in known.decorators:
                out.definitions[definition.name] = definition
            for inner in inside:
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    _import(inner, out, package)
        elif isinstance(node, ast.ClassDef):
            name = f"{prefix}{node.name}"
            out.classes[name] = ClassOutline(
                out.path,
                name,
                node.lineno,
                tuple(_dotted(base) for base in node.bases),
                tuple(_dotted(d) for d in node.decorator_list),
                tuple(
                    s.target.id
                    for s in node.body
                    if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
                ),
                tuple(_constants(node.body)),
            )
            _visit(node.body, out, f"{name}.", name, package)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            _import(node, out, package)
        else:
            for name in ("body", "orelse", "finalbody"):
                _visit(getattr(node, name, []), out, prefix, owner, package)
            for handler in getattr(node, "handlers", []):
                _visit(handler.body, out, prefix, owner, package)


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    inside: list[ast.stmt],
    out: Outline,
    prefix: str,
    owner: str,
) -> Definition:
    deep = (
        inner.lineno for inner in inside if _is_long(inner) and nests_too_deep(inner, out.lines)
    )
    arguments = node.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return Definition(
        path=out.path,
        name=f"{prefix}{node.name}",
        first_line=min([node.lineno, *(d.lineno for d in node.decorator_list)]),
        last_line=node.end_lineno or node.lineno,
        column=node.col_offset,
        parameters=tuple(a.arg for a in listed),
        annotations=tuple((a.arg, _annotation(a.annotation)) for a in listed if a.annotation),
        decorators=tuple(_dotted(d).rpartition(".")[2] for d in node.decorator_list),
        class_name=owner,
        defaults=tuple(_defaults(arguments)),
        returns=_annotation(node.returns),
        too_deep=next(deep, 0),
    )


def _is_long(statement: ast.stmt) -> bool:
    """Whether there is room for many levels: most statements end within a line."""
    return statement.end_lineno != statement.lineno or (statement.end_col_offset or 0) > MAX_DEPTH


def _defaults(arguments: ast.arguments) -> list[tuple[str, object]]:
    """Parameters with a constant default, and the constant."""
    listed = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(listed), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return [
        (argument.arg, default.value)
        for argument, default in pairs
        if isinstance(default, ast.Constant)
    ]


def _constants(body: list[ast.stmt]) -> Iterator[tuple[str, str | int]]:
    for statement in body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                match value:
                    case ast.Attribute():
                        yield name, _dotted(value)
                    case ast.Constant(value=int(number)) if not isinstance(number, bool):
                        yield name, number


_HOLDERS = frozenset({"dict", "list", "mapping", "sequence", "tuple"})


def _annotation(node: ast.expr | None) -> str:
    """The class an annotation names; Optional and quotes are looked through. Of a list or a
    mapping, the class of what it holds stands between brackets: `dict[Layer]`."""
    match node:
        case ast.Constant(value=str(text)):
            return text.strip()
        case ast.Subscript(value=ast.Name(id=name), slice=held) if name.lower() in _HOLDERS:
            last = held.elts[-1] if isinstance(held, ast.Tuple) and held.elts else held
            return f"{name}[{_annotation(last)}]"
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _annotation(inner)
        case ast.BinOp(left=left, right=ast.Constant(value=None)):
            return _annotation(left)
    return _dotted(node) if node else ""


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{_dotted(value)}.{attr}"
        case ast.Call(func=func):
            return _dotted(func)
        case ast.Subscript(value=value):
            return _dotted(value)
    return ""


def _statements(top: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and all in its blocks, in order; no recursion, for long `elif` chains."""
    stack: list[ast.AST] = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in _BLOCKS.get(type(node), ()):
            stack.extend(getattr(node, name)[::-1])


_LOOP = ("orelse", "body")
_TRY = ("finalbody", "orelse", "handlers", "body")
# The fields that hold statements, the last one first.
_BLOCKS: dict[type, tuple[str, ...]] = {
    ast.FunctionDef: ("body",), ast.AsyncFunctionDef: ("body",), ast.ClassDef: ("body",),
    ast.With: ("body",), ast.AsyncWith: ("body",), ast.If: _LOOP, ast.For: _LOOP,
    ast.AsyncFor: _LOOP, ast.While: _LOOP, ast.Try: _TRY, ast.TryStar: _TRY,
    ast.ExceptHandler: ("body",), ast.Match: ("cases",), ast.match_case: ("body",),
}  # fmt: skip


def _import(node: ast.Import | ast.ImportFrom, out: Outline, package: list[str]) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            out.imports.setdefault(bound, alias.name if alias.asname else bound)
        return
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *(node.module.split(".") if node.module else [])])
    for alias in node.names:
        out.imports.setdefault(alias.asname or alias.name, f"{module}.{alias.name}")
