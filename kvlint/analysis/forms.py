"""Normal forms: what an entry or element of a list that is made here is."""

from kvlint.analysis.terms import (
    Choice,
    Each,
    Index,
    Item,
    Literal,
    Many,
    Mapping,
    Operation,
    Sequence,
    Term,
    bounded,
    replace,
)

ZERO = Literal(0)
GRID = "launch grid"  # as a keyword of the call that launches a kernel
PART = "part"  # key of a value unpacked from a tuple; entry 0 of a list has a plain key


def part(of: Term, number: int) -> Term:
    """Element `number` of a tuple that is unpacked (a return value, a pair)."""
    match of:
        case Sequence(items) if number < len(items):
            return items[number]
        case Choice(test, then, other):
            return bounded(Choice(test, part(then, number), part(other, number)))
        case Each(Sequence(items), loop) if items and all(
            isinstance(i, Sequence) and number < len(i.items) for i in items
        ):
            return Each(Sequence(tuple(i.items[number] for i in items)), loop)  # type: ignore[attr-defined]
        case Each(Many(element, over, _, None), _) if isinstance(element, Sequence):
            if number < len(element.items):
                return bounded(Each(Many(element.items[number], over, of.loop), of.loop))
    return Item(of, Literal((PART, number)))


def is_part(key: Term) -> int | None:
    match key:
        case Literal((str(tag), int(number))) if tag == PART:
            return number
    return None


def item(of: Term, key: Term) -> Term:
    """`of[key]`, with the element of a loop recognised."""
    match of, key:
        case Sequence(items), Literal(int(number)) if -len(items) <= number < len(items):
            if not any(isinstance(i, Many) for i in items):
                return items[number]
        case Mapping(keys, values), _:
            for known, value in zip(keys, values, strict=True):
                if known == key:
                    return value
        case Many(element, _, loop, None), Literal(0 | -1):
            return bounded(entry_of(element, loop, key))
        case _, Item(keyed, Literal(0 | -1) as first) if keyed == of:
            return Item(of, first)  # d[next(iter(d))]
        case _, Index(over, loop) if over == of:
            return Each(of, loop)
        case _, Each(over, loop) if over == of:
            return Each(of, loop)
    return Item(of, key)


def normal(term: Term) -> Term:
    """Entry i of `[f(x) for x in xs]` is f of entry i of xs; `(l * c) // l` is c."""

    def step(part: Term) -> Term | None:
        match part:
            case Item(Many(element, over, loop, None), key) if not isinstance(key, Index):
                return normal(entry_of(element, loop, key))
            case Each(Many(element, over, loop, None), outer):
                return normal(each_of(element, over, loop, outer))
            case Operation("//" | "/", left, right):
                left, right = normal(left), normal(right)
                match left:
                    case Operation("*", one, other) if right in (one, other):
                        return other if one == right else one
                return Operation(part.symbol, left, right)
        return None

    return replace(term, step, (Item, Each, Operation))


def each_of(element: Term, over: Term, loop: int, outer: int) -> Term:
    """The element of a comprehension, seen from the loop that runs over it."""

    def step(part: Term) -> Term | None:
        match part:
            case Each(of, number) if number == loop:
                return Each(of, outer)
            case Index(_, number) if number == loop:
                return Index(over, outer)
        return None

    return replace(element, step, (Each, Index))


def entry_of(element: Term, loop: int, key: Term) -> Term:
    """The element of a comprehension at one entry of what it runs over."""

    def step(part: Term) -> Term | None:
        match part:
            case Each(of, number) if number == loop:
                return Item(of, key)
            case Index(_, number) if number == loop:
                return key
        return None

    return replace(element, step, (Each, Index))
