"""What a kernel's expressions stand for."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kvlint.runtime_checks.launches.calls import Calls
from kvlint.runtime_checks.launches.terms import OTHER, Term
from kvlint.runtime_checks.launches.values import (
    NOTHING,
    Element,
    Function,
    Known,
    Nothing,
    Number,
    Pointer,
    Scope,
    Value,
    moved,
    spread,
)

_OPERATORS: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
# Python's own functions, by the name of what Triton makes of them.
_BUILTINS: Final = {"min": "minimum", "max": "maximum", "int": "int"}
_COMPARISONS: Final[Mapping[type[ast.AST], tuple[str, bool]]] = {
    ast.Lt: ("<", False),
    ast.LtE: ("<=", False),
    ast.Gt: ("<", True),
    ast.GtE: ("<=", True),
    ast.Eq: ("==", False),
    ast.NotEq: ("!=", False),
}


@dataclass(slots=True)
class Frame:
    names: dict[str, Value]
    scope: Scope
    results: list[tuple[tuple[Term, ...], Value]]
    begun: int


class Expressions(Calls):
    def call(
        self, function: Function, positional: Sequence[Value], named: Mapping[str, Value]
    ) -> Value:
        """What the function gives back, its accesses noted."""
        raise NotImplementedError

    def value(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case ast.Constant(value=constant):
                return self.constant(constant)
            case ast.Name(id=name):
                found = frame.names.get(name)
                return self.constant(frame.scope.look(name)) if found is None else found
            case ast.Attribute():
                return self._attribute(node, frame)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self.value(left, frame), self.value(right, frame))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.value(operand, frame))
            case ast.BoolOp(op=op, values=parts):
                return self._logical(op, parts, frame)
            case ast.Compare():
                return self._compare(node, frame)
            case ast.IfExp(test=test, body=body, orelse=other):
                condition = self.value(test, frame)
                sure = truth(condition)
                if sure is not None:
                    return self.value(body if sure else other, frame)
                return self._chosen(self.condition(condition), body, other, frame)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(part, frame) for part in parts)
            case ast.Subscript(value=value, slice=index):
                return self._subscript(self.value(value, frame), index, frame)
            case ast.Call():
                return self._call(node, frame)
        return NOTHING

    def _chosen(self, test: Term, body: ast.expr, other: ast.expr, frame: Frame) -> Value:
        """What is loaded in one of the two is loaded only where it is chosen."""
        before, found = self.when, []
        for part, holds in ((body, test), (other, self.terms.of("not", test))):
            self.when = (*before, holds)
            found.append(self.value(part, frame))
        self.when = before
        return self._either(test, *found)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        path = _dotted(node)
        if path is not None and path[0] not in frame.names:
            found = frame.scope.look(".".join(path))
            if not isinstance(found, Nothing):
                return self.constant(found)
            return Element.named(node.attr) or NOTHING
        held = self.value(node.value, frame)
        match held, node.attr:
            case Pointer(element=element), "dtype":
                return self.pointer_to(element)
            case _, "element_ty":
                return self.element_of(held) or NOTHING
            case Number(term=term), "dtype":
                return Element.named(term.kind) or NOTHING
            case _, "value":
                return held
        return NOTHING

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        given: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                parts = self.value(argument.value, frame)
                given.extend(parts if isinstance(parts, tuple) else (NOTHING,))
            else:
                given.append(self.value(argument, frame))
        named = {k.arg: self.value(k.value, frame) for k in node.keywords if k.arg is not None}
        place = f"{self.file}:{node.lineno}"
        path = _dotted(node.func)
        if path is None or (path[0] in frame.names and len(path) > 1):
            if isinstance(node.func, ast.Attribute):
                held = self.value(node.func.value, frame)
                return self.language(node.func.attr, [held, *given], named, place)
            return NOTHING
        held = frame.names.get(path[0], NOTHING) if len(path) == 1 else NOTHING
        found = held if isinstance(held, Function) else frame.scope.look(".".join(path))
        if isinstance(found, Function):
            return self.call(found, given, named)
        name = path[-1]
        if len(path) == 1:
            name = _BUILTINS.get(name, "")
        elif not frame.scope.is_language(path[0]):
            name = ""
        return self.language(name, given, named, place)

    def _binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        sign = _OPERATORS.get(type(op))
        match left, right:
            case Number(), Number() if sign is not None:
                if sign in "&|" and left.term.kind == right.term.kind == "i1":
                    sign = {"&": "and", "|": "or"}[sign]
                term = self.terms.of(sign, left.term, right.term)
                return Number(term, max(left.rank, right.rank))
            case Pointer(), Number() if sign in ("+", "-") and sign is not None:
                return moved(self.terms, left, right, sign)
            case Number(), Pointer() if sign == "+":
                return moved(self.terms, right, left, "+")
            case (Pointer(), _) | (_, Pointer()):
                return NOTHING
            case tuple(), tuple() if sign == "+":
                return (*left, *right)
        return Number(self.terms.unknown(), max(_rank(left), _rank(right)))

    def _unary(self, op: ast.unaryop, operand: Value) -> Value:
        match op, operand:
            case ast.Not(), _:
                sure = truth(operand)
                if sure is not None:
                    return self.constant(not sure)
                return Number(self.terms.of("not", self.condition(operand)), _rank(operand))
            case ast.USub(), Number(term=term, rank=rank):
                return Number(self.terms.of("-", self.terms.number(0, term.kind), term), rank)
            case ast.USub(), Known(value=float(number)):
                return Known(-number)
            case ast.UAdd(), _:
                return operand
            case ast.Invert(), Number(term=term, rank=rank) if term.kind == "i1":
                return Number(self.terms.of("not", term), rank)
        return Number(self.terms.unknown(), _rank(operand))

    def _logical(self, op: ast.boolop, parts: Sequence[ast.expr], frame: Frame) -> Value:
        decides = isinstance(op, ast.Or)
        found: list[Value] = []
        for part in parts:
            value = self.value(part, frame)
            sure = truth(value)
            if sure is decides:
                return self.constant(decides) if found else value
            if sure is None:
                found.append(value)
        if not found:
            return self.constant(not decides)
        result = self.condition(found[0])
        for value in found[1:]:
            result = self.terms.of("or" if decides else "and", result, self.condition(value))
        return Number(result, max(map(_rank, found)))

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        values = [self.value(part, frame) for part in (node.left, *node.comparators)]
        found = [
            self._compared(op, left, right)
            for op, left, right in zip(node.ops, values, values[1:], strict=False)
        ]
        if len(found) == 1:
            return found[0]
        result = self.terms.all_of([self.condition(value) for value in found])
        return Number(result, max(map(_rank, found)))

    def _compared(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        match op, left, right:
            case ((ast.Is() | ast.IsNot()), _, Known(value=None)):
                if isinstance(left, Nothing):
                    return Number(self.terms.unknown("i1"))
                same = isinstance(left, Known) and left.value is None
                return self.constant(same == isinstance(op, ast.Is))
            case ((ast.Eq() | ast.NotEq()), (Known() | Element()), (Known() | Element())):
                return self.constant((left == right) == isinstance(op, ast.Eq))
            case _, Number(term=one), Number(term=two) if type(op) in _COMPARISONS:
                sign, turned = _COMPARISONS[type(op)]
                if OTHER in (one.kind, two.kind):
                    return Number(self.terms.unknown("i1"), max(left.rank, right.rank))
                term = self.terms.of(sign, *((two, one) if turned else (one, two)))
                return Number(term, max(left.rank, right.rank))
        return Number(self.terms.unknown("i1"), max(_rank(left), _rank(right)))

    def _subscript(self, held: Value, index: ast.expr, frame: Frame) -> Value:
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        axes = [
            None if isinstance(part, ast.Constant) and part.value is None else part
            for part in parts
        ]
        if all(part is None or isinstance(part, ast.Slice) for part in axes):
            if isinstance(held, Number | Pointer):
                kept = [len(axes) - at for at, part in enumerate(axes) if part is not None]
                if len(kept) == held.rank:
                    old = range(held.rank, 0, -1)
                    return spread(self.terms, held, dict(zip(old, kept, strict=True)), len(axes))
            return NOTHING
        at = self.value(index, frame)
        match held, at:
            case tuple(), Number(term=Term(op="number", value=int(place))) if (
                -len(held) <= place < len(held)
            ):
                found: Value = held[place]
                return found
        return NOTHING

    # Values.

    def _either(self, test: Term, one: Value, other: Value) -> Value:
        match one, other:
            case _ if one is other or one == other:
                return one
            case Number(), Number():
                term = self.terms.of("where", test, one.term, other.term)
                return Number(term, max(one.rank, other.rank))
            case Pointer(), Pointer() if (one.argument, one.element) == (
                other.argument,
                other.element,
            ):
                offset = self.terms.of("where", test, one.offset, other.offset)
                return replace(one, offset=offset, rank=max(one.rank, other.rank))
            case tuple(), tuple() if len(one) == len(other):
                pairs = zip(one, other, strict=True)
                return tuple(self._either(test, a, b) for a, b in pairs)
        return NOTHING

    def condition(self, value: Value) -> Term:
        if isinstance(value, Number) and value.term.kind != OTHER:
            if value.term.kind == "i1":
                return value.term
            return self.terms.of("!=", value.term, self.terms.number(0, value.term.kind))
        sure = truth(value)
        return self.terms.unknown("i1") if sure is None else self.terms.number(int(sure), "i1")


def truth(value: Value) -> bool | None:
    match value:
        case Number(term=Term(op="number", value=number)):
            return bool(number)
        case Known(value=known):
            return bool(known)
    return None


def _rank(value: Value) -> int:
    return value.rank if isinstance(value, Number | Pointer) else 0


def _dotted(node: ast.expr) -> list[str] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *parts[::-1]] if isinstance(node, ast.Name) else None
