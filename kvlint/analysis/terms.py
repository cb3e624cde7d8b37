"""What code says before anyone knows its callers: immutable, hashable values.

A term is built once and compared by meaning; where it was written is kept beside it
(`Body.spans`), never in it. A term nobody can resolve is `Opaque` with the reason.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

MAX_SIZE = 1200  # nodes; what grows past it is no longer worth following


class Term:
    """Base of all terms. `size` counts nodes; the hash is computed once."""

    __match_args__: tuple[str, ...] = ()
    _hash: int
    _inner: tuple["Term", ...]
    size: int

    def __post_init__(self) -> None:
        parts = self._parts()
        object.__setattr__(self, "_hash", hash((type(self).__name__, *parts)))
        inner = tuple(_terms_in(parts))
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "size", 1 + sum(child.size for child in inner))

    def __hash__(self) -> int:
        return self._hash

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    def children(self) -> tuple["Term", ...]:
        return self._inner

    def walk(self) -> Iterator["Term"]:
        """This term and everything in it, outermost first."""
        stack: list[Term] = [self]
        while stack:
            term = stack.pop()
            yield term
            stack.extend(term._inner[::-1])

    def contains(self, test: "Term | Callable[[Term], bool]") -> bool:
        if isinstance(test, Term):
            wanted = test._hash
            return any(term._hash == wanted and term == test for term in self.walk())
        return any(test(term) for term in self.walk())


def _terms_in(parts: tuple[Any, ...]) -> Iterator[Term]:
    for part in parts:
        if isinstance(part, Term):
            yield part
        elif isinstance(part, tuple):
            yield from _terms_in(part)


@dataclass(frozen=True)
class Literal(Term):
    value: object

    def _parts(self) -> tuple[Any, ...]:
        return (type(self.value).__name__, self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._parts() == other._parts()

    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Parameter(Term):
    """A parameter of `function` (`path::qualified.name`)."""

    function: str
    name: str
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Global(Term):
    """A module-level or imported name, dotted and as resolved by the imports."""

    name: str
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class This(Term):
    """The object whose method this is; `owner` is `path::Class`."""

    owner: str
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Field(Term):
    of: Term
    name: str
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Item(Term):
    of: Term
    key: Term
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Slice(Term):
    of: Term
    lower: Term | None
    upper: Term | None
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Each(Term):
    """The element of `of` that loop `loop` looks at (`loop`: line of the loop)."""

    of: Term
    loop: int
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Index(Term):
    """The number of the element that loop `loop` over `over` looks at."""

    over: Term
    loop: int
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Arange(Term):
    """0 .. count - 1, as `range` or an array."""

    count: Term
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Running(Term):
    """A local that a loop adds to: what it holds when an element is looked at."""

    name: str
    loop: int
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Operation(Term):
    symbol: str
    left: Term
    right: Term
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Not(Term):
    of: Term
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Fold(Term):
    """min, max, sum, cumsum, len, set, all, any over what `of` holds."""

    kind: str
    of: Term
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Sequence(Term):
    items: tuple[Term, ...]
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Many(Term):
    """One `element` for each turn of `loop` over `over`; `when`: the filter, if any."""

    element: Term
    over: Term
    loop: int
    when: Term | None = None
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Mapping(Term):
    """A dict display: keys and values in order."""

    keys: tuple[Term, ...]
    values: tuple[Term, ...]
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Choice(Term):
    """`then` where `test` holds, else `other`; the test keeps cases correlated."""

    test: Term
    then: Term
    other: Term
    __hash__ = Term.__hash__


@dataclass(frozen=True)
class Call(Term):
    """`callee` is a dotted global name, or a method name when `receiver` is given."""

    callee: str
    receiver: Term | None
    arguments: tuple[Term, ...]
    keywords: tuple[tuple[str, Term], ...] = ()
    __hash__ = Term.__hash__

    @property
    def name(self) -> str:
        return self.callee.rpartition(".")[2]

    def values(self) -> Iterator[Term]:
        yield from self.arguments
        for _, value in self.keywords:
            yield value


@dataclass(frozen=True)
class Opaque(Term):
    why: str
    __hash__ = Term.__hash__


def bounded(term: Term) -> Term:
    return term if term.size <= MAX_SIZE else Opaque("grows too large to follow")


def free(term: Term, bound: frozenset[int] = frozenset()) -> Iterator[Each | Index]:
    """Elements and numbers of loops around `term`; those of comprehensions in it are its own."""
    match term:
        case Each(of, loop) | Index(of, loop):
            if loop not in bound:
                yield term
            yield from free(of, bound)
        case Many(element, over, loop, when):
            for part in (element, when):
                if part is not None:
                    yield from free(part, bound | {loop})
            yield from free(over, bound)
        case _:
            for child in term.children():
                yield from free(child, bound)


def last_name(term: Term) -> str:
    """The noun a term goes by: the last name in its access path, '' if it has none."""
    match term:
        case Parameter(_, name) | Field(_, name) | Running(name, _):
            return name
        case Global(name):
            return name.rpartition(".")[2]
        case Item(of) | Each(of) | Slice(of):
            return last_name(of)
        case Call() as call:
            return call.name
    return ""


def replace(term: Term, old: Callable[[Term], Term | None]) -> Term:
    """Rebuild `term` with `old(part)` where that is not None, outermost first."""
    found = old(term)
    if found is not None:
        return found
    changed = False
    parts: list[Any] = []
    for name in term.__match_args__:
        part = getattr(term, name)
        fresh = _replace_part(part, old)
        changed |= fresh is not part
        parts.append(fresh)
    return bounded(type(term)(*parts)) if changed else term


def _replace_part(part: Any, old: Callable[[Term], Term | None]) -> Any:
    if isinstance(part, Term):
        return replace(part, old)
    if isinstance(part, tuple):
        fresh = tuple(_replace_part(p, old) for p in part)
        return fresh if any(a is not b for a, b in zip(fresh, part, strict=True)) else part
    return part
