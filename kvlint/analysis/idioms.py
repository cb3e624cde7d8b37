"""Third-party calls that say something of their own: ranges, folds, shape-keeping calls."""

from collections.abc import Callable

from kvlint.analysis.forms import ZERO, entry_of, item
from kvlint.analysis.terms import (
    Arange,
    Call,
    Field,
    Fold,
    Global,
    Item,
    Literal,
    Many,
    Opaque,
    Operation,
    Sequence,
    Term,
    bounded,
)
from kvlint.analysis.vocabulary import apis

_VECTOR_MODULES = frozenset({"numpy", "torch", "math", "itertools", "functools", "jax", "copy"})
_ROUNDING = frozenset({"cdiv", "ceil_div", "get_dtype_size"})
# Triton's language, imported or handed on under its usual name.
_OF_KERNELS = ("tl.load", "tl.where", "triton.language.load", "triton.language.where")
_CONVERSIONS = frozenset({"tensor", "array", "asarray", "int", "str"})


def idiom(call: Call, new_loop: Callable[[Term], int]) -> Term:
    """What a call means; the call itself where it means nothing known.

    `new_loop` numbers the loop that a repeated value stands for.
    """
    name, receiver, arguments = call.name, call.receiver, call.arguments
    if call.callee.endswith(_OF_KERNELS):
        return _of_kernel(call)
    builtin = call.callee == name
    if receiver is None and not (
        builtin or call.callee.partition(".")[0] in _VECTOR_MODULES or name in _ROUNDING
    ):
        return call
    if receiver is not None:
        return _of_object(call, receiver)
    match name, arguments:
        case "getattr", (of, Literal(str(text)), *_):
            return Field(of, text)
        case "range" | "arange", (count,):
            return Arange(count)
        case "range" | "arange", (start, stop, *_):
            return Arange(stop if start == ZERO else Operation("-", stop, start))
        case "next", (of, *_):
            return _first(of)
        case "full", (count, value, *_):
            return Many(value, Arange(count), new_loop(Arange(count)))
        case "repeat", (value, count, *_):
            return Many(value, Arange(count), new_loop(Arange(count)))
        case "column_stack", (columns, *_):
            return columns
        case "cdiv" | "ceil_div", (left, right):
            return Operation("cdiv", left, right)
        case _, (only,) if name in apis().folds:
            return Fold(apis().folds[name], only)
        case _, (_, _, *_) if name in apis().folds:
            return Fold(apis().folds[name], Sequence(arguments))
        case _, (first, *_) if name in apis().keeps:
            return call if name in ("prod", "round_up", "align_up", "chain") else first
    return call


def _of_kernel(call: Call) -> Term:
    """What a mask leaves out does not say where the rest lies."""
    match call.name, call.arguments:
        case "load", (address, *_):
            return Call(call.callee, None, (address,))
        case "where", (_, value, Literal()):
            return value
    return call


def _of_object(call: Call, receiver: Term) -> Term:
    name, arguments = call.name, call.arguments
    match name, arguments:
        case "items", ():
            return call
        case "keys", ():
            return receiver
        case "get", (key, *_) if isinstance(receiver, Field):
            return item(receiver, key)
        case "join", (parts,):
            return parts
        case "prod", _:
            return call
    if name in apis().folds:
        return Fold(apis().folds[name], receiver)
    if name in apis().keeps and name not in _CONVERSIONS:
        return receiver
    return call


def _first(of: Term) -> Term:
    """`next(of)`: entry 0, also of an iterator over a mapping's items."""
    match of:
        case Call(callee="items", receiver=receiver) if receiver is not None:
            return Sequence((Opaque("a key"), Item(receiver, ZERO)))
        case Many(element, _, loop, None):
            return bounded(entry_of(element, loop, ZERO))
    return Item(of, ZERO)


def handed_over(call: Call) -> Call:
    """The call that an executor, a thread or `partial` will make; else the call itself."""
    target: Term | None = None
    arguments = call.arguments
    keywords = call.keywords
    if call.name in ("submit", "partial", "run_in_executor", "apply_async", "map"):
        skipped = 1 if call.name == "run_in_executor" else 0
        if len(arguments) > skipped:
            target, arguments = arguments[skipped], arguments[skipped + 1 :]
    elif call.name in ("Thread", "Process"):
        named = dict(call.keywords)
        target = named.get("target")
        given = named.get("args")
        arguments = given.items if isinstance(given, Sequence) else ()
        keywords = ()
    match target:
        case Field(of, name):
            return Call(name, of, arguments, keywords)
        case Global(name):
            return Call(name, None, arguments, keywords)
    return call
