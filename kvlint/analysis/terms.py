"""What code says before anyone knows its callers: immutable, hashable values.

A term is built once and compared by meaning; where it was written is kept beside it
(`Body.spans`), never in it. A term nobody can resolve is `Opaque` with the reason.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import or_
from typing import Any, ClassVar

# Nodes, and how deep they stand; what grows past either is no longer worth following. Questions
# recurse into terms, some of them with three or four calls a level.
MAX_SIZE = 1200
MAX_DEPTH = 100


class Term:
    """Base of all terms. `size` counts nodes, `depth` levels; the hash is computed once.

    `kinds` has the bits of all classes of terms in it (`kinds_of` gives them): most questions
    are about a few kinds, and what holds none of these need not be walked.
    """

    __match_args__: tuple[str, ...] = ()
    bit: ClassVar[int] = 0
    _hash: int
    _inner: tuple["Term", ...]
    size: int
    depth: int
    kinds: int

    def __init_subclass__(cls) -> None:
        # The decorator `dataclass` leaves the class it is given in place: one bit a class.
        cls.bit = 1 << next(_bits)

    def __post_init__(self) -> None:
        parts = self._parts()
        inner: list[Term] = []
        for part in parts:
            if isinstance(part, Term):
                inner.append(part)
            elif type(part) is tuple:
                _collect(part, inner)
        size, depth, kinds = 1, 0, self.bit
        for child in inner:
            size += child.size
            kinds |= child.kinds
            if child.depth > depth:
                depth = child.depth
        own = self.__dict__  # frozen to all but its own making
        own["_hash"] = hash((type(self).__name__, *parts))
        own["_inner"] = tuple(inner)
        own["size"] = size
        own["depth"] = depth + 1
        own["kinds"] = kinds

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of strings differ from process to process, so a copy is made anew.
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)

    def _parts(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def children(self) -> tuple["Term", ...]:
        return self._inner

    def walk(self) -> Iterator["Term"]:
        """This term and everything in it, outermost first."""
        stack: list[Term] = [self]
        while stack:
            term = stack.pop()
            yield term
            if term._inner:
                stack.extend(term._inner[::-1])

    def holding(self, kinds: int) -> Iterator["Term"]:
        """As `walk`, without the parts that hold nothing of these kinds."""
        stack: list[Term] = [self] if self.kinds & kinds else []
        while stack:
            term = stack.pop()
            yield term
            stack.extend(child for child in term._inner[::-1] if child.kinds & kinds)

    def contains(self, test: "Term | Callable[[Term], bool]") -> bool:
        if isinstance(test, Term):
            wanted = test._hash
            return any(term._hash == wanted and term == test for term in self.holding(test.bit))
        return any(map(test, self.walk()))


_bits = count()


def kinds_of(*classes: type[Term]) -> int:
    """The bits of these classes of terms together, as `Term.kinds` has them."""
    return reduce(or_, (one.bit for one in classes), 0)


def _collect(parts: tuple[Any, ...], inner: list[Term]) -> None:
    for part in parts:
        if isinstance(part, Term):
            inner.append(part)
        elif isinstance(part, tuple):
            _collect(part, inner)


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
    if term.size <= MAX_SIZE and term.depth <= MAX_DEPTH:
        return term
    return Opaque("grows too large to follow")


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


def replace(
    term: Term, old: Callable[[Term], Term | None], among: Iterable[type[Term]] = (Term,)
) -> Term:
    """Rebuild `term` with `old(part)` where that is not None, outermost first.

    `old` is only asked about parts of the kinds in `among`, and about what these stand in.
    """
    kinds = kinds_of(*among) or ~0
    return _replaced(term, old, kinds)


def _replaced(term: Term, old: Callable[[Term], Term | None], kinds: int) -> Term:
    if not term.kinds & kinds:
        return term
    found = old(term)
    if found is not None:
        return found
    if not any(child.kinds & kinds for child in term._inner):
        return term
    changed = False
    parts: list[Any] = []
    for name in term.__match_args__:
        part = getattr(term, name)
        if isinstance(part, Term):
            fresh: Any = _replaced(part, old, kinds)
        elif type(part) is tuple:
            fresh = _replaced_in(part, old, kinds)
        else:
            fresh = part
        changed |= fresh is not part
        parts.append(fresh)
    return bounded(type(term)(*parts)) if changed else term


def _replaced_in(parts: tuple[Any, ...], old: Callable[[Term], Term | None], kinds: int) -> Any:
    fresh = tuple(
        [
            _replaced(part, old, kinds)
            if isinstance(part, Term)
            else _replaced_in(part, old, kinds)
            if isinstance(part, tuple)
            else part
            for part in parts
        ]
    )
    return fresh if any(a is not b for a, b in zip(fresh, parts, strict=True)) else parts
