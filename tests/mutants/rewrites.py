"""Rewrites that keep what code does, as libcst transformers.

Each is a function from module to module. Where it finds nothing to rewrite it gives back
code that reads as before, and the test that asked for it fails.
"""

# ruff: noqa: N802 (libcst names its hooks after its nodes)

from collections.abc import Callable, Sequence

import libcst as cst
import libcst.matchers as m

from kvlint.analysis.vocabulary import apis, nouns, words

Rewrite = Callable[[cst.Module], cst.Module]


# -- names


def rename(module: cst.Module) -> cst.Module:
    """Locals, functions, methods and classes get names that say nothing.

    A name with a noun of the vocabulary keeps it: the words of the field are what kvlint
    reads. Parameters and fields stay.
    """
    names = _Names()
    module.visit(names)
    free = sorted(n for n in names.own - names.parameters if not _speaks(n))
    return module.visit(_Rename({old: f"zq{number}" for number, old in enumerate(free)}))


def _speaks(name: str) -> bool:
    vocabulary = nouns()
    fields = (getattr(vocabulary, slot) for slot in vocabulary.__dataclass_fields__)
    known = {word for field in fields for word in field}
    known |= set(apis().quantities) | set(apis().transports) | set(apis().sends)
    known |= {"start", "starts", "end", "ids", "idx", "indices", "id", "i"}
    return name.startswith("__") or name in known or bool(set(words(name)) & known)


class _Names(m.MatcherDecoratableVisitor):
    """Names that a module gives away itself."""

    def __init__(self) -> None:
        super().__init__()
        self.own: set[str] = set()
        self.parameters: set[str] = set()

    @m.visit(m.FunctionDef() | m.ClassDef())
    def _defined(self, node) -> None:
        self.own.add(node.name.value)

    @m.visit(m.AssignTarget(target=m.Name()) | m.CompFor(target=m.Name()) | m.For(target=m.Name()))
    def _bound(self, node) -> None:
        self.own.add(node.target.value)

    @m.visit(m.For(target=m.Tuple()) | m.CompFor(target=m.Tuple()))
    def _unpacked(self, node) -> None:
        self.own |= {e.value.value for e in node.target.elements if m.matches(e.value, m.Name())}

    @m.visit(m.Param() | m.AnnAssign())
    def _kept(self, node) -> None:
        target = node.name if isinstance(node, cst.Param) else node.target
        if isinstance(target, cst.Name):
            self.parameters.add(target.value)

    @m.visit(m.AssignTarget(target=m.Attribute()))
    def _field(self, node) -> None:
        self.parameters.add(node.target.attr.value)

    @m.visit(m.Attribute())
    def _foreign(self, node) -> None:
        if not m.matches(node.value, m.Name("self")):
            self.parameters.add(node.attr.value)


class _Rename(cst.CSTTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self.names = names

    def leave_Name(self, original_node, updated_node):
        new = self.names.get(updated_node.value)
        return updated_node.with_changes(value=new) if new else updated_node

    def leave_Arg(self, original_node, updated_node):
        # A keyword names a parameter or a field of a dataclass, which stay.
        return updated_node.with_changes(keyword=original_node.keyword)


def alias_imports(module: cst.Module) -> cst.Module:
    """`import numpy as np` -> `import numpy as zqnp`, `from m import f` -> `... f as zqf`."""
    found = _Imports()
    renamed = module.visit(found)
    return renamed.visit(_Rename(found.names))


class _Imports(cst.CSTTransformer):
    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}

    def leave_ImportAlias(self, original_node, updated_node):
        bound = updated_node.evaluated_alias or updated_node.evaluated_name
        self.names[bound] = f"zq{bound}"
        # Not a name of this module: kept apart from the uses, which are renamed next.
        name = cst.AsName(cst.Name(f"zq{bound}"))
        return updated_node.with_changes(asname=name)


# -- calls


def keyword_for_position(module: cst.Module) -> cst.Module:
    """Arguments of functions, methods and classes of this module are given by name."""
    table = _Signatures()
    module.visit(table)
    return module.visit(_Keywords(table.parameters))


