"""One definition to its facts: one forward pass, no fixed point.

Each definition is parsed by libcst alone, when somebody asks for it. A loop is passed
once: what it adds up is `Running` inside and a sum after it, what it appends is a `Many`.
"""

from typing import Any

import libcst as cst

from kvlint.analysis.blocks import (
    always_ends,
    augmented,
    become,
    ends_turn,
    fields_written,
    grow,
    merge,
    raises,
)
from kvlint.analysis.bodies import Body, Guard, Mark, Place, Root, Store, Where
from kvlint.analysis.expressions import Environment, Expressions
from kvlint.analysis.forms import part
from kvlint.analysis.outline import Definition, Outline
from kvlint.analysis.parse import parse
from kvlint.analysis.showing import path_of
from kvlint.analysis.spans import places
from kvlint.analysis.terms import (
    Call,
    Choice,
    Field,
    Fold,
    Item,
    Literal,
    Many,
    Mapping,
    Not,
    Opaque,
    Operation,
    Parameter,
    Running,
    Sequence,
    Term,
    This,
    bounded,
)

# What a local's name says something about; of other values it is told elsewhere.
_NAMED = Item | Call | Operation | Choice | Many | Mapping | Sequence
_MOST_NESTED_RUNS = 32
_TERMINATING = (cst.Raise, cst.Return, cst.Continue, cst.Break)


def lower(outline: Outline, definition: Definition) -> Body:
    """Raises `cst.ParserSyntaxError` where libcst cannot read what `ast` could.

    The tree is dropped: the few bodies whose places are asked for are lowered once more,
    and a mark is the number of the node in the order of lowering, the same each time.
    """
    body = Body(definition, places=lambda: places_of(outline, definition))
    _run(outline, body)
    return body


def _run(outline: Outline, body: Body) -> tuple[cst.Module, int, list[cst.CSTNode]]:
    """Lower into `body`: the tree, by how many lines it lies off, the marked nodes."""
    definition = body.definition
    text = outline.text(definition)
    offset = definition.first_line - 1
    indented = text[:1] in (" ", "\t")  # a form feed before `def` counts as a column
    if indented:
        text, offset = "if 1:\n" + text, offset - 1
    module = parse(text if text.endswith("\n") else text + "\n")
    statement: Any = module.body[0]
    if indented:
        statement = statement.body.body[0]
    statements = _Statements(outline, body)
    if isinstance(statement, cst.FunctionDef):
        statements.function(statement)
    return module, offset, statements.nodes


def places_of(outline: Outline, definition: Definition) -> dict[Mark, Place]:
    """Where the marks of a definition's body stand; it is lowered once more for it."""
    module, offset, nodes = _run(outline, Body(definition))
    try:
        found = places(module)
    except RecursionError:
        return {}  # the definition's first line has to do
    result: dict[Mark, Place] = {}
    for mark, node in enumerate(nodes):
        if id(node) in found:
            line, column, end_line, end_column = found[id(node)]
            result[mark] = (line + offset, column, end_line + offset, end_column)
    return result


