"""One expression of the syntax tree to one term."""

import ast
import re
from collections.abc import Callable
from typing import Any
from zlib import crc32

import libcst as cst

from kvlint.analysis.bodies import Body, CallSite, Loop, Mark, Root, Where
from kvlint.analysis.forms import GRID, ZERO, each_of, item
from kvlint.analysis.idioms import idiom
from kvlint.analysis.outline import Outline, module_of
from kvlint.analysis.showing import path_of
from kvlint.analysis.terms import (
    Arange,
    Call,
    Choice,
    Each,
    Field,
    Fold,
    Global,
    Index,
    Item,
    Literal,
    Many,
    Mapping,
    Not,
    Opaque,
    Operation,
    Sequence,
    Slice,
    Term,
    bounded,
)

Environment = dict[str, Term]

_BINARY: dict[type, str] = {
    cst.Add: "+", cst.Subtract: "-", cst.Multiply: "*", cst.FloorDivide: "//", cst.Divide: "/",
    cst.Modulo: "%", cst.Power: "**", cst.LeftShift: "<<", cst.RightShift: ">>",
    cst.BitAnd: "&", cst.BitOr: "|", cst.BitXor: "^", cst.MatrixMultiply: "@",
}  # fmt: skip
_COMPARE: dict[type, str] = {
    cst.Equal: "==", cst.NotEqual: "!=", cst.LessThan: "<", cst.LessThanEqual: "<=",
    cst.GreaterThan: ">", cst.GreaterThanEqual: ">=", cst.Is: "is", cst.IsNot: "is not",
    cst.In: "in", cst.NotIn: "not in",
}  # fmt: skip