class _Signatures(cst.CSTVisitor):
    """Function, method or class -> names of its parameters, without self."""

    def __init__(self) -> None:
        super().__init__()
        self.parameters: dict[str, list[str]] = {}
        self._classes: list[str] = []
        self._around = 0  # functions that the one looked at stands in

    def visit_ClassDef(self, node) -> None:
        self._classes.append(node.name.value)
        fields = [s.body[0].target.value for s in node.body.body if _is_field(s)]
        self.parameters.setdefault(node.name.value, fields)

    def leave_ClassDef(self, original_node) -> None:
        self._classes.pop()

    def visit_FunctionDef(self, node) -> None:
        listed = [p.name.value for p in node.params.params]
        if self._classes and not self._around:
            listed = listed[1:]
        self._around += 1
        name = node.name.value
        self.parameters[self._classes[-1] if name == "__init__" else name] = listed

    def leave_FunctionDef(self, original_node) -> None:
        self._around -= 1


def _is_field(statement: cst.BaseStatement) -> bool:
    return m.matches(statement, m.SimpleStatementLine([m.AnnAssign(target=m.Name(), value=None)]))


class _Keywords(cst.CSTTransformer):
    def __init__(self, parameters: dict[str, list[str]]) -> None:
        super().__init__()
        self.parameters = parameters

    def leave_Call(self, original_node, updated_node):
        match updated_node.func:
            case (
                cst.Name(value=name)
                | cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name))
            ):
                names = self.parameters.get(name)
            case _:
                return updated_node
        if names is None or any(a.star for a in updated_node.args):
            return updated_node
        tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        args = [
            a if a.keyword else a.with_changes(keyword=cst.Name(names[n]), equal=tight)
            for n, a in enumerate(updated_node.args)
        ]
        return updated_node.with_changes(args=args)


def inline_helpers(module: cst.Module) -> cst.Module:
    """A function or method that is one `return`, or one statement, stands where it was called.

    Arguments are put in for parameters; the helper goes.
    """
    helpers = _Helpers()
    module.visit(helpers)
    return module.visit(_Inline(helpers.found))


class _Helpers(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, tuple[list[str], cst.CSTNode]] = {}

    def visit_FunctionDef(self, node) -> bool:
        body = [s for s in node.body.body if not m.matches(s, _DOCSTRING)]
        names = [p.name.value for p in node.params.params]
        if len(body) == 1 and node.name.value not in ("__init__", "__post_init__"):
            if m.matches(body[0], m.SimpleStatementLine([m.Return(~m.MatchIfTrue(_is_none))])):
                if m.findall(node, m.Call(func=m.Attribute(value=m.Name("self")))):
                    return False
                self.found[node.name.value] = (names, body[0].body[0].value)
            elif m.matches(body[0], m.If()) and not m.findall(body[0], m.Return()):
                self.found[node.name.value] = (names, body[0])
        return False


def _is_none(node: object) -> bool:
    return node is None


_DOCSTRING = m.SimpleStatementLine([m.Expr(m.SimpleString())])


class _Inline(cst.CSTTransformer):
    def __init__(self, helpers: dict[str, tuple[list[str], cst.CSTNode]]) -> None:
        super().__init__()
        self.helpers = helpers
        self.used: set[str] = set()

    def _body(self, call: cst.Call) -> cst.CSTNode | None:
        values: list[cst.BaseExpression] = [a.value for a in call.args]
        match call.func:
            case cst.Name(value=name):
                names, body = self.helpers.get(name, ([], None))
            case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
                names, body = self.helpers.get(name, ([], None))
                values = [owner, *values]
            case _:
                return None
        if body is None:
            return None
        self.used.add(name)
        given = dict(zip(names, values, strict=False))
        given |= {a.keyword.value: a.value for a in call.args if a.keyword}
        return body.visit(_PutIn(given))

    def leave_Call(self, original_node, updated_node):
        body = self._body(updated_node)
        if not isinstance(body, cst.BaseExpression):
            return updated_node
        return _bracketed(body)

    def leave_SimpleStatementLine(self, original_node, updated_node):
        if m.matches(updated_node, m.SimpleStatementLine([m.Expr(m.Call())])):
            body = self._body(updated_node.body[0].value)
            if isinstance(body, cst.If):
                return body.with_changes(leading_lines=updated_node.leading_lines)
        return updated_node

    def leave_FunctionDef(self, original_node, updated_node):
        return cst.RemoveFromParent() if original_node.name.value in self.helpers else updated_node


