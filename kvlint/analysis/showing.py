"""Terms as short source-like text, for messages."""

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
    Operation,
    Parameter,
    Running,
    Sequence,
    Slice,
    Term,
    This,
)


def show(term: Term) -> str:
    """The term as short source-like text, for messages."""
    match term:
        case Literal(value):
            return repr(value)
        case This():
            return "self"
        case Parameter(_, name) | Running(name, _):
            return name
        case Global(name):
            return name.rpartition(".")[2]
        case Field(of, name):
            return f"{show(of)}.{name}"
        case Item(of, Literal((str(), int(number)))):
            return f"{show(of)}[{number}]"
        case Item(of, key):
            return f"{show(of)}[{show(key)}]"
        case Slice(of, lower, upper):
            return f"{show(of)}[{show(lower) if lower else ''}:{show(upper) if upper else ''}]"
        case Each(of):
            return f"{show(of)}[i]"
        case Index():
            return "i"
        case Arange(count):
            return f"range({show(count)})"
        case Operation("cdiv", left, right):
            return f"cdiv({show(left)}, {show(right)})"
        case Operation(symbol, left, right):
            return f"{_operand(left, symbol, False)} {symbol} {_operand(right, symbol, True)}"
        case Not(of):
            return f"not {_operand(of)}"
        case Fold(kind, of):
            return f"{kind}({show(of)})"
        case Sequence(items):
            return f"[{', '.join(map(show, items[:3]))}{', ...' if len(items) > 3 else ''}]"
        case Many(element):
            return f"[{show(element)} ...]"
        case Mapping():
            return "{...}"
        case Choice(test, then, other):
            return f"{show(then)} if {show(test)} else {show(other)}"
        case Call() as call:
            head = f"{show(call.receiver)}." if call.receiver else ""
            return f"{head}{call.name}({', '.join(map(show, list(call.values())[:3]))})"
    return "..."


def brief(term: Term, most: int) -> str:
    """`show`, cut to `most` characters with dots."""
    text = show(term)
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."


_BINDS = {"**": 0, "*": 1, "/": 1, "//": 1, "%": 1, "+": 2, "-": 2}


def _operand(term: Term, symbol: str = "", right: bool = True) -> str:
    if not isinstance(term, Operation | Choice) or (
        isinstance(term, Operation) and term.symbol == "cdiv"
    ):
        return show(term)
    if isinstance(term, Operation) and symbol in _BINDS and term.symbol in _BINDS:
        inner, outer = _BINDS[term.symbol], _BINDS[symbol]
        if inner < outer or (inner == outer and not right):
            return show(term)
    return f"({show(term)})"


def path_of(term: Term) -> str | None:
    """A readable access path (`self.kv_args.kv_item_lens`), None if it is no path."""
    match term:
        case This():
            return "self"
        case Parameter(_, name) | Global(name):
            return name
        case Running(name, _):
            return name
        case Field(of, name):
            head = path_of(of)
            return f"{head}.{name}" if head else None
        case Item(of, key):
            head, index = path_of(of), show(key)
            return f"{head}[{index}]" if head else None
    return None