class _Statements(Expressions):
    def __init__(self, outline: Outline, body: Body) -> None:
        super().__init__(outline, body)
        self._blocks = 0
        self._order = 0
        self._heads: set[str] = set()  # names that a path in an environment starts with
        self._procedures: dict[Term, cst.FunctionDef] = {}
        self._nested_runs = 0
        self._assigned: set[str] = set()
        self._depth = 0

    # -- definitions

    def function(self, node: cst.FunctionDef) -> None:
        definition = self.body.definition
        env: Environment = {name: Parameter(definition.key, name) for name in definition.parameters}
        for star in (node.params.star_arg, node.params.star_kwarg):
            if isinstance(star, cst.Param):
                env[star.name.value] = Parameter(definition.key, star.name.value)
        if definition.receives:
            env[definition.receives] = This(definition.owner)
        self.block(node.body, env)

    def _nested(self, node: cst.FunctionDef, env: Environment) -> None:
        """A nested function shares the names around it; its own parameters are its own."""
        if self._depth > 3:
            return
        key = f"{self.body.definition.key}.{node.name.value}"
        local = dict(env)
        listed = [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]
        for parameter in listed:
            local[parameter.name.value] = Parameter(key, parameter.name.value)
        kept, returns = self.where, len(self.body.returns)
        self._depth += 1
        self.where = Where((*kept.block, self._new_block()), kept.order, kept.loops)
        self.block(node.body, local)
        self._depth -= 1
        self.where = kept
        del self.body.returns[returns:]
        named = Opaque(f"the nested function {node.name.value}")
        env[node.name.value] = named
        self._procedures[named] = node

    def _run_nested(self, call: Term, env: Environment) -> None:
        """A nested function that is called as a statement: what it appends to the lists around
        it is there afterwards. All else it does is told once, where it stands."""
        if not isinstance(call, Call) or call.receiver not in self._procedures:
            return
        if self._depth > 3 or self._nested_runs >= _MOST_NESTED_RUNS:
            return
        self._nested_runs += 1
        node = self._procedures[call.receiver]
        listed = [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]
        names = [parameter.name.value for parameter in listed]
        given = dict(zip(names, call.arguments, strict=False)) | dict(call.keywords)
        local = {**env, **{name: given.get(name, Opaque(f"default of {name}")) for name in names}}
        body, kept, assigned = self.body, self.where, self._assigned
        told: list[list[Any]] = [body.roots, body.calls, body.stores, body.guards, body.returns]
        lengths = [len(facts) for facts in told]
        self._assigned = set(names)
        self._depth += 1
        self.block(node.body, local)
        self._depth -= 1
        for facts, length in zip(told, lengths, strict=True):
            del facts[length:]
        own, self._assigned, self.where = self._assigned, assigned, kept
        env.update((name, local[name]) for name in env if name not in own and name in local)

    # -- statements

    def block(self, node: Any, env: Environment) -> bool:
        """Run the statements; True when control never comes to the end."""
        for statement in node.body:
            self._order += 1
            self.where = Where(self.where.block, self._order, self.where.loops)
            if type(statement) is cst.SimpleStatementLine:
                for small in statement.body:
                    self._small(small, env)
                    if type(small) in _TERMINATING:
                        return True
            elif type(node) is cst.SimpleStatementSuite:
                self._small(statement, env)
                if type(statement) in _TERMINATING:
                    return True
            elif self._compound(statement, env):
                return True
        return False

    def _compound(self, node: Any, env: Environment) -> bool:
        handler = _COMPOUND.get(type(node))
        return bool(handler(self, node, env)) if handler else False

    def _with(self, node: cst.With, env: Environment) -> bool:
        for with_item in node.items:
            value = self.lower(with_item.item, env)
            self._root(value, with_item.item)
            if with_item.asname is not None:
                self.assign(with_item.asname.name, value, env)
        return self.block(node.body, env)

    def _small(self, node: Any, env: Environment) -> None:
        handler = _SMALL.get(type(node))
        if handler:
            handler(self, node, env)

    def _assignment(self, node: cst.Assign, env: Environment) -> None:
        term = self._value(node.value, env)
        for target in node.targets:
            self.assign(target.target, term, env)

    def _annotated(self, node: cst.AnnAssign, env: Environment) -> None:
        if node.value is not None:
            self.assign(node.target, self._value(node.value, env), env)

    def _return(self, node: cst.Return, env: Environment) -> None:
        value = node.value
        term = self._value(value, env) if value is not None else Literal(None)
        self.body.returns.append(Root(term, self.place(value or node), self.where))

    def _expression(self, node: cst.Expr, env: Environment) -> None:
        term = self.lower(node.value, env)
        if not self._appends(term, node.value, env):
            self._root(term, node.value)
            self._run_nested(term, env)

    def _assertion(self, node: cst.Assert, env: Environment) -> None:
        self._guard(self._test(node.test, env), node, raises=True)

    def _value(self, node: cst.BaseExpression, env: Environment) -> Term:
        term = self.lower(node, env)
        self._root(term, node)
        return term

    def _test(self, node: cst.BaseExpression, env: Environment) -> Term:
        self.testing = True
        term = self.lower(node, env)
        self.testing = False
        return term

    def _root(self, term: Term, node: cst.CSTNode) -> None:
        self.body.roots.append(Root(term, self.place(node), self.where))

    def assign(self, target: cst.CSTNode, value: Term, env: Environment) -> None:
        match target:
            case cst.Name(value=name):
                if name in self._heads:
                    for path in [p for p in env if p.startswith((f"{name}.", f"{name}["))]:
                        del env[path]
                env[name] = value
                self._assigned.add(name)
                if isinstance(value, _NAMED):
                    self.body.names.setdefault(value, name)
                if isinstance(value, Item | Call | Operation | Choice | Literal):
                    self.body.assigned.setdefault(value, (name, self.place(target)))
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                self._unpack(elements, value, env)
            case cst.StarredElement(value=inner):
                self.assign(inner, value, env)
            case cst.Attribute(value=of_node, attr=attr):
                of = self.lower(of_node, env)
                self._store(of, attr.value, None, value, target)
                held = path_of(Field(of, attr.value))
                if held:
                    self._hold(held, value, env)
            case cst.Subscript():
                self._assign_item(target, value, env)

    def _hold(self, path: str, value: Term, env: Environment) -> None:
        self._heads.add(path.partition(".")[0].partition("[")[0])
        env[path] = value

    def _unpack(self, elements: Any, value: Term, env: Environment) -> None:
        starred = any(isinstance(e, cst.StarredElement) for e in elements)
        for number, element in enumerate(elements):
            if starred:
                # `first, *rest = xs` takes an entry of a list
                term: Term = (
                    Item(value, Literal(number))
                    if not isinstance(element, cst.StarredElement)
                    else value
                )
                if isinstance(term, Item):
                    self.body.spans.setdefault(term, []).append((self.place(element), self.where))
            else:
                term = part(value, number)
            self.assign(element.value, term, env)

    def _assign_item(self, target: cst.Subscript, value: Term, env: Environment) -> None:
        of = self.lower(target.value, env)
        keys = [
            self.lower(e.slice.value, env) if isinstance(e.slice, cst.Index) else Opaque("a slice")
            for e in target.slice
        ]
        key = keys[0] if len(keys) == 1 else Sequence(tuple(keys))
        match target.value, of:
            case cst.Attribute(value=inner, attr=attr), _:
                # The field, whatever stood in it before.
                self._store(self.lower(inner, env), attr.value, key, value, target)
            case _, Field(owner, name) | Item(Field(owner, name), _):
                self._store(owner, name, key, value, target)
            case _ if isinstance(target.value, cst.Attribute):
                # What the field holds since is known, yet it is the field's all the same.
                owner = self.lower(target.value.value, env)
                self._store(owner, target.value.attr.value, key, value, target)
        path = path_of(Item(of, key))
        if path:
            self._hold(path, value, env)
        if len(keys) == 2 and isinstance(keys[1], Literal):
            # array[:, k] = value: column k of a descriptor array
            self.body.roots.append(
                Root(Call("column", None, (of, keys[1], value)), self.place(target), self.where)
            )

    def _store(
        self, of: Term, name: str, key: Term | None, value: Term, node: cst.CSTNode,
        appended: bool = False,
    ) -> None:  # fmt: skip
        place = self.place(node)
        self.body.stores.append(Store(of, name, key, value, place, self.where, appended))

    def _augment(self, node: cst.AugAssign, env: Environment) -> None:
        value = self._value(node.value, env)
        added = isinstance(node.operator, cst.AddAssign)
        old = self.lower(node.target, env) if not isinstance(node.target, cst.Tuple) else None
        if isinstance(node.target, cst.Name) and self.where.loops and added:
            name = node.target.value
            current = env.get(name)
            if isinstance(current, Running):
                self.body.running.setdefault((name, current.loop), []).append(value)
                return
        if old is None:
            return
        if added and isinstance(node.target, cst.Attribute):
            of = self.lower(node.target.value, env)
            self._store(of, node.target.attr.value, None, value, node, appended=True)
            return
        symbol = "+" if added else "*" if isinstance(node.operator, cst.MultiplyAssign) else "?"
        self.assign(node.target, bounded(Operation(symbol, old, value)), env)

    def _appends(self, term: Term, node: cst.BaseExpression, env: Environment) -> bool:
        match term:
            case Call(callee="append" | "extend" | "add" as verb, arguments=(value,)) if isinstance(
                node, cst.Call
            ) and isinstance(node.func, cst.Attribute):
                target = node.func.value
                old = self.lower(target, env)
                self._root(value, node)
                grown = value
                for loop in reversed(self._loops_since(old)):
                    grown = Many(grown, self.body.loops[loop].over, loop)
                if isinstance(target, cst.Name):
                    env[target.value] = bounded(grow(old, grown, verb))
                elif isinstance(target, cst.Attribute):
                    of = self.lower(target.value, env)
                    self._store(of, target.attr.value, None, grown, node, appended=True)
                    path = path_of(Field(of, target.attr.value))
                    if path and path in env:
                        env[path] = bounded(grow(old, grown, verb))
                elif isinstance(target, cst.Subscript) and isinstance(old, Item):
                    match old.of:
                        case Field(owner, name):
                            self._store(owner, name, old.key, grown, node, appended=True)
                return True
        return False

    def _loops_since(self, _old: Term) -> tuple[int, ...]:
        return self.where.loops

    # -- control flow

    def _new_block(self) -> int:
        self._blocks += 1
        return self._blocks

    def _guard(
        self, condition: Term, node: cst.CSTNode, *, raises: bool, turn: bool = False
    ) -> None:
        """`condition` holds from here on; inside a loop, for each element after it."""
        place = self.place(node)
        self.body.guards.append(Guard(condition, place, self.where, raises, turn))

    def _enter(self, env: Environment, condition: Term | None, node: cst.CSTNode) -> Where:
        kept = self.where
        self._order += 1
        self.where = Where((*kept.block, self._new_block()), self._order, kept.loops)
        if condition is not None:
            self._guard(condition, node, raises=False)
        return kept

    def _if(self, node: cst.If, env: Environment) -> bool:
        test = self._test(node.test, env)
        then_env, else_env = dict(env), dict(env)
        kept = self._enter(then_env, test, node.test)
        then_ends = self.block(node.body, then_env)
        self.where = kept
        else_ends = False
        if node.orelse is not None:
            kept = self._enter(else_env, Not(test), node.test)
            if isinstance(node.orelse, cst.If):
                else_ends = self._if(node.orelse, else_env)
            else:
                else_ends = self.block(node.orelse.body, else_env)
            self.where = kept
        self._order += 1
        self.where = Where(kept.block, self._order, kept.loops)
        if then_ends and not else_ends:
            turn = ends_turn(node.body)
            self._guard(Not(test), node.test, raises=raises(node.body), turn=turn)
            become(env, else_env)
        elif else_ends and not then_ends:
            self._guard(test, node.test, raises=True)
            become(env, then_env)
        else:
            merge(env, test, then_env, else_env)
        return then_ends and else_ends

    def _for(self, node: cst.For, env: Environment) -> None:
        over = self._value(node.iter, env)
        loop = self.new_loop(over, node.iter)
        self._loop_body(node, over, loop, env)

    def _while(self, node: cst.While, env: Environment) -> None:
        test = self._test(node.test, env)
        kept = self._enter(env, test, node.test)
        self._running(node.body, env, -1)
        self.block(node.body, env)
        self.where = kept
        self._settle(env, -1, None)

    def _loop_body(self, node: cst.For, over: Term, loop: int, env: Environment) -> None:
        outer = self.where
        self._order += 1
        self.where = Where((*outer.block, self._new_block()), self._order, (*outer.loops, loop))
        first_guard = len(self.body.guards)
        before = dict(env)
        self._running(node.body, env, loop)
        self.bind_loop(node.target, over, loop, env)
        self.block(node.body, env)
        inner = self.where
        self._order += 1
        self.where = Where(outer.block, self._order, outer.loops)
        for guard in self.body.guards[first_guard:]:
            # What is checked at each turn, not under a further condition, holds for all.
            if (
                guard.where.loops == inner.loops
                and guard.where.block == inner.block
                and not guard.turn
            ):
                condition = Fold("all", Many(guard.condition, over, loop))
                self.body.guards.append(
                    Guard(bounded(condition), guard.place, self.where, guard.raises)
                )
        self._settle(env, loop, before)
        if node.orelse is not None:
            self.block(node.orelse.body, env)

    def _running(self, block: Any, env: Environment, loop: int) -> None:
        for name in augmented(block):
            if name in env and not isinstance(env[name], Sequence | Many):
                env[name] = Running(name, loop)
        for path in fields_written(block):
            # What a turn reads is what an earlier turn left there, not what stood before.
            env.pop(path, None)

    def _settle(self, env: Environment, loop: int, before: Environment | None) -> None:
        for name, value in list(env.items()):
            if isinstance(value, Running) and value.loop == loop:
                added = self.body.running.get((name, loop), [])
                start = before.get(name) if before else None
                if len(added) == 1 and start is not None:
                    total = Fold("sum", Many(added[0], self.body.loops[loop].over, loop))
                    env[name] = bounded(Operation("+", start, total))
                else:
                    env[name] = Opaque(f"{name} is added to in a loop")

    def _try(self, node: Any, env: Environment) -> bool:
        kept = self._enter(env, None, node)
        ends = self.block(node.body, env)
        self.where = kept
        for handler in node.handlers:
            local = dict(env)
            kept = self._enter(local, None, handler)
            if not self.block(handler.body, local):
                merge(env, Opaque("an exception"), dict(env), local)
            self.where = kept
        if node.orelse is not None:
            kept = self._enter(env, None, node)
            ends = self.block(node.orelse.body, env) or ends
            self.where = kept
        self._order += 1
        self.where = Where(kept.block, self._order, kept.loops)
        if node.finalbody is not None:
            self.block(node.finalbody.body, env)
        return ends and all(always_ends(h.body) for h in node.handlers)

    def _match(self, node: cst.Match, env: Environment) -> None:
        self.lower(node.subject, env)
        for case in node.cases:
            local = dict(env)
            kept = self._enter(local, None, case)
            self.block(case.body, local)
            self.where = kept
            merge(env, Opaque("a match"), local, dict(env))


# By the node's own type: libcst's classes are abstract bases, and asking each one costs more
# than what is done then.
_COMPOUND: dict[type, Any] = {
    cst.If: _Statements._if,
    cst.For: _Statements._for,
    cst.While: _Statements._while,
    cst.With: _Statements._with,
    cst.Try: _Statements._try,
    cst.TryStar: _Statements._try,
    cst.FunctionDef: _Statements._nested,
    cst.Match: _Statements._match,
}
_SMALL: dict[type, Any] = {
    cst.Assign: _Statements._assignment,
    cst.AnnAssign: _Statements._annotated,
    cst.AugAssign: _Statements._augment,
    cst.Return: _Statements._return,
    cst.Expr: _Statements._expression,
    cst.Assert: _Statements._assertion,
}
