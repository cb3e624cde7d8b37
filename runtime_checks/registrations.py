"""What one agent has registered, and whether it still is.

A list is built on registrations: NIXL keeps its own record of each for it. Deregistered and
registered again the memory is the same and the record is not, so the list is stale either way,
unless another registration, as old as the list, still holds the memory.

Not thread-safe: whoever owns it holds a lock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from kvlint.runtime_checks.extents import Extents
from kvlint.runtime_checks.regions import Integers, Regions

Piece = tuple[int, int, int]
"""Address, length in bytes, device."""

Collected = Callable[[], bool]
"""Whether the tensor that was registered is gone."""


@dataclass(eq=False)
class Registration:
    """One registered piece of memory. `number` counts those of the agent, from 0.

    address, length in bytes; device as NIXL has it
    """

    number: int
    kind: str
    address: int
    length: int
    device: int
    collected: Collected | None

    @property
    def end(self) -> int:
        return self.address + self.length

    def __str__(self) -> str:
        """Without its address: records hold none."""
        return f"registration {self.number} ({self.length} bytes)"


@dataclass(eq=False)
class Registrations:
    """What an agent has registered now; `version` changes with every change.

    live        by number, in order; those that are gone are forgotten, since some engines
                register and deregister for every transfer
    any_tensor  whether anything was ever given as a tensor
    """

    live: dict[int, Registration] = field(default_factory=dict)
    version: int = 0
    any_tensor: bool = False
    _next: int = 0
    _extents: dict[str, tuple[int, Extents, list[Registration]]] = field(default_factory=dict)

    def add(self, kind: str, pieces: Iterable[Piece], collected: list[Collected] | None) -> None:
        """Pieces of (address, length in bytes, device)."""
        self.version += 1
        self.any_tensor |= bool(collected)
        for at, (address, length, device) in enumerate(pieces):
            gone = collected[at] if collected and at < len(collected) else None
            self.live[self._next] = Registration(self._next, kind, address, length, device, gone)
            self._next += 1

    def found(self, kind: str, pieces: Iterable[Piece]) -> list[Registration]:
        """The newest live registration of exactly each piece."""
        of_piece: dict[Piece, list[Registration]] = {}
        for one in self.live.values():
            if one.kind == kind:
                of_piece.setdefault((one.address, one.length, one.device), []).append(one)
        return [of_piece[piece].pop() for piece in pieces if of_piece.get(piece)]

    def remove(self, registrations: Iterable[Registration]) -> None:
        self.version += 1
        for registration in registrations:
            self.live.pop(registration.number, None)

    def extents(self, kind: str) -> tuple[Extents, list[Registration]]:
        """The live ones of a memory kind; extent numbers are positions in the second."""
        cached = self._extents.get(kind)
        if cached is None or cached[0] != self.version:
            live = [one for one in self.live.values() if one.kind == kind and one.length]
            pieces = Extents.of([(one.address, one.length, one.device) for one in live])
            cached = self._extents[kind] = (self.version, pieces, live)
        return cached[1], cached[2]

    def holding(self, kind: str, regions: Regions) -> Integers:
        """(R,) number of the smallest live registration that holds each region, -1 for none."""
        extents, live = self.extents(kind)
        held = extents.holding_all(regions)
        numbers = np.array([one.number for one in live] + [-1], np.int64)
        return numbers[held]

    def tensors(self, numbers: Integers) -> list[Registration]:
        """Those among the numbers whose tensor is known, each once."""
        if not self.any_tensor:
            return []
        held = [self.live[number] for number in np.unique(numbers).tolist() if number >= 0]
        return [one for one in held if one.collected is not None]

    def still_held(self, kind: str, regions: Regions, pieces: Integers) -> int | None:
        """The number of the first region that lost the registration it was prepared on.

        pieces  (R,) number of that registration, -1 where it is not known
        """
        oldest = int(pieces.max(initial=-1))
        for at, piece in enumerate(pieces.tolist()):
            if piece < 0 or piece in self.live:
                continue
            address, end = int(regions.addresses[at]), int(regions.ends[at])
            if not any(
                one.kind == kind
                and one.number <= oldest
                and one.device == int(regions.devices[at])
                and one.address <= address
                and end <= one.end
                for one in self.live.values()
            ):
                return at
        return None