class Expressions:
    """Lowers expressions of one definition; statements live in `lower`."""

    def __init__(self, outline: Outline, body: Body) -> None:
        self.outline = outline
        self.body = body
        self._module = module_of(outline.path)
        self.where = Where((0,), 0, ())
        # Loops of different bodies meet in one term: the definition keeps their ids apart.
        self._first_loop = crc32(body.definition.key.encode("utf-8", "surrogateescape")) << 16
        self._loop_count = 0
        self.testing = False
        self.nodes: list[cst.CSTNode] = []
        self._memo_calls: set[int] = set()

    def place(self, node: cst.CSTNode) -> Mark:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def new_loop(self, over: Term, node: cst.CSTNode) -> int:
        self._loop_count += 1
        loop = self._first_loop + self._loop_count
        self.body.loops[loop] = Loop(loop, over, self.place(node))
        return loop

    def lower(self, node: cst.BaseExpression, env: Environment) -> Term:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return Opaque(f"{type(node).__name__} is not followed")
        term = bounded(handler(self, node, env))
        if not isinstance(node, cst.Name | cst.Integer | cst.SimpleString):
            spans = self.body.tested if self.testing else self.body.spans
            spans.setdefault(term, []).append((self.place(node), self.where))
        if isinstance(term, Call) and id(node) not in self._memo_calls:
            self._memo_calls.add(id(node))
            self.body.calls.append(CallSite(term, self.place(node), self.where))
        return term

    def _name(self, node: cst.Name, env: Environment) -> Term:
        name = node.value
        if name in env:
            return env[name]
        if name in ("True", "False", "None"):
            return Literal({"True": True, "False": False, "None": None}[name])
        return Global(self.resolve(name))

    def resolve(self, name: str) -> str:
        if name in self.outline.imports:
            return self.outline.imports[name]
        if name in self.outline.definitions or name in self.outline.classes:
            return f"{self._module}.{name}"
        return (
            name if hasattr(__builtins__, name) or name in _BUILTINS else f"{self._module}.{name}"
        )

    def _attribute(self, node: cst.Attribute, env: Environment) -> Term:
        of = self.lower(node.value, env)
        name = node.attr.value
        match of:
            case Global(dotted):
                return Global(f"{dotted}.{name}")
            case Choice(test, then, other) if then.size + other.size < 60:
                return Choice(test, self._field(then, name, env), self._field(other, name, env))
        return self._field(of, name, env)

    def _field(self, of: Term, name: str, env: Environment) -> Term:
        field = Field(of, name)
        path = path_of(field)
        if path is not None and path in env:
            return env[path]
        return field

    def _subscript(self, node: cst.Subscript, env: Environment) -> Term:
        of = self.lower(node.value, env)
        if len(node.slice) != 1:
            parts = [e.slice for e in node.slice]
            whole = all(_is_whole(p) for p in parts)
            if whole:
                return of
            keys = [
                self.lower(p.value, env) if isinstance(p, cst.Index) else self._slice(of, p, env)
                for p in parts
            ]
            return Item(of, Sequence(tuple(keys)))
        only = node.slice[0].slice
        if isinstance(only, cst.Slice):
            return self._slice(of, only, env)
        if not isinstance(only, cst.Index):
            return Opaque("subscript is not followed")
        key = self.lower(only.value, env)
        found = item(of, key)
        path = path_of(Item(of, key))
        return env.get(path, found) if path else found

    def _slice(self, of: Term, node: Any, env: Environment) -> Term:
        lower = self.lower(node.lower, env) if node.lower is not None else None
        upper = self.lower(node.upper, env) if node.upper is not None else None
        if lower in (None, ZERO) and upper is None and node.step is None:
            return of
        return Slice(of, lower, upper)

    def _call(self, node: cst.Call, env: Environment) -> Term:
        arguments: list[Term] = []
        keywords: list[tuple[str, Term]] = []
        for argument in node.args:
            value = self.lower(argument.value, env)
            if argument.keyword is not None:
                keywords.append((argument.keyword.value, value))
            elif argument.star == "*":
                match value:
                    case Sequence(items):
                        arguments.extend(items)
                    case _:
                        arguments.append(Many(Each(value, 0), value, 0))
            elif argument.star == "**":
                keywords.append(("**", value))
            else:
                arguments.append(value)
        func = node.func
        if isinstance(func, cst.Attribute):
            receiver = self.lower(func.value, env)
            name = func.attr.value
            if isinstance(receiver, Global):
                return self._meaning(f"{receiver.name}.{name}", None, arguments, keywords, node)
            return self._meaning(name, receiver, arguments, keywords, node)
        target = self.lower(func, env)
        match target:
            case Global(dotted):
                name = dotted.rpartition(".")[2]
                return self._meaning(dotted, None, arguments, keywords, node)
            case Item(kernel, grid) if isinstance(kernel, Global):
                # kernel[grid](...): a launch of a Triton kernel
                keywords.append((GRID, grid))
                return Call(kernel.name, None, tuple(arguments), tuple(keywords))
        return Call("", target, tuple(arguments), tuple(keywords))

    def _meaning(
        self,
        callee: str,
        receiver: Term | None,
        arguments: list[Term],
        keywords: list[tuple[str, Term]],
        node: cst.Call,
    ) -> Term:
        call = Call(callee, receiver, tuple(arguments), tuple(keywords))
        return idiom(call, lambda over: self.new_loop(over, node))

    def _binary(self, node: cst.BinaryOperation, env: Environment) -> Term:
        left, right = self.lower(node.left, env), self.lower(node.right, env)
        symbol = _BINARY.get(type(node.operator), "?")
        if symbol == "//" and isinstance(left, Operation) and left.symbol == "*":
            if right in (left.left, left.right):
                return left.right if left.left == right else left.left
        if symbol == "*":
            for one, many in ((left, right), (right, left)):
                match one:
                    case Sequence((element,)) if not isinstance(element, Many):
                        count = Arange(many)
                        return Many(element, count, self.new_loop(count, node))
        return Operation(symbol, left, right)

    def _unary(self, node: cst.UnaryOperation, env: Environment) -> Term:
        of = self.lower(node.expression, env)
        match node.operator, of:
            case cst.Not(), _:
                return Not(of)
            case cst.Minus(), Literal(int(value)):
                return Literal(-value)
            case cst.Minus(), _:
                return Operation("-", ZERO, of)
        return of

    def _boolean(self, node: cst.BooleanOperation, env: Environment) -> Term:
        left, right = self.lower(node.left, env), self.lower(node.right, env)
        return Operation("and" if isinstance(node.operator, cst.And) else "or", left, right)

    def _comparison(self, node: cst.Comparison, env: Environment) -> Term:
        left = self.lower(node.left, env)
        result: Term | None = None
        for target in node.comparisons:
            right = self.lower(target.comparator, env)
            one = Operation(_COMPARE.get(type(target.operator), "?"), left, right)
            result = one if result is None else Operation("and", result, one)
            left = right
        return result or left

    def _conditional(self, node: cst.IfExp, env: Environment) -> Term:
        test = self.lower(node.test, env)
        then, other = self.lower(node.body, env), self.lower(node.orelse, env)
        return then if then == other else Choice(test, then, other)

    def _sequence(self, node: Any, env: Environment) -> Term:
        items: list[Term] = []
        for element in node.elements:
            value = self.lower(element.value, env)
            if isinstance(element, cst.StarredElement):
                if isinstance(value, Sequence):
                    items.extend(value.items)
                else:
                    items.append(Many(Each(value, 0), value, 0))
            else:
                items.append(value)
        return Sequence(tuple(items))

    def _dict(self, node: cst.Dict, env: Environment) -> Term:
        pairs = [e for e in node.elements if isinstance(e, cst.DictElement)]
        keys = tuple(self.lower(e.key, env) for e in pairs)
        return Mapping(keys, tuple(self.lower(e.value, env) for e in pairs))

    def comprehension(self, node: Any, env: Environment) -> Term:
        local = dict(env)
        outer = self.where
        loops: list[tuple[Term, int, Term | None]] = []
        clause = node.for_in
        while clause is not None:
            over = self.lower(clause.iter, local)
            loop = self.new_loop(over, clause)
            self.where = Where(self.where.block, self.where.order, (*self.where.loops, loop))
            self.bind_loop(clause.target, over, loop, local)
            when: Term | None = None
            for test in clause.ifs:
                one = self.lower(test.test, local)
                when = one if when is None else Operation("and", when, one)
            loops.append((over, loop, when))
            clause = clause.inner_for_in
        if isinstance(node, cst.DictComp):
            key, element = self.lower(node.key, local), self.lower(node.value, local)
            del key
        else:
            element = self.lower(node.elt, local)
        self.where = outer
        for over, loop, when in reversed(loops):
            element = Many(element, over, loop, when)
        return Fold("set", element) if isinstance(node, cst.SetComp) else element

    def bind_loop(self, target: cst.CSTNode, over: Term, loop: int, env: Environment) -> None:
        """Bind the targets of `for target in over`."""
        match over:
            case Call(callee="zip", receiver=None, arguments=lists) if isinstance(
                target, cst.Tuple
            ) and len(lists) == len(target.elements):
                for element, one in zip(target.elements, lists, strict=True):
                    self.bind_loop(element.value, one, loop, env)
            case Call(callee="enumerate", receiver=None, arguments=(of, *_)) if (
                isinstance(target, cst.Tuple) and len(target.elements) == 2
            ):
                self.assign(target.elements[0].value, Index(_listed(of), loop), env)
                self.bind_loop(target.elements[1].value, of, loop, env)
            case Call(callee="items", receiver=of) if (
                of is not None and isinstance(target, cst.Tuple) and len(target.elements) == 2
            ):
                self.assign(target.elements[0].value, Index(of, loop), env)
                self.assign(target.elements[1].value, Each(of, loop), env)
            case Arange(Fold("len", of)):
                self.assign(target, Index(of, loop), env)
            case Arange():
                self.assign(target, Index(over, loop), env)
            case Many(element, inner, own, None):
                self.assign(target, bounded(each_of(element, inner, own, loop)), env)
            case _:
                self.assign(target, Each(over, loop), env)

    def assign(self, target: cst.CSTNode, value: Term, env: Environment) -> None:
        raise NotImplementedError  # statements know about stores

    def _walrus(self, node: cst.NamedExpr, env: Environment) -> Term:
        value = self.lower(node.value, env)
        self.assign(node.target, value, env)
        return value

    def _format(self, node: cst.FormattedString, env: Environment) -> Term:
        parts = [
            self.lower(p.expression, env)
            for p in node.parts
            if isinstance(p, cst.FormattedStringExpression)
        ]
        return Call("format", None, tuple(parts))

    def _literal(self, node: Any, env: Environment) -> Term:
        text = node.value
        if text.isdigit() and (text == "0" or text[0] != "0"):
            return Literal(int(text))
        if _PLAIN.fullmatch(text):
            return Literal(text[1:-1])
        try:
            return Literal(ast.literal_eval(text))
        except (ValueError, SyntaxError):
            return Opaque("a literal that cannot be read")

    def _inner(self, node: Any, env: Environment) -> Term:
        return self.lower(node.expression, env)

    def _yield(self, node: cst.Yield, env: Environment) -> Term:
        if node.value is not None:
            value = (
                self.lower(node.value, env)
                if isinstance(node.value, cst.BaseExpression)
                else self.lower(node.value.item, env)
            )
            self.body.roots.append(Root(value, self.place(node), self.where))
        return Opaque("what a generator is sent")

    def _lambda(self, node: cst.Lambda, env: Environment) -> Term:
        local = dict(env)
        for p in node.params.params:
            local[p.name.value] = Opaque("a parameter of a lambda")
        return Call("lambda", None, (self.lower(node.body, local),))


