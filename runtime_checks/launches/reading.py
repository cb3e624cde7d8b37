"""Reads a kernel: which bytes of which argument its loads and stores touch, and when.

The source is walked once for each set of constants, by the stdlib's `ast`, with terms in the place
of values. What is not understood is unknown from there on, and nothing is said of an access that
depends on it. After a loop a name is known that grows by the same in each round.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kvlint.runtime_checks.launches.calls import Calls
from kvlint.runtime_checks.launches.terms import OTHER, Access, Term, Terms, UnreadableError, below
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

DEEPEST: Final = 8
MOST_ACCESSES: Final = 1000
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
_COMPARISONS: Final[Mapping[type[ast.AST], tuple[str, bool]]] = {
    ast.Lt: ("<", False),
    ast.LtE: ("<=", False),
    ast.Gt: ("<", True),
    ast.GtE: ("<=", True),
    ast.Eq: ("==", False),
    ast.NotEq: ("!=", False),
}


@dataclass(frozen=True, slots=True)
class Contract:
    """
    accesses  those that were read
    unread    how many loads and stores were not: through pointers that come from memory, say
    """

    accesses: tuple[Access, ...]
    unread: int
    terms: Terms = field(compare=False, repr=False)


@dataclass(slots=True)
class _Frame:
    names: dict[str, Value]
    scope: Scope
    results: list[tuple[tuple[Term, ...], Value]]
    begun: int


def read(kernel: Function, arguments: Mapping[str, Value], terms: Terms) -> Contract:
    """Raises `UnreadableError`, with the reason, for what is not read at all."""
    reader = _Reader(terms)
    try:
        reader.call(kernel, (), arguments)
    except RecursionError:
        raise UnreadableError("too deep") from None
    return Contract(tuple(dict.fromkeys(reader.accesses)), reader.unread, terms)


class _Reader(Calls):
    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._depth = 0
        self._loops = 0

    # Functions.

    def call(
        self, function: Function, positional: Sequence[Value], named: Mapping[str, Value]
    ) -> Value:
        if self._depth >= DEEPEST:
            raise UnreadableError("calls too deep")
        node, before, file = function.node.args, self.when, self.file
        parameters = [*node.posonlyargs, *node.args]
        frame = _Frame({}, function.scope, [], len(before))
        defaults = zip(parameters[len(parameters) - len(node.defaults) :], node.defaults)  # noqa: B905
        keyword = zip(node.kwonlyargs, node.kw_defaults, strict=True)
        for parameter, default in [*defaults, *keyword]:
            if default is not None:
                frame.names[parameter.arg] = self.value(default, frame)
        for parameter, value in zip(parameters, positional):  # noqa: B905
            frame.names[parameter.arg] = value
        frame.names.update(named)
        self._depth += 1
        self.file = function.file
        try:
            self._run(function.node.body, frame)
        finally:
            self._depth -= 1
            self.when, self.file = before, file
        return self._result(frame)

    def _result(self, frame: _Frame) -> Value:
        if not frame.results:
            return Known(None)
        *earlier, (_, result) = frame.results
        for when, value in reversed(earlier):
            test = self.terms.all_of(when[frame.begun :])
            result = self._either(test, value, result)
        return result

    # Statements. Each gives back whether nothing comes after it.

    def _run(self, statements: Sequence[ast.stmt], frame: _Frame) -> bool:
        return any(self._statement(statement, frame) for statement in statements)

    def _statement(self, node: ast.stmt, frame: _Frame) -> bool:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self.value(value, frame), frame)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.value(value, frame), frame)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                old = frame.names.get(name, NOTHING)
                self._assign(target, self._binary(op, old, self.value(value, frame)), frame)
            case ast.Expr(value=value):
                self.value(value, frame)
            case ast.If():
                return self._if(node, frame)
            case ast.For():
                self._for(node, frame)
            case ast.While():
                self._while(node, frame)
            case ast.Return(value=value):
                result = Known(None) if value is None else self.value(value, frame)
                frame.results.append((self.when, result))
                return True
            case ast.Raise():
                return True
            case ast.Pass() | ast.Assert() | ast.AnnAssign() | ast.Import() | ast.ImportFrom():
                pass
            case _:
                raise UnreadableError(f"line {node.lineno}: {type(node).__name__}")
        return False

    def _assign(self, target: ast.expr, value: Value, frame: _Frame) -> None:
        match target:
            case ast.Name(id=name):
                frame.names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                fits = isinstance(value, tuple) and len(value) == len(parts)
                values = value if isinstance(value, tuple) and fits else [NOTHING] * len(parts)
                for part, one in zip(parts, values, strict=True):
                    self._assign(part, one, frame)

    def _if(self, node: ast.If, frame: _Frame) -> bool:
        test = self.value(node.test, frame)
        sure = truth(test)
        if sure is not None:
            return self._run(node.body if sure else node.orelse, frame)
        condition = self.condition(test)
        other = self.terms.of("not", condition)
        before, names = self.when, frame.names
        ends: list[bool] = []
        envs: list[dict[str, Value]] = []
        added: list[Term] = []
        for branch, holds in ((node.body, condition), (node.orelse, other)):
            frame.names, self.when = dict(names), (*before, holds)
            ends.append(self._run(branch, frame))
            envs.append(frame.names)
            added.append(self.terms.all_of(self.when[len(before) + 1 :]))
        frame.names, self.when = names, before
        if all(ends):
            return True
        if any(ends):
            left = 1 if ends[0] else 0
            frame.names = envs[left]
            self._hold((condition, other)[left])
            self._hold(added[left])
            return False
        frame.names = {
            name: self._either(condition, envs[0][name], envs[1][name])
            if name in envs[0] and name in envs[1]
            else envs[0].get(name, envs[1].get(name, NOTHING))
            for name in {**envs[0], **envs[1]}
        }
        self._hold(self.terms.of("where", condition, *added))
        return False

    def _hold(self, condition: Term) -> None:
        """From here on."""
        if condition.op != "number":
            self.when = (*self.when, condition)

    def _while(self, node: ast.While, frame: _Frame) -> None:
        for name in _assigned(node.body):
            frame.names[name] = self._forgotten(frame.names.get(name, NOTHING))
        before = self.when
        self.when = (*before, self.terms.unknown("i1"))
        self._run(node.body, frame)
        self.when = before
        for name in _assigned(node.body):
            frame.names[name] = self._forgotten(frame.names.get(name, NOTHING))

    def _for(self, node: ast.For, frame: _Frame) -> None:
        terms, before = self.terms, self.when
        item, rounds, round_, sure = self._rounds(node.iter, frame)
        for condition in sure:
            self._hold(condition)
        changed = {name for name in _assigned(node.body) if name in frame.names}
        first = {name: frame.names[name] for name in changed}
        growing = self._growth(node, frame, first, item)
        for name, init in first.items():
            step = growing.get(name)
            frame.names[name] = (
                self._forgotten(init) if step is None else self._grown(init, step, round_)
            )
        names = set(frame.names)
        self._assign(node.target, item, frame)
        self._run(node.body, frame)
        self.when = before
        for name in set(frame.names) - names:
            frame.names[name] = self._forgotten(frame.names[name])
        for name, init in first.items():
            step = growing.get(name)
            if step is None or rounds.kind == OTHER:
                frame.names[name] = self._forgotten(init)
            else:
                most = terms.of("max", rounds, terms.number(0, rounds.kind))
                frame.names[name] = self._grown(init, step, most)

    def _rounds(self, node: ast.expr, frame: _Frame) -> tuple[Value, Term, Term, list[Term]]:
        """Of a loop: its item, how many rounds there are, which one it is, and what holds in it."""
        terms = self.terms
        unknown = terms.unknown("i32")
        name = _last(node.func) if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or name not in ("range", "static_range"):
            return NOTHING, unknown, unknown, [terms.unknown("i1")]
        given = [self.value(argument, frame) for argument in node.args[:3]]
        bounds = [g.term for g in given if isinstance(g, Number) and g.term.kind != OTHER]
        if len(bounds) < len(given) or not bounds:
            return Number(unknown), unknown, unknown, [terms.unknown("i1")]
        zero, one = terms.number(0), terms.number(1)
        start, stop, step = (zero, bounds[0], one) if len(bounds) == 1 else (*bounds, one)[:3]
        kind = terms.of("+", terms.of("+", start, stop), step).kind
        if not kind and name == "range":
            kind = "i32"
        span = terms.of("+", terms.of("-", stop, start), terms.of("-", step, one))
        rounds = terms.of("//", span, step)
        self._loops += 1
        round_ = terms.variable(("round", self._loops), rounds, kind)
        item = terms.of("+", start, terms.of("*", round_, step))
        return (
            Number(terms.cast(item, kind)),
            rounds,
            round_,
            [
                terms.of("<", zero, step),
                terms.of("<", zero, rounds),
            ],
        )

    def _growth(
        self, node: ast.For, frame: _Frame, first: Mapping[str, Value], item: Value
    ) -> dict[str, Term]:
        """By how much names grow in each round, of a pointer in bytes."""
        marks = {name: self._forgotten(value) for name, value in first.items()}
        trial = _Frame({**frame.names, **marks}, frame.scope, [], len(self.when))
        kept = (list(self.accesses), self.unread, self.when, self._loops)
        self._assign(node.target, item, trial)
        self._run(node.body, trial)
        self.accesses, self.unread, self.when, self._loops = kept
        unsteady = {mark.number for value in marks.values() if (mark := _inner(value)) is not None}
        if isinstance(item, Number):
            unsteady |= {t.number for t in below([item.term]) if t.op == "variable"} - {
                t.number for value in first.values() if (i := _inner(value)) for t in below([i])
            }
        found: dict[str, Term] = {}
        for name, before in marks.items():
            after = trial.names.get(name, NOTHING)
            begun, end = _inner(before), _inner(after)
            if begun is None or end is None:
                continue
            if getattr(after, "argument", None) != getattr(before, "argument", None):
                continue
            step = self._step(end, begun)
            if step is not None and not unsteady & {term.number for term in below([step])}:
                found[name] = step
        return found

    def _step(self, end: Term, begun: Term) -> Term | None:
        if end is begun:
            return self.terms.number(0, begun.kind)
        if end.op in ("+", "-"):
            left = self._step(end.operands[0], begun)
            if left is not None:
                return self.terms.of(end.op, left, end.operands[1])
            if end.op == "+":
                right = self._step(end.operands[1], begun)
                return right and self.terms.of("+", right, end.operands[0])
        return None

    def _grown(self, init: Value, step: Term, rounds: Term) -> Value:
        if step.op == "number" and step.value == 0:
            return init
        by = self.terms.of("*", step, self.terms.cast(rounds, step.kind or "i32"))
        if isinstance(init, Pointer):
            return replace(init, offset=self.terms.of("+", init.offset, by))
        if isinstance(init, Number):
            return replace(init, term=self.terms.of("+", init.term, by))
        return NOTHING

    def _forgotten(self, value: Value) -> Value:
        if isinstance(value, Number):
            kind = value.term.kind
            return Number(self.terms.unknown(kind or "i32"), value.rank)
        if isinstance(value, Pointer):
            return replace(value, offset=self.terms.unknown("i64"))
        return NOTHING

    # Expressions.

    def value(self, node: ast.expr, frame: _Frame) -> Value:
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
                return self._either(
                    self.condition(condition), self.value(body, frame), self.value(other, frame)
                )
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(part, frame) for part in parts)
            case ast.Subscript(value=value, slice=index):
                return self._subscript(self.value(value, frame), index, frame)
            case ast.Call():
                return self._call(node, frame)
        return NOTHING

    def _attribute(self, node: ast.Attribute, frame: _Frame) -> Value:
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

    def _call(self, node: ast.Call, frame: _Frame) -> Value:
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
        return self.language(path[-1], given, named, place)

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

    def _logical(self, op: ast.boolop, parts: Sequence[ast.expr], frame: _Frame) -> Value:
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

    def _compare(self, node: ast.Compare, frame: _Frame) -> Value:
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

    def _subscript(self, held: Value, index: ast.expr, frame: _Frame) -> Value:
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


def _inner(value: Value) -> Term | None:
    if isinstance(value, Number) and value.term.kind != OTHER:
        return value.term
    return value.offset if isinstance(value, Pointer) else None


def _rank(value: Value) -> int:
    return value.rank if isinstance(value, Number | Pointer) else 0


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    names = (
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return list(dict.fromkeys(names))


def _dotted(node: ast.expr) -> list[str] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *parts[::-1]] if isinstance(node, ast.Name) else None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
