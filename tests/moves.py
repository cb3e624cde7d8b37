"""Edits that move code and change nothing in it, of which no assumption's id may take notice."""

import ast
import io
import tokenize

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules


def ids(root):
    """What is found below a folder, by id: (id, status, path), sorted."""
    report = check(root, [root], all_rules())
    return sorted((f.assumption_id, f.status, f.span.path) for f in report.findings)


def spaced(text: str) -> str:
    """A blank line and a remark above every third statement."""
    starts: list[int] = []
    fresh = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            continue
        if fresh:
            starts.append(token.start[0])
        fresh = token.type == tokenize.NEWLINE
    before = set(starts[::3])
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if number in before and line.strip():
            indent = line[: len(line) - len(line.lstrip())]
            lines += ["", f"{indent}# a remark"]
        lines.append(line)
    return "\n".join(lines)


def reordered(text: str) -> str:
    """The methods of each class the other way round; classes with two of one name stay."""
    lines = text.split("\n")
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    for node in reversed(classes):
        methods = [f for f in node.body if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)]
        if len({method.name for method in methods}) < len(methods):
            continue
        extents = [
            (min([m.lineno, *(d.lineno for d in m.decorator_list)]) - 1, m.end_lineno)
            for m in methods
        ]
        blocks = [lines[first:last] for first, last in extents]
        for (first, last), block in zip(reversed(extents), blocks, strict=True):
            lines[first:last] = block
    return "\n".join(lines)


MOVES = {"spaced": spaced, "reordered": reordered, "both": lambda text: spaced(reordered(text))}