class _PutIn(cst.CSTTransformer):
    def __init__(self, given: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.given = given

    def leave_Name(self, original_node, updated_node):
        value = self.given.get(updated_node.value)
        return updated_node if value is None else _bracketed(value)

    def leave_Attribute(self, original_node, updated_node):
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node, updated_node):
        return updated_node.with_changes(keyword=original_node.keyword)


def _bracketed(value: cst.BaseExpression) -> cst.BaseExpression:
    if value.lpar or not isinstance(
        value, cst.BinaryOperation | cst.IfExp | cst.Comparison | cst.BooleanOperation
    ):
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


# -- statements


class _Blocks(cst.CSTTransformer):
    """Rewrites the statements of each block, innermost first."""

    def statements(self, body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        raise NotImplementedError

    def leave_IndentedBlock(self, original_node, updated_node):
        return updated_node.with_changes(body=self.statements(list(updated_node.body)))


def _line(small: cst.BaseSmallStatement, like: cst.BaseStatement | None = None):
    if isinstance(like, cst.SimpleStatementLine):
        return like.with_changes(body=[small])
    return cst.SimpleStatementLine([small])


def _assign(name: str, value: cst.BaseExpression) -> cst.Assign:
    return cst.Assign([cst.AssignTarget(cst.Name(name))], value)


def loop_to_comprehension(module: cst.Module) -> cst.Module:
    """`xs = []` and a loop that only appends to it -> one comprehension."""
    return module.visit(_ToComprehension())


class _ToComprehension(_Blocks):
    def statements(self, body):
        for number, statement in enumerate(body):
            if not m.matches(statement, m.SimpleStatementLine([_EMPTY_LIST])):
                continue
            name = statement.body[0].targets[0].target.value
            for later in range(number + 1, len(body)):
                made = _comprehension(body[later], name)
                if made is not None:
                    line = _line(_assign(name, made))
                    rest = [s for n, s in enumerate(body) if n not in (number, later)]
                    rest.insert(later - 1, line)
                    return self.statements(rest)
        return body


_EMPTY_LIST = m.Assign(targets=[m.AssignTarget(m.Name())], value=m.List([]))


def _comprehension(statement: cst.BaseStatement, name: str) -> cst.ListComp | None:
    """`for a in b: for c in d: name.append(e)` as `[e for a in b for c in d]`."""
    loops: list[cst.For] = []
    while m.matches(statement, m.For(orelse=None)) and len(statement.body.body) == 1:
        loops.append(statement)
        statement = statement.body.body[0]
    append = m.Call(func=m.Attribute(m.Name(name), m.Name("append")), args=[m.Arg()])
    if not loops or not m.matches(statement, m.SimpleStatementLine([m.Expr(append)])):
        return None
    clause: cst.CompFor | None = None
    for loop in reversed(loops):
        before = cst.SimpleWhitespace(" ")
        clause = cst.CompFor(loop.target, loop.iter, inner_for_in=clause, whitespace_before=before)
    return cst.ListComp(statement.body[0].value.args[0].value, clause)


def comprehension_to_loop(module: cst.Module) -> cst.Module:
    """`xs = [...]`, and a comprehension that is returned, as a loop that appends."""
    return module.visit(_ToLoop())


class _ToLoop(_Blocks):
    def statements(self, body):
        result = []
        for statement in body:
            name = None
            if m.matches(statement, m.SimpleStatementLine([_NAMED_COMPREHENSION])):
                name = statement.body[0].targets[0].target.value
            elif m.matches(statement, m.SimpleStatementLine([m.Return(m.ListComp())])):
                name = "zqlist"
            if name is None:
                result.append(statement)
                continue
            result += [_line(_assign(name, cst.List([]))), _loop(statement.body[0].value, name)]
            if name == "zqlist":
                result.append(_line(cst.Return(cst.Name(name))))
        return result


_NAMED_COMPREHENSION = m.Assign(targets=[m.AssignTarget(m.Name())], value=m.ListComp())


def _loop(node: cst.ListComp, name: str) -> cst.For:
    func = cst.Attribute(cst.Name(name), cst.Name("append"))
    clauses, clause = [], node.for_in
    while clause is not None:
        clauses.append(clause)
        clause = clause.inner_for_in
    statement: cst.BaseStatement = _line(cst.Expr(cst.Call(func, [cst.Arg(node.elt)])))
    for clause in reversed(clauses):
        for test in reversed(clause.ifs):
            statement = cst.If(test.test, cst.IndentedBlock([statement]))
        statement = cst.For(clause.target, clause.iter, cst.IndentedBlock([statement]))
    return statement


def return_for_assert(module: cst.Module) -> cst.Module:
    """`assert good, why` -> `if not good: return`."""
    return module.visit(_Returns())


class _Returns(_Blocks):
    def statements(self, body):
        return [
            cst.If(_negated(s.body[0].test), cst.IndentedBlock([_line(cst.Return())]))
            if m.matches(s, m.SimpleStatementLine([m.Assert()]))
            else s
            for s in body
        ]


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    for old, new in ((cst.Is, cst.IsNot()), (cst.IsNot, cst.Is())):
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            only = test.comparisons[0]
            if isinstance(only.operator, old):
                return test.with_changes(comparisons=[only.with_changes(operator=new)])
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    return cst.UnaryOperation(cst.Not(), _bracketed(test))


def swap_branches(module: cst.Module) -> cst.Module:
    """`a if t else b` -> `b if not t else a`; `if t: A` -> `if not t: pass` and `else: A`."""
    return module.visit(_Swap())


class _Swap(cst.CSTTransformer):
    def leave_IfExp(self, original_node, updated_node):
        return updated_node.with_changes(
            test=_negated(updated_node.test), body=updated_node.orelse, orelse=updated_node.body
        )

    def leave_If(self, original_node, updated_node):
        if isinstance(updated_node.orelse, cst.If):
            return updated_node
        other = updated_node.orelse.body if updated_node.orelse else _pass()
        return updated_node.with_changes(
            test=_negated(updated_node.test), body=other, orelse=cst.Else(updated_node.body)
        )


def _pass() -> cst.IndentedBlock:
    return cst.IndentedBlock([_line(cst.Pass())])


def split_statement(module: cst.Module) -> cst.Module:
    """The first operand or argument that is no plain name gets a statement of its own."""
    return module.visit(_Split())


_SIMPLE = (cst.Name, cst.BaseNumber, cst.SimpleString, cst.BaseComp, cst.Lambda)


class _Split(_Blocks):
    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def statements(self, body):
        result = []
        for statement in body:
            found = self._part(statement)
            if found is None:
                result.append(statement)
                continue
            self.made += 1
            name = f"zqpart{self.made}"
            result.append(_line(_assign(name, found)))
            result.append(statement.deep_replace(found, cst.Name(name)))
        return result

    def _part(self, statement: cst.BaseStatement) -> cst.BaseExpression | None:
        if not isinstance(statement, cst.SimpleStatementLine):
            return None
        small = statement.body[0]
        if not isinstance(small, cst.Assign | cst.Return | cst.Expr):
            return None
        match small.value:
            case cst.BinaryOperation(left=left, right=right):
                parts = [left, right]
            case cst.Call(args=args):
                parts = [a.value for a in args]
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                parts = [e.value for e in elements]
            case _:
                return None
        first = next((p for p in parts if not isinstance(p, cst.Name | cst.BaseNumber)), None)
        return None if isinstance(first, _SIMPLE) else first


def walrus(module: cst.Module) -> cst.Module:
    """`x = value` and a use of x in the next statement -> the use binds x."""
    return module.visit(_Walrus())


class _Walrus(_Blocks):
    def statements(self, body):
        result, number = [], 0
        while number < len(body):
            joined = self._joined(body[number : number + 2])
            result.append(joined or body[number])
            number += 2 if joined else 1
        return result

    def _joined(self, pair: Sequence[cst.BaseStatement]) -> cst.BaseStatement | None:
        plain = m.SimpleStatementLine([m.Assign(targets=[m.AssignTarget(m.Name())])])
        if len(pair) != 2 or not m.matches(pair[0], plain):
            return None
        made, user = pair[0].body[0], pair[1]
        name = made.targets[0].target.value
        if isinstance(user, cst.SimpleStatementLine):
            small = user.body[0]
            place = small.value if isinstance(small, cst.Assign | cst.Return | cst.Expr) else None
        else:
            place = user.test if isinstance(user, cst.If) else None
        if place is None or m.findall(place, m.Lambda() | m.BaseComp()):
            return None
        uses = m.findall(place, m.Name(name))
        other = m.Arg(keyword=m.Name(name)) | m.Attribute(attr=m.Name(name))
        if not uses or m.findall(place, other):
            return None
        bound = cst.NamedExpr(
            cst.Name(name), made.value, lpar=[cst.LeftParen()], rpar=[cst.RightParen()]
        )
        return user.deep_replace(uses[0], bound)


# -- lists and arrays


def numpy_for_lists(module: cst.Module) -> cst.Module:
    """Folds and comparisons over lists are done on arrays."""
    changed = module.visit(_Arrays())
    if changed.deep_equals(module) or "import numpy as np" in module.code:
        return changed
    at = 1 if m.matches(changed.body[0], _DOCSTRING) else 0
    line = cst.parse_statement("import numpy as np")
    return changed.with_changes(body=[*changed.body[:at], line, *changed.body[at:]])


class _Arrays(cst.CSTTransformer):
    def leave_Call(self, original_node, updated_node):
        text = cst.Module([]).code_for_node
        match updated_node:
            case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=inner)]) if m.matches(
                inner, m.Call(func=m.Name("set"), args=[m.Arg()])
            ):
                return cst.parse_expression(f"len(np.unique({text(inner.args[0].value)}))")
            case cst.Call(func=cst.Name(value="min"), args=[cst.Arg(value=inner)]):
                made = _elementwise(inner)
                return cst.parse_expression(f"np.min({made})") if made else updated_node
            case cst.Call(func=cst.Name(value="any" | "all" as fold), args=[cst.Arg(value=inner)]):
                made = _elementwise(inner)
                return cst.parse_expression(f"({made}).{fold}()") if made else updated_node
        return updated_node

    def leave_ListComp(self, original_node, updated_node):
        made = _elementwise(updated_node)
        return cst.parse_expression(made) if made else updated_node


