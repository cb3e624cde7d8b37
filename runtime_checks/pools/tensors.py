"""Facts of a tensor: where its storage lies, and how its elements lie in it.

torch is never imported here. Where no program has imported it, nothing is a tensor.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

# A pool holds a few tensors a layer. What holds more is no pool, or goes round in circles.
MOST: Final = 100_000
DEEPEST: Final = 6
_PLAIN: Final = frozenset({int, float, bool, str, bytes, type(None)})

Gone = Callable[[], bool]
"""Whether memory has been given back: what lies there later is another's."""


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as the checks see it.

    storage        address of its storage's first byte
    storage_bytes  length of the storage
    address        of element 0
    shape          elements in each dimension
    strides        bytes from one to the next in each dimension
    element_size   bytes an element
    dtype          as torch has it: "float8_e4m3fn"
    kind           "VRAM" or "DRAM", as NIXL has it
    device         index of the device, 0 for host memory
    gone           whether its storage is
    """

    storage: int
    storage_bytes: int
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_size: int
    dtype: str
    kind: str = "DRAM"
    device: int = 0
    gone: Gone = field(default=never, compare=False, repr=False)

    @classmethod
    def of(cls, tensor: Any) -> "Tensor":
        """Of a torch tensor. Raises what torch raises for one without memory of its own."""
        storage, size, device = tensor.untyped_storage(), tensor.element_size(), tensor.device
        on_host = device.type == "cpu"
        return cls(
            storage.data_ptr(),
            storage.nbytes(),
            tensor.data_ptr(),
            tuple(tensor.shape),
            tuple(step * size for step in tensor.stride()),
            size,
            str(tensor.dtype).removeprefix("torch."),
            "DRAM" if on_host else "VRAM",
            0 if on_host else device.index or 0,
            storage_gone(tensor),
        )

    def part(self, index: int) -> "Tensor":
        """One entry of the first dimension."""
        address = self.address + index * self.strides[0]
        return replace(self, address=address, shape=self.shape[1:], strides=self.strides[1:])

    def reach(self, first: int = 0) -> int:
        """Bytes from the first element to the end of the last, of the dimensions from `first` on;
        0 for a tensor without elements."""
        if not all(self.shape):
            return 0
        steps = zip(self.shape[first:], self.strides[first:], strict=True)
        return sum((n - 1) * step for n, step in steps) + self.element_size

    @property
    def end(self) -> int:
        """Address of the byte after its last."""
        return self.address + self.reach()

    @property
    def storage_end(self) -> int:
        return self.storage + self.storage_bytes


class Around(Generic[T]):
    """Things that lie in memory, found by a byte: a pool may have thousands."""

    def __init__(self, things: Iterable[tuple[Tensor, T]]) -> None:
        spans = [(tensor.address, tensor.end, thing) for tensor, thing in things]
        self._edges = sorted({edge for begin, end, _ in spans for edge in (begin, end)})
        self._between: list[list[T]] = [[] for _ in self._edges]
        self._with: dict[int, T] = {}
        for begin, end, thing in spans:
            self._with.setdefault(begin, thing)
            self._with.setdefault(end, thing)
            for at in range(bisect_left(self._edges, begin), bisect_left(self._edges, end)):
                self._between[at].append(thing)

    def __getitem__(self, address: int) -> Sequence[T]:
        """All that hold the byte, in their order."""
        at = bisect_right(self._edges, address) - 1
        return self._between[at] if at >= 0 else ()

    def nearest(self, address: int) -> T:
        """Of a byte that none holds the one that begins, or ends, the least far from it. There
        must be one at all."""
        at = bisect_left(self._edges, address)
        edges = self._edges[max(0, at - 1) : at + 1]
        return self._with[min(edges, key=lambda edge: abs(edge - address))]


def storage_gone(tensor: Any) -> Gone:
    """Of a torch tensor. A view may go while its storage stays, so it is the storage that is
    watched, by torch's own weak reference: a plain one would end with the Python object around
    it."""
    reductions = import_module("torch.multiprocessing.reductions")
    gone: Gone = reductions.StorageWeakRef(tensor.untyped_storage()).expired
    return gone


def is_tensor(thing: object) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(thing, torch.Tensor) if torch is not None else False


def tensors_in(holder: object, within: Sequence[str] = ()) -> list[tuple[str, Tensor]]:
    """All tensors that an object holds, by the way that leads to each: "k_buffer[3]".

    Lists, tuples and mappings are gone through, and objects whose class's module begins with one
    of `within`; a tensor met on two ways is told once.
    """
    found: list[tuple[str, Tensor]] = []
    seen: set[int] = set()
    level: list[tuple[str, object]] = [("", holder)]
    for depth in range(DEEPEST):
        below: list[tuple[str, object]] = []
        for name, thing in level:
            if id(thing) in seen or len(seen) >= MOST:
                continue
            if is_tensor(thing):
                seen.add(id(thing))
                facts = _facts(thing)
                if facts is not None:
                    found.append((name, facts))
            elif not depth or isinstance(thing, (list, tuple, Mapping)) or _is_in(thing, within):
                seen.add(id(thing))
                below.extend(_parts(name, thing))
        level = below
    return found


def _facts(tensor: object) -> Tensor | None:
    """None for a tensor without memory of its own, as sparse ones and those of tracing are."""
    try:
        facts = Tensor.of(tensor)
    except Exception:
        return None
    return facts if facts.storage else None


def _is_in(thing: object, within: Sequence[str]) -> bool:
    module = type(thing).__module__
    return any(module == name or module.startswith(f"{name}.") for name in within)


def attribute(thing: object, name: str, otherwise: Any = None) -> Any:
    """Of an object of the program's own, which may raise anything for it."""
    try:
        return getattr(thing, name, otherwise)
    except Exception:
        return otherwise


def _parts(name: str, thing: object) -> list[tuple[str, object]]:
    """Those that may hold tensors: free slots, say, are a million numbers. None of a mapping that
    cannot be gone through."""
    if isinstance(thing, (list, tuple)):
        return [(f"{name}[{at}]", p) for at, p in enumerate(thing) if type(p) not in _PLAIN]
    try:
        if isinstance(thing, Mapping):
            return [(f"{name}[{key!r}]", part) for key, part in list(thing.items())]
        own = list(attribute(thing, "__dict__", {}).items())
    except Exception:
        return []
    return [(f"{name}.{key}" if name else str(key), part) for key, part in own]
