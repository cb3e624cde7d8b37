"""Operators that take a guard away, or what was measured, as libcst transformers.

Each names the places where it applies; a mutant has one of them changed. What is left is
code that somebody could have written.
"""

# ruff: noqa: N802 (libcst names its hooks after its nodes)

from collections.abc import Callable

import libcst as cst
import libcst.matchers as m

Change = Callable[[cst.CSTNode], cst.CSTNode | cst.RemovalSentinel | None]


class Operator(cst.CSTTransformer):
    """Changes the place with number `wanted`, in source order; None changes nothing.

    `change` answers with the new node, or None where the operator does not apply. Nodes
    inside a place come before it, as libcst leaves them first.
    """

    name: str

    def __init__(self, wanted: int | None = None) -> None:
        super().__init__()
        self.wanted = wanted
        self.places = 0

    def change(self, node: cst.CSTNode) -> cst.CSTNode | cst.RemovalSentinel | None:
        raise NotImplementedError

    def on_leave(self, original_node, updated_node):
        updated_node = super().on_leave(original_node, updated_node)
        changed = self.change(updated_node) if isinstance(updated_node, cst.CSTNode) else None
        if changed is None:
            return updated_node
        self.places += 1
        return changed if self.places - 1 == self.wanted else updated_node


class DropRaise(Operator):
    """`if bad: raise ...` -> `if bad: pass`: the comparison is made and forgotten."""

    name = "drop-raise"

    def change(self, node):
        if not (m.matches(node, m.If(orelse=None)) and ends_in(node.body, m.Raise())):
            return None
        return node.with_changes(body=cst.IndentedBlock([cst.parse_statement("pass")]))


class DropIf(Operator):
    """`if bad: raise ...` or `if bad: return ...` -> nothing."""

    name = "drop-if"

    def change(self, node):
        if not (m.matches(node, m.If(orelse=None)) and ends_in(node.body, m.Raise() | m.Return())):
            return None
        return cst.parse_statement("pass")


class DropAssert(Operator):
    """`assert good` -> nothing."""

    name = "drop-assert"

    def change(self, node):
        return cst.Pass() if m.matches(node, m.Assert()) else None


class SetSize(Operator):
    """`len(set(xs)) != 1` -> False, `len(set(xs)) == 1` -> True: nothing is compared."""

    name = "set-size"

    _SET = (
        m.Call(func=m.Name("set"))
        | m.Set()
        | m.SetComp()
        | m.Call(func=m.Attribute(attr=m.Name("unique")))
    )
    _SIZE = m.Call(func=m.Name("len"), args=[m.Arg(_SET)])

    def change(self, node):
        for operator, verdict in (
            (m.NotEqual() | m.GreaterThan(), "False"),
            (m.Equal() | m.LessThanEqual(), "True"),
        ):
            target = m.ComparisonTarget(operator, m.Integer())
            if m.matches(node, m.Comparison(left=self._SIZE, comparisons=[target])):
                return cst.Name(verdict)
        return None


class MinFirst(Operator):
    """`min(x for ...)` -> `next(iter(x for ...))`, `min(xs)` -> `xs[0]`."""

    name = "min-first"

    def change(self, node):
        if not m.matches(node, m.Call(func=m.Name("min") | m.Attribute(attr=m.Name("min")))):
            return None
        values = [a for a in node.args if a.keyword is None]
        if isinstance(node.func, cst.Attribute) and not m.matches(node.func.value, m.Name("np")):
            return None if values else first_of(node.func.value)
        if len(values) != 1:
            return None  # the smaller of two numbers is no fold over regions
        value = values[0].value
        if not isinstance(value, cst.GeneratorExp):
            return first_of(value)
        entry = cst.Call(cst.Name("iter"), [cst.Arg(value)])
        default = [cst.Arg(a.value) for a in node.args if m.matches(a.keyword, m.Name("default"))]
        return cst.Call(cst.Name("next"), [cst.Arg(entry), *default])


