"""What becomes of a list of regions that a method hands over: who counts its slots, and how."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kvlint.analysis.addresses import is_pointer, tells_whole
from kvlint.analysis.bodies import Body, Root
from kvlint.analysis.descriptors import counts
from kvlint.analysis.forms import is_part
from kvlint.analysis.guards import ENDS, Uniform, facts
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Fold,
    Item,
    Literal,
    Many,
    Operation,
    Parameter,
    Sequence,
    Slice,
    Term,
)
from kvlint.findings import Step

MOST_HANDS = 3  # functions and fields on the way from who makes a list to who uses it


@dataclass(slots=True)
class Uses:
    """Where the least count of all regions is taken, where all counts are compared, where one
    count stands for all, and where each region is used by its own length."""

    least: Step | None = None
    compared: Step | None = None
    one: Step | None = None
    own: Step | None = None

    @property
    def settled(self) -> Step | None:
        """Why different counts do no harm, None where they may."""
        return self.compared or self.least or (self.own if self.one is None else None)


@dataclass(slots=True)
class _Carriers:
    """What has the list in it: results of these functions, these fields, these parameters.

    Each with its part where it is one list of a tuple that came together: `lengths` are the
    parts that hold the lengths of whole regions.
    """

    functions: set[str]
    lengths: frozenset[int]
    fields: dict[str, int | None] = field(default_factory=dict)
    parameters: dict[Term, int | None] = field(default_factory=dict)

    def holds(self, term: Term) -> bool:
        match term:
            case Call() as call:
                return call.name in self.functions
            case Field(_, name):
                return name in self.fields
            case Parameter():
                return term in self.parameters
        return False

    def is_list(self, term: Term) -> bool:
        """Whether a value is the list, or one that came with it."""
        match term:
            case Item(of, _) | Slice(of, _, _):
                return self.holds(of)
        return self.holds(term)

    def part(self, term: Term) -> int | None:
        match term:
            case Item(Call(), key):
                return is_part(key)
            case Field(_, name):
                return self.fields.get(name)
            case Parameter():
                return self.parameters.get(term)
            case Operation("+", left, right) | Choice(_, left, right):
                one = self.part(left)
                return self.part(right) if one is None else one
            case Many(element, _, _, _):
                return self.part(element)
        return None

    def __len__(self) -> int:
        return len(self.functions) + len(self.fields) + len(self.parameters)


def uses(program: Program, provider: Definition) -> Uses:
    """How the slots of the regions that `provider` hands over are counted, as far as it can be
    followed: through calls by name, fields, and arguments of helpers."""
    body = program.body(provider)
    returned = [root.term for root in body.returns] if body else []
    lengths = frozenset(
        number
        for term in returned
        if isinstance(term, Sequence)
        for number, one in enumerate(term.items)
        if one.contains(tells_whole) and not one.contains(is_pointer)
    )
    carriers, found = _Carriers({provider.short}, lengths), Uses()
    for _ in range(MOST_HANDS):
        before = len(carriers)
        for body in _holders(program, carriers, provider):
            _pass_on(program, body, carriers)
        if len(carriers) == before:
            break
    for body in _holders(program, carriers, provider):
        _look(program, body, carriers, found)
        if found.least is not None or found.compared is not None:
            break
    return found


def _holders(program: Program, carriers: _Carriers, provider: Definition) -> list[Body]:
    named = [d for name in carriers.functions for d in program.mentioning(name, after="(")]
    named += [d for name in carriers.fields for d in program.mentioning(name, before=".")]
    named += [
        d
        for p in carriers.parameters
        if isinstance(p, Parameter) and (d := program.definition(p.function))
    ]
    found = {d.key: program.body(d) for d in sorted(named, key=lambda d: d.key)}
    found.pop(provider.key, None)
    return [body for body in found.values() if body is not None]


def _pass_on(program: Program, body: Body, carriers: _Carriers) -> None:
    for root in body.returns:
        # A method's name says too little: others have it, of other lists.
        if not body.definition.class_name and _hands_on(root.term, carriers):
            carriers.functions.add(body.definition.short)
    for store in body.stores:
        if _hands_on(store.value, carriers):
            carriers.fields.setdefault(store.name, carriers.part(store.value))
    for site in body.calls:
        given = [value for value in site.call.values() if _hands_on(value, carriers)]
        if not given:
            continue
        if program.constructed(site.call) is not None:
            for keyword, value in site.call.keywords:
                if value in given:
                    carriers.fields.setdefault(keyword, carriers.part(value))
            continue
        callees, by_name = program.callees(site.call, body)
        if len(callees) == 1 and not by_name:
            bound = program.bind(site.call, callees[0])
            for name, value in bound.items():
                if value in given:
                    parameter = Parameter(callees[0].key, name)
                    carriers.parameters.setdefault(parameter, carriers.part(value))


def _hands_on(term: Term, carriers: _Carriers) -> bool:
    """Whether a value is the list, one of the lists that came with it, or has them in it."""
    match term:
        case Operation("+", left, right) | Choice(_, left, right):
            return _hands_on(left, carriers) or _hands_on(right, carriers)
        case Sequence(items):
            return any(_hands_on(one, carriers) for one in items)
        case Many(element, _, _, _):
            return _hands_on(element, carriers)
    return carriers.is_list(term)


def _look(program: Program, body: Body, carriers: _Carriers, found: Uses) -> None:
    for root in [*body.roots, *body.returns]:
        if not root.term.contains(carriers.holds):
            continue
        for term in (root.term, *_helped(program, body, root.term, carriers)):
            for part in term.holding(Fold.bit | Operation.bit):
                if found.least is None and _is_least(part, carriers):
                    found.least = _step(program, body, root, part, _LEAST)
                if found.own is None and _by_own(part, carriers):
                    found.own = _step(program, body, root, part, _OWN)
                if found.one is None and _of_one(part, carriers):
                    found.one = _step(program, body, root, part, _ONE)
        for count in counts(root.term, body):
            shared = not count.is_own(count.count) and not count.count.contains(carriers.holds)
            if shared and count.address.contains(carriers.holds):
                found.one = found.one or _step(program, body, root, count.count, _ONE)
    found.compared = found.compared or next(_comparisons(program, body, carriers), None)


def _helped(program: Program, body: Body, term: Term, carriers: _Carriers) -> Iterator[Term]:
    """What helpers make of the list that they are given."""
    for part in term.holding(Call.bit):
        if isinstance(part, Call) and any(_hands_on(v, carriers) for v in part.values()):
            put = program.inline(part, body)
            if put != part:
                yield put


_LEAST = "the least of all regions is taken:"
_OWN = "each region has its own length:"
_ONE = "one count stands for all regions:"


def _is_least(term: Term, carriers: _Carriers) -> bool:
    """`min` of what is worked out for each region, of all of them."""
    match term:
        case Fold("min", Many(element, _, _, None)):
            return _quotient(element, lambda side: _is_element(side, carriers))
        case Fold("min", of):
            return _quotient(of, carriers.is_list)
    return False


def _of_one(term: Term, carriers: _Carriers) -> bool:
    return _quotient(term, lambda side: _is_entry(side, carriers))


def _quotient(term: Term, side: Callable[[Term], bool]) -> bool:
    """A length by an item length, a number of slots."""
    match term:
        case Operation("//", left, right):
            return side(left) and side(right)
    return False


def _is_entry(term: Term, carriers: _Carriers) -> bool:
    """The first or the last of a list."""
    match term:
        case Item(of, key):
            return key in ENDS and carriers.is_list(of)
    return False


def _by_own(term: Term, carriers: _Carriers) -> bool:
    """Whether something is multiplied with the length of a region of one's own."""
    match term:
        case Operation("*", left, right):
            return any(_is_element(side, carriers) for side in (left, right))
    return False


def _is_element(term: Term, carriers: _Carriers) -> bool:
    match term:
        case Each(of, _):
            return carriers.is_list(of)
        case Item(of, key):
            return not isinstance(key, Literal) and carriers.is_list(of)
    return False


def _comparisons(program: Program, body: Body, carriers: _Carriers) -> Iterator[Step]:
    for guard in body.guards:
        if guard.raises and guard.condition.contains(carriers.holds):
            for fact in facts(guard.condition):
                if isinstance(fact, Uniform) and not fact.alone and _counts(fact.entry, carriers):
                    span = program.span(body, guard.place)
                    yield Step(span, f"checks {brief(guard.condition, 70)}")


def _counts(entry: Term, carriers: _Carriers) -> bool:
    """Whether an entry tells the slots of a region: its length, alone or by its item length."""
    match entry:
        case Item(of, key):
            whole = carriers.is_list(of) and carriers.part(of) in carriers.lengths
            return key in ENDS and whole
    return _of_one(entry, carriers)


def _step(program: Program, body: Body, root: Root, term: Term, says: str) -> Step:
    place = body.place_of(term)
    return Step(program.span(body, place[0] if place else root.place), f"{says} {brief(term, 70)}")
