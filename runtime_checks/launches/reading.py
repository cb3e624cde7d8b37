"""Reads a kernel: which bytes of which argument its loads and stores touch, and when.

The source is walked once for each set of constants, by the stdlib's `ast`, with terms in the place
of values. What is not understood is unknown from there on, and nothing is said of an access that
depends on it. After a loop a name is known that grows by the same in each round.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kvlint.runtime_checks.launches.expressions import Expressions, Frame, truth
from kvlint.runtime_checks.launches.terms import OTHER, Access, Term, Terms, UnreadableError, below
from kvlint.runtime_checks.launches.values import (
    NOTHING,
    Function,
    Known,
    Number,
    Pointer,
    Value,
)

DEEPEST: Final = 8
MOST_ACCESSES: Final = 1000


@dataclass(frozen=True, slots=True)
class Contract:
    """
    accesses  those that were read
    unread    how many loads and stores were not: through pointers that come from memory, say
    """

    accesses: tuple[Access, ...]
    unread: int
    terms: Terms = field(compare=False, repr=False)


def read(kernel: Function, arguments: Mapping[str, Value], terms: Terms) -> Contract:
    """Raises `UnreadableError`, with the reason, for what is not read at all."""
    reader = _Reader(terms)
    try:
        reader.call(kernel, (), arguments)
    except RecursionError:
        raise UnreadableError("too deep") from None
    return Contract(tuple(dict.fromkeys(reader.accesses)), reader.unread, terms)


class _Reader(Expressions):
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
        frame = Frame({}, function.scope, [], len(before))
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

    def _result(self, frame: Frame) -> Value:
        if not frame.results:
            return Known(None)
        *earlier, (_, result) = frame.results
        for when, value in reversed(earlier):
            test = self.terms.all_of(when[frame.begun :])
            result = self._either(test, value, result)
        return result

    # Statements. Each gives back whether nothing comes after it.

    def _run(self, statements: Sequence[ast.stmt], frame: Frame) -> bool:
        return any(self._statement(statement, frame) for statement in statements)

    def _statement(self, node: ast.stmt, frame: Frame) -> bool:
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

    def _assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        match target:
            case ast.Name(id=name):
                frame.names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                fits = isinstance(value, tuple) and len(value) == len(parts)
                values = value if isinstance(value, tuple) and fits else [NOTHING] * len(parts)
                for part, one in zip(parts, values, strict=True):
                    self._assign(part, one, frame)

    def _if(self, node: ast.If, frame: Frame) -> bool:
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

    def _while(self, node: ast.While, frame: Frame) -> None:
        for name in _assigned(node.body):
            frame.names[name] = self._forgotten(frame.names.get(name, NOTHING))
        before = self.when
        self.when = (*before, self.terms.unknown("i1"))
        self._run(node.body, frame)
        self.when = before
        for name in _assigned(node.body):
            frame.names[name] = self._forgotten(frame.names.get(name, NOTHING))

    def _for(self, node: ast.For, frame: Frame) -> None:
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

    def _rounds(self, node: ast.expr, frame: Frame) -> tuple[Value, Term, Term, list[Term]]:
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
        self, node: ast.For, frame: Frame, first: Mapping[str, Value], item: Value
    ) -> dict[str, Term]:
        """By how much names grow in each round, of a pointer in bytes."""
        marks = {name: self._forgotten(value) for name, value in first.items()}
        trial = Frame({**frame.names, **marks}, frame.scope, [], len(self.when))
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


def _inner(value: Value) -> Term | None:
    if isinstance(value, Number) and value.term.kind != OTHER:
        return value.term
    return value.offset if isinstance(value, Pointer) else None


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    names = (
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return list(dict.fromkeys(names))


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
