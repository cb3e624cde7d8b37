"""Which shapes a kernel is run with, and inputs that are the same each time."""

import itertools
import os
import random
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Inputs = Mapping[str, Any]

# How the tensors of a case lie in memory; `layouts.strided` makes them so.
STRIDES: Final = ("contiguous", "padded", "sliced")


@dataclass(eq=False)
class Case:
    """One shape, and what makes tensors of it.

    lengths  of each row, the longest first or not
    longest  columns that the rows have room for
    ragged   whether lengths differ; a single row is then shorter than its room
    stride   "contiguous"; "padded", with a gap after each row; "sliced", every second row of a
             larger tensor
    device   where tensors are made, None for a GPU where one is and Triton does not interpret
    """

    make: Callable[["Case"], Inputs]
    batch: int
    lengths: tuple[int, ...]
    longest: int
    ragged: bool
    dtype: str
    stride: str
    seed: int = 0
    device: str | None = None
    _generator: Any = field(default=None, init=False, repr=False)

    def __str__(self) -> str:
        return ", ".join(
            (
                f"batch {self.batch}",
                f"length {self.longest}",
                "ragged" if self.ragged else "uniform",
                self.dtype,
                self.stride,
            )
        )

    def inputs(self) -> Inputs:
        """What `make` gives for this case; the same numbers each time.

        Raises ValueError for a dtype that torch has not, TypeError for inputs without names."""
        import torch

        self.number_type(self.dtype)
        self._generator = torch.Generator().manual_seed(zlib.crc32(str(self).encode()) ^ self.seed)
        try:
            made = self.make(self)
        finally:
            self._generator = None
        if not isinstance(made, Mapping):
            raise TypeError(f"make gives a {type(made).__name__}, not a mapping of names to inputs")
        return made

    def randn(self, *shape: int, dtype: str | None = None) -> "Tensor":
        """Numbers of mean 0 and deviation 1, rounded to the case's dtype, in the case's stride."""
        import torch

        drawn = torch.randn(shape, generator=self._generator)
        return self.strided(drawn.to(self.number_type(dtype or self.dtype)))

    def randint(self, low: int, high: int, *shape: int, dtype: str = "int64") -> "Tensor":
        """Whole numbers from `low` to below `high`, contiguous."""
        import torch

        drawn = torch.randint(low, high, shape, generator=self._generator)
        return drawn.to(self.number_type(dtype)).to(self.place)

    def permutation(self, count: int, dtype: str = "int64") -> "Tensor":
        """(count,) the numbers below `count` in some order: pages for a block table, say."""
        import torch

        drawn = torch.randperm(count, generator=self._generator)
        return drawn.to(self.number_type(dtype)).to(self.place)

    def empty(self, *shape: int, dtype: str | None = None) -> "Tensor":
        """A buffer for results, in the case's stride; `compare` poisons what it is told of."""
        import torch

        return self.strided(torch.zeros(shape, dtype=self.number_type(dtype or self.dtype)))

    def counts(self, dtype: str = "int32") -> "Tensor":
        """(batch,) the lengths, contiguous."""
        import torch

        return torch.tensor(self.lengths, dtype=self.number_type(dtype), device=self.place)

    def strided(self, tensor: "Tensor") -> "Tensor":
        """The same numbers on the case's device in the case's stride, the gaps poisoned."""
        from kvlint.runtime_checks.comparing.layouts import strided

        return strided(tensor.to(self.place), self.stride)

    @property
    def place(self) -> str:
        """The device, chosen where it was left open."""
        import torch

        if self.device is not None:
            return self.device
        interpreted = os.environ.get("TRITON_INTERPRET") == "1"
        return "cuda" if torch.cuda.is_available() and not interpreted else "cpu"

    @staticmethod
    def number_type(name: str) -> "torch.dtype":
        import torch

        found = getattr(torch, name, None)
        if not isinstance(found, torch.dtype):
            raise ValueError(f"torch has no dtype {name!r}")
        return found


def cases(
    make: Callable[[Case], Inputs],
    *,
    batches: Sequence[int] = (1, 8, 32),
    lengths: Sequence[int] = (64, 257),
    ragged: Sequence[bool] = (False, True),
    dtypes: Sequence[object] = ("float32",),
    strides: Sequence[str] = STRIDES,
    shortest: int = 1,
    seed: int = 0,
    device: str | None = None,
) -> list[Case]:
    """Every combination.

    make      gives the inputs of a case, by the names of the kernel's arguments
    lengths   columns of the longest row
    dtypes    of torch, or their names
    shortest  a ragged row's least length; 0 for rows that only fill a batch
    device    None for a GPU where one is and Triton does not interpret

    Raises ValueError, one line, where nothing is left to run or a stride is unknown.
    """
    unknown = [stride for stride in strides if stride not in STRIDES]
    if unknown:
        raise ValueError(f"stride {unknown[0]!r} is none of {', '.join(STRIDES)}")
    if min([*batches, *lengths], default=0) < 1 or not 0 <= shortest <= min(lengths):
        raise ValueError("batches and lengths are 1 or more, and no shortest row is longer")
    names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
    found = [
        Case(make, batch, rows, longest, uneven, dtype, stride, seed, device)
        for batch, longest, uneven in itertools.product(batches, lengths, ragged)
        for rows in [_rows(batch, longest, uneven, shortest, seed)]
        for dtype, stride in itertools.product(names, strides)
    ]
    if not found:
        raise ValueError("no cases: one of the choices is empty")
    return found


def _rows(batch: int, longest: int, ragged: bool, shortest: int, seed: int) -> tuple[int, ...]:
    """Lengths; ragged ones hold the shortest and, of several rows, the longest, in any order."""
    if not ragged:
        return (longest,) * batch
    draw = random.Random(f"{seed} {batch} {longest}")
    if batch == 1:
        return (draw.randint(shortest, max(shortest, longest - 1)),)
    rows = [draw.randint(shortest, longest) for _ in range(batch - 2)] + [shortest, longest]
    draw.shuffle(rows)
    return tuple(rows)


def chosen_values(some: Iterable[Case], name: str) -> list[object]:
    """The values of a property, each once, in the order of the cases."""
    return list(dict.fromkeys(getattr(case, name) for case in some))