def _listed(of: Term) -> Term:
    match of:
        case Call(callee="zip", receiver=None, arguments=(first, *_)):
            return first
        case Arange(Fold("len", inner)):
            return inner
    return of


def _is_whole(node: cst.CSTNode) -> bool:
    """`:` or `None`: an axis that is kept or added."""
    match node:
        case cst.Slice(lower=None, upper=None, step=None):
            return True
        case cst.Index(value=cst.Name(value="None")):
            return True
        case cst.Index(value=cst.Ellipsis()):
            return True
    return False


_PLAIN = re.compile(r"\"[^\"\\\n]*\"|'[^'\\\n]*'")
_BUILTINS = frozenset(dir(__import__("builtins")))
_HANDLERS: dict[type, Callable[[Expressions, Any, Environment], Term]] = {
    cst.Name: Expressions._name,
    cst.Attribute: Expressions._attribute,
    cst.Subscript: Expressions._subscript,
    cst.Call: Expressions._call,
    cst.BinaryOperation: Expressions._binary,
    cst.UnaryOperation: Expressions._unary,
    cst.BooleanOperation: Expressions._boolean,
    cst.Comparison: Expressions._comparison,
    cst.IfExp: Expressions._conditional,
    cst.Tuple: Expressions._sequence,
    cst.List: Expressions._sequence,
    cst.Set: Expressions._sequence,
    cst.Dict: Expressions._dict,
    cst.ListComp: Expressions.comprehension,
    cst.GeneratorExp: Expressions.comprehension,
    cst.SetComp: Expressions.comprehension,
    cst.DictComp: Expressions.comprehension,
    cst.NamedExpr: Expressions._walrus,
    cst.FormattedString: Expressions._format,
    cst.Integer: Expressions._literal,
    cst.Float: Expressions._literal,
    cst.SimpleString: Expressions._literal,
    cst.Await: Expressions._inner,
    cst.Yield: Expressions._yield,
    cst.Lambda: Expressions._lambda,
}
