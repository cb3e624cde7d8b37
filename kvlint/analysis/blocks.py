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
        if isinstance(node, cst.AugAssign)
        and isinstance(node.operator, cst.AddAssign)
        and isinstance(node.target, cst.Name)
    }


def fields_written(block: Any) -> set[str]:
    """Paths like `self.count` that a block assigns."""
    return {
        f"{node.target.value.value}.{node.target.attr.value}"
        for node in _statements(block)
        if isinstance(node, cst.AssignTarget)
        and isinstance(node.target, cst.Attribute)
        and isinstance(node.target.value, cst.Name)
    }


def _statements(block: Any) -> Iterator[Any]:
    """The statements of a block and their parts; no expressions, no inner functions."""
    stack: list[Any] = [block]
    while stack:
        node = stack.pop()
        if not isinstance(node, cst.FunctionDef | cst.BaseExpression):
            yield node
            stack.extend(node.children)


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
