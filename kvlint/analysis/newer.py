"""Code in a syntax newer than the Python that runs kvlint.

Python's own parser refuses it, libcst does not. What is new is written over in place with older
syntax, line for line and column for column, so that the rest goes the way of all files.
"""

import re
from typing import Any

from kvlint.analysis.depth import MAX_TEXT

# Libcst is slow, greedy or dies where code nests deep, and here no parser has looked before it.
MAX_BRACKETS = 50
MAX_SIGNS = 500  # what can nest without brackets, in one logical line
_SIGNS = re.compile(r"[-+~*/%@&|^.]|\b(?:not|lambda|else|await)\b|[)\]]\s*[(\[]")
_BRACKETS = re.compile(r"[(\[{]|[)\]}]|\n")


def in_older_syntax(source: str) -> str | None:
    """`source` with type parameters, aliases, formatted and template strings and the like blanked
    out; None when libcst cannot read it either, when it holds nothing of that kind, or when it
    nests too deep to be tried."""
    if len(source) > MAX_TEXT or not _is_tame(source):
        return None
    import libcst as cst

    try:
        module = cst.parse_module(source)
    except Exception:  # libcst raises more than it documents
        return None
    text = module.code
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    pieces: list[str] = []
    at = 0
    for (line, column), (end_line, end_column), older in _newer(module):
        start, end = starts[line - 1] + column, starts[end_line - 1] + end_column
        if start >= at:  # what stands in something that was blanked is gone with it
            pieces += (text[at:start], _over(text[start:end], older))
            at = end
    return "".join((*pieces, text[at:])) if pieces else None


def _is_tame(source: str) -> bool:
    """Brackets and signs are counted wherever they stand: rather too many than too few."""
    depth, start = 0, 0
    for match in _BRACKETS.finditer(source):
        sign = match.group()
        if sign == "\n":
            if depth <= 0 and source[match.start() - 1 : match.start()] != "\\":
                if sum(1 for _ in _SIGNS.finditer(source, start, match.start())) > MAX_SIGNS:
                    return False
                depth, start = 0, match.end()
        else:
            depth += 1 if sign in "([{" else -1
            if depth > MAX_BRACKETS:
                return False
    return sum(1 for _ in _SIGNS.finditer(source, start)) <= MAX_SIGNS


_Place = tuple[int, int]  # line from 1, column from 0


def _newer(module: Any) -> list[tuple[_Place, _Place, str]]:
    """What is to be written over, in order, the outer before the inner: from, to, with what."""
    from libcst.metadata import MetadataWrapper, PositionProvider

    places = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    found: list[tuple[_Place, _Place, str]] = []
    for node in places:
        part, older = _older(node)
        if part is not None:
            start, end = places[part].start, places[part].end
            found.append(((start.line, start.column), (end.line, end.column), older))
    return sorted(found, key=lambda one: (one[0], -one[1][0], -one[1][1]))


def _older(node: Any) -> tuple[Any, str]:
    """The part of the node that is too new, if any, and what may stand in its place. By names:
    not every libcst that we run on has all of these classes."""
    match type(node).__name__:
        case "TypeParameters":  # 3.12
            return node, ""
        case "TypeAlias":
            return node, _PASS
        case "FormattedString" | "TemplatedString":  # nested quotes: 3.12; t"": 3.14
            return node, '""'
        case "ExceptHandler" | "ExceptStarHandler":  # `except A, B:`: 3.14
            if type(node.type).__name__ == "Tuple" and not node.type.lpar:
                return node.type, "()"
        case "LazyImport" | "LazyImportFrom":  # 3.15
            return node, _LAZY
        case "ListComp" | "SetComp" | "GeneratorExp":  # 3.15
            if type(node.elt).__name__ == "StarredElement":
                return node.elt, "0"
        case "StarredDictComp":
            return node, "{}"
    return None, ""


_LAZY, _PASS = "lazy", "pass"


def _over(text: str, older: str) -> str:
    """`older`, and blanks for the rest of `text`; a line end within is continued."""
    if older == _LAZY:
        rest = text.removeprefix(_LAZY)
        return rest.lstrip() + " " * (len(text) - len(rest.lstrip()))
    if older == _PASS and text.rstrip().endswith(";"):
        end = text.rindex(";")
        return _over(text[:end], older) + text[end:]
    first, *rest_of = re.split(r"\r\n|\r|\n", text)
    return "\\\n".join([older.ljust(len(first)), *(" " * len(line) for line in rest_of)])