def _elementwise(node: cst.BaseExpression) -> str | None:
    """`x // y for x, y in zip(xs, ys)` as `np.array(xs) // np.array(ys)`; `x != xs[0] ...`."""
    if not isinstance(node, cst.GeneratorExp | cst.ListComp) or node.for_in.inner_for_in:
        return None
    text = cst.Module([]).code_for_node
    loop, element = node.for_in, node.elt
    names: dict[str, str] = {}
    if m.matches(loop.iter, m.Call(func=m.Name("zip"))) and isinstance(loop.target, cst.Tuple):
        lists = [a.value for a in loop.iter.args if a.keyword is None]
        for target, one in zip(loop.target.elements, lists, strict=True):
            names[text(target.value)] = f"np.array({text(one)})"
    elif isinstance(loop.target, cst.Name):
        names[loop.target.value] = f"np.array({text(loop.iter)})"
    if m.matches(element, m.BinaryOperation(m.Name(), m.FloorDivide(), m.Name())):
        left, right = names.get(text(element.left)), names.get(text(element.right))
        return f"{left} // {right}" if left and right else None
    comparison = m.Comparison(m.Name(), [m.ComparisonTarget(m.Equal() | m.NotEqual())])
    if m.matches(element, comparison):
        (target,) = element.comparisons
        left, sign = names.get(text(element.left)), type(target.operator)
        if left and not m.findall(target.comparator, m.Name(text(element.left))):
            return f"{left} {'==' if sign is cst.Equal else '!='} {text(target.comparator)}"
    return None


REWRITES: dict[str, Rewrite] = {
    "rename": rename,
    "inline": inline_helpers,
    "to-comprehension": loop_to_comprehension,
    "to-loop": comprehension_to_loop,
    "early-return": return_for_assert,
    "keyword": keyword_for_position,
    "alias": alias_imports,
    "split": split_statement,
    "numpy": numpy_for_lists,
    "walrus": walrus,
    "swap": swap_branches,
}
