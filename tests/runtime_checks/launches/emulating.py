"""A kernel's source, run as it stands with numbers for its lanes: what it really touches."""

import ast
from types import SimpleNamespace

import numpy as np

from kvlint.runtime_checks.launches.bounds import Values
from kvlint.runtime_checks.launches.deciding import Rules
from kvlint.runtime_checks.launches.launch import Launch, Memory
from kvlint.runtime_checks.launches.reading import read
from kvlint.runtime_checks.launches.tables import tables_of
from kvlint.runtime_checks.launches.terms import Terms
from kvlint.runtime_checks.launches.values import Element, Function, Given, Number, Pointer

BASE = 1 << 40
WIDTH = 2


class Tile:
    """Integers with Triton's division, of 32 bits, or of any size (Python's own)."""

    def __init__(self, value, kind):
        self.kind = kind
        with np.errstate(all="ignore"):
            self.value = np.asarray(value).astype(kind)

    def _with(self, other, how):
        other = other.value if isinstance(other, Tile) else np.asarray(other).astype(self.kind)
        with np.errstate(all="ignore"):
            return Tile(how(self.value, other), self.kind)

    def _against(self, other, how):
        other = other.value if isinstance(other, Tile) else other
        return how(self.value, other)

    def __add__(self, other):
        return other + self if isinstance(other, At) else self._with(other, np.add)

    __radd__ = __add__

    def __sub__(self, other):
        return self._with(other, np.subtract)

    def __rsub__(self, other):
        return Tile(other, self.kind) - self

    def __mul__(self, other):
        return self._with(other, np.multiply)

    __rmul__ = __mul__

    def __floordiv__(self, other):
        return self._with(other, lambda a, b: np.sign(a) * (abs(a) // b))

    def __mod__(self, other):
        return self - (self // other) * other

    def __lt__(self, other):
        return self._against(other, np.less)

    def __le__(self, other):
        return self._against(other, np.less_equal)

    def __gt__(self, other):
        return self._against(other, np.greater)

    def __ge__(self, other):
        return self._against(other, np.greater_equal)

    def __getitem__(self, index):
        return Tile(self.value[index], self.kind)


class At:
    """A pointer: offsets in bytes, without bounds."""

    def __init__(self, offsets, table=None):
        self.offsets = offsets
        self.table = table

    def __add__(self, by):
        by = by.value.astype(object) if isinstance(by, Tile) else by
        return At(self.offsets + by * WIDTH, self.table)


def touched(source, arguments, grid, kind, table=None):
    """All offsets, in bytes, that the kernel `k` in the source loads at.

    kind   "int32" as a kernel has it, or "object" for integers without bounds
    table  numbers, two bytes each, behind another pointer
    """
    found = set()

    def load(at, mask, other=0):
        offsets, mask = np.broadcast_arrays(at.offsets, mask)
        if at.table is None:
            found.update(int(offset) for offset in offsets[mask])
            return None
        values = np.full(offsets.shape, other)
        values[mask] = np.asarray(at.table)[(offsets[mask] // WIDTH).astype(int)]
        return Tile(values, kind)

    def pick(how):
        def picked(*parts):
            return Tile(how(*(p.value if isinstance(p, Tile) else p for p in parts)), kind)

        return picked

    program = []
    tl = SimpleNamespace(
        program_id=lambda axis: Tile(program[axis], kind),
        arange=lambda start, end: Tile(np.arange(start, end), kind),
        minimum=pick(np.minimum),
        where=pick(np.where),
        load=load,
        constexpr=int,
    )
    names = {"tl": tl, "range": lambda *bounds: (Tile(n, kind) for n in range(*bounds))}
    exec(source, names)
    given = {name: Tile(value, kind) for name, value in arguments.items()}
    if table is not None:
        given["y"] = At(np.asarray(0, object), table)
    for x in range(grid[0]):
        for y in range(grid[1]):
            program[:] = [x, y]
            names["k"](At(np.asarray(0, object)), **given)
    return found


def contract_of(source, names, pointers=("x",), constants=(), element="bf16"):
    """Of the function `k`, with integers of 32 bits for all its other parameters."""
    terms = Terms()
    functions = {node.name: node for node in ast.parse(source).body}
    known: dict[str, object] = {}
    known |= {name: Function(node, Given(known)) for name, node in functions.items()}
    zero, pointed = terms.number(0, "i64"), Element.named(element)
    assert pointed is not None
    arguments = {name: Pointer(name, zero, pointed) for name in pointers}
    arguments |= {name: Number(terms.argument(name, "i32")) for name in names}
    arguments |= {name: Number(terms.number(value)) for name, value in constants}
    return read(Function(functions["k"], Given(known), "kernels.py"), arguments, terms)


def breaches(source, arguments, grid, before, past):
    """What is said where the storage has so many bytes before the pointer, and after."""
    rules = Rules(contract_of(source, arguments))
    memory = {"x": Memory(BASE, BASE - before, BASE + past, WIDTH)}
    launch = Launch("k", memory, Values(arguments, (*grid, 1)))
    reach = rules.reach(launch.values)
    return rules.breaches(launch), reach.inside(memory), rules.undecided


def looked_up(torch, source, arguments, grid, past, table):
    """What is said of the accesses that numbers of the table decide."""
    contract = contract_of(source, arguments, pointers=("x", "y"), element="i16")
    values = torch.tensor(table, dtype=torch.int16)
    memory = {
        "x": Memory(BASE, BASE, BASE + past, WIDTH),
        "y": Memory(2 * BASE, 2 * BASE, 2 * BASE + len(table) * WIDTH, WIDTH),
    }
    launch = Launch("k", memory, Values(arguments, (*grid, 1)))
    found = []
    for one in tables_of(contract):
        answers = one.count(torch, launch, {"x": None, "y": values})
        if answers is not None:
            found.append(one.told(answers.tolist(), launch, lambda _: None))
    return [breach for breach in found if breach is not None]
