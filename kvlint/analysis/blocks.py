"""What a block of statements writes, how it ends, and what it leaves in the environment."""

from collections.abc import Iterator
from typing import Any

import libcst as cst

from kvlint.analysis.expressions import Environment
from kvlint.analysis.terms import Choice, Many, Operation, Sequence, Term, bounded


def grow(old: Term, value: Term, verb: str) -> Term:
    if verb == "extend" and isinstance(value, Sequence) and isinstance(old, Sequence):
        return Sequence((*old.items, *value.items))
    if isinstance(old, Sequence):
        if not old.items and isinstance(value, Many):
            return value
        return Sequence((*old.items, value))
    return Operation("+", old, Sequence((value,)))


def _last(block: Any) -> Any:
    """The last simple statement of a block, None if it ends in a compound one."""
    if isinstance(block, cst.SimpleStatementSuite):
        return block.body[-1] if block.body else None
    last = block.body[-1] if block.body else None
    return last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None


def raises(block: Any) -> bool:
    return isinstance(_last(block), cst.Raise)


def ends_turn(block: Any) -> bool:
    return isinstance(_last(block), cst.Continue | cst.Break)


def always_ends(block: Any) -> bool:
    return isinstance(_last(block), cst.Raise | cst.Return)


def augmented(block: Any) -> set[str]:
    """Names that a block adds to."""
    return {
        node.target.value
        for node in _statements(block)
        if type(node) is cst.AugAssign
        and isinstance(node.operator, cst.AddAssign)
        and isinstance(node.target, cst.Name)
    }


def fields_written(block: Any) -> set[str]:
    """Paths like `self.count` that a block assigns."""
    return {
        f"{target.value.value}.{target.attr.value}"
        for node in _statements(block)
        if type(node) is cst.Assign
        for target in (one.target for one in node.targets)
        if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name)
    }


def _statements(block: Any) -> Iterator[Any]:
    """The simple statements of a block and of the blocks in it; no inner functions.

    By what compound statements are made of: a node's own `children` costs a visit of it.
    """
    stack: list[Any] = [block]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is cst.SimpleStatementLine or kind is cst.SimpleStatementSuite:
            yield from node.body
        elif kind is cst.IndentedBlock:
            stack.extend(node.body)
        elif kind is not cst.FunctionDef:
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(node, name, None)
                if inner is not None:
                    stack.append(inner)
            stack.extend(getattr(node, "handlers", ()))
            stack.extend(getattr(node, "cases", ()))


def become(env: Environment, other: Environment) -> None:
    env.clear()
    env.update(other)


def merge(env: Environment, test: Term, then: Environment, other: Environment) -> None:
    merged: Environment = {}
    for name in {**then, **other}:
        if name in then and name in other:
            a, b = then[name], other[name]
            merged[name] = a if a == b else bounded(Choice(test, a, b))
        elif "." not in name and "[" not in name:
            merged[name] = then.get(name) or other[name]
    become(env, merged)