class StartsStride(Operator):
    """Cumulative starts of `counts` -> `i * counts[0]`: an array, a list, or a running sum."""

    name = "starts-stride"

    _SHORT = m.Subscript(value=m.Name(), slice=[m.SubscriptElement(m.Slice(lower=None))])
    _CUMSUM = m.Call(
        func=m.Attribute(value=m.Name("np"), attr=m.Name("cumsum")),
        args=[m.Arg(m.List([m.Element(m.Integer("0")), m.StarredElement(_SHORT)]))],
    )
    _ACCUMULATE = m.List(
        [m.Element(m.Integer("0")), m.StarredElement(m.Call(m.Name("accumulate"), [m.Arg(_SHORT)]))]
    )

    _LOOP = m.For(target=m.Name(), iter=m.Name())

    def change(self, node):
        if m.matches(node, self._LOOP):
            changed = node.body.visit(_AddFirst(node.target.value, node.iter.value))
            return None if changed.deep_equals(node.body) else node.with_changes(body=changed)
        if m.matches(node, self._CUMSUM):
            counts = node.args[0].value.elements[1].value.value.value
            return cst.parse_expression(f"np.arange(len({counts})) * {counts}[0]")
        if m.matches(node, self._ACCUMULATE):
            counts = node.elements[1].value.args[0].value.value.value
            return cst.parse_expression(f"[i * {counts}[0] for i in range(len({counts}))]")
        return None


class _AddFirst(cst.CSTTransformer):
    """`start += count` -> `start += counts[0]`."""

    def __init__(self, element: str, whole: str) -> None:
        super().__init__()
        self.element = m.Name(element)
        self.first = cst.parse_expression(f"{whole}[0]")

    def leave_AugAssign(self, original_node, updated_node):
        added = m.AugAssign(operator=m.AddAssign(), value=self.element)
        return (
            updated_node.with_changes(value=self.first)
            if m.matches(updated_node, added)
            else updated_node
        )


class DropCount(Operator):
    """`prepare(..., num_slots=n)` -> `prepare(...)`: each region gets its own count again."""

    name = "drop-count"

    _NAMES = m.Name("num_slots") | m.Name("num_blocks") | m.Name("count")

    def change(self, node):
        if not isinstance(node, cst.Call):
            return None
        kept = [a for a in node.args if not m.matches(a, m.Arg(keyword=self._NAMES))]
        return node.with_changes(args=kept) if len(kept) < len(node.args) else None


# -- sizes


class Measured(Operator):
    """Puts something else in place of what is measured. Where a measure is compared it stays: a
    check is for other operators to take away."""

    def visit_Comparison(self, node: cst.Comparison) -> bool:
        return False


class ElementSize(Measured):
    """`x.element_size()`, `x.itemsize` or torch's `_element_size(dtype)` -> a number."""

    name = "element-size"
    size: int

    _SIZE = m.Attribute(attr=m.Name("itemsize")) | m.Call(
        func=m.Attribute(attr=m.Name("element_size") | m.Name("_element_size"))
    )

    def change(self, node):
        return cst.Integer(str(self.size)) if m.matches(node, self._SIZE) else None


class OneByte(ElementSize):
    size = 1


class TwoBytes(ElementSize):
    size = 2


class FourBytes(ElementSize):
    size = 4


class FixedWidth(Operator):
    """`row_bytes = n * size + scale_bytes` -> `row_bytes = 656`: the width of one layout."""

    name = "fixed-width"

    _NAME = m.Name(m.MatchRegex(r".*(bytes|width)"))
    _DERIVED = m.Assign(
        targets=[m.AssignTarget(_NAME | m.Attribute(attr=_NAME))],
        value=m.BinaryOperation(operator=m.Add()),
    )

    def change(self, node):
        return (
            node.with_changes(value=cst.Integer("656")) if m.matches(node, self._DERIVED) else None
        )


class DropRemainder(Operator):
    """`a % b == 0` -> True, `a % b != 0` -> False, `if a % b:` -> `if False:`."""

    name = "drop-remainder"

    _REST = m.BinaryOperation(operator=m.Modulo())

    def change(self, node):
        for operator, verdict in ((m.NotEqual(), "False"), (m.Equal(), "True")):
            nothing = m.ComparisonTarget(operator, m.Integer("0"))
            if m.matches(node, m.Comparison(left=self._REST, comparisons=[nothing])):
                return cst.Name(verdict)
        if m.matches(node, m.If(test=self._REST)):
            return node.with_changes(test=cst.Name("False"))
        return None


class CeilFloor(Operator):
    """`-(-a // b)` and `(a + b - 1) // b` -> `a // b`: what does not fill a page is lost."""

    name = "ceil-floor"

    _NEGATIVE = m.UnaryOperation(operator=m.Minus())
    _DOWN = m.BinaryOperation(operator=m.FloorDivide())
    _LESS_ONE = m.BinaryOperation(operator=m.Subtract(), right=m.Integer("1"))

    def change(self, node):
        if m.matches(node, m.UnaryOperation(m.Minus(), self._DOWN)):
            if m.matches(node.expression.left, self._NEGATIVE):
                return node.expression.with_changes(left=node.expression.left.expression)
        if m.matches(node, self._DOWN) and m.matches(node.left, self._LESS_ONE):
            total = node.left.left
            if m.matches(total, m.BinaryOperation(operator=m.Add())):
                if total.right.deep_equals(node.right):
                    return node.with_changes(left=total.left)
        return None


class StrideLength(Measured):
    """`x.stride(0)` -> `x[0].numel()`, `x.strides[0]` -> `x[0].nbytes`: rows lie edge to edge."""

    name = "stride-length"

    _FIRST = m.SubscriptElement(m.Index(m.Integer("0")))
    _ELEMENTS = m.Call(func=m.Attribute(attr=m.Name("stride")), args=[m.Arg(m.Integer("0"))])
    _BYTES = m.Subscript(value=m.Attribute(attr=m.Name("strides")), slice=[_FIRST])

    def change(self, node):
        if m.matches(node, self._ELEMENTS):
            return cst.Call(cst.Attribute(first_of(node.func.value), cst.Name("numel")))
        if m.matches(node, self._BYTES):
            return cst.Attribute(first_of(node.value.value), cst.Name("nbytes"))
        return None


class OwnFormula(Operator):
    """`count_pages(size, page)` -> `(size + page + 7) // page`: one class no longer asks the
    helper that counts for all."""

    name = "own-formula"

    _HELPER = m.Call(func=m.Name(m.MatchRegex("count_.*")), args=[m.Arg(), m.Arg()])

    def change(self, node):
        if not m.matches(node, self._HELPER):
            return None
        size, page = (cst.Module([]).code_for_node(arg.value) for arg in node.args)
        return cst.parse_expression(f"({size} + {page} + 7) // {page}")


OPERATORS = (
    *(DropRaise, DropIf, DropAssert, SetSize, MinFirst, StartsStride, DropCount),
    *(OneByte, TwoBytes, FourBytes, FixedWidth, DropRemainder, CeilFloor, StrideLength),
    OwnFormula,
)


def ends_in(block: cst.BaseSuite, last: m.BaseMatcherNode) -> bool:
    line = block.body[-1]
    small = line.body[-1] if isinstance(line, cst.SimpleStatementLine) else line
    return m.matches(small, last)


def first_of(value: cst.BaseExpression) -> cst.BaseExpression:
    return cst.parse_expression(f"{cst.Module([]).code_for_node(value)}[0]")


def count_places(module: cst.Module, operator: type[Operator]) -> int:
    counter = operator()
    module.visit(counter)
    return counter.places


def mutate(module: cst.Module, operator: type[Operator], number: int) -> str:
    return module.visit(operator(number)).code
