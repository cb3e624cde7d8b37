"""NIXL agents over host memory, for tests: no GPU, no server, as many agents as one asks for.

A region is an array of bytes, one row a slot; a `Host` is an agent with its regions.
Importing this module imports numpy, calling it imports NIXL.
"""

import itertools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Bytes = np.ndarray[tuple[int, int], np.dtype[np.uint8]]
NUMBERS = itertools.count(1)


@dataclass
class Host:
    """An agent, its regions, and what it has registered.

    The agent's name is `name` with a number: agents of one process must have different names.
    `thread` is NIXL's own for progress. It spins: several of them starve two cores, and without
    it the peers get on only when asked for notifications.
    """

    name: str
    regions: list[Bytes]
    thread: bool = True
    agent: Any = field(init=False)
    registered: list[Any] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        from nixl._api import nixl_agent, nixl_agent_config

        self.name = f"{self.name}{next(NUMBERS)}"
        how = nixl_agent_config(backends=["UCX"], enable_prog_thread=self.thread)
        self.agent = nixl_agent(self.name, how)

    def register(self) -> None:
        """Each region by itself."""
        for region in self.regions:
            self.register_bytes(region.ctypes.data, region.nbytes)

    def register_bytes(self, address: int, length: int) -> None:
        descriptors = self.agent.register_memory([(address, length, 0, "")], "DRAM")
        self.registered.append(descriptors)

    def deregister(self, number: int) -> None:
        self.agent.deregister_memory(self.registered.pop(number))

    def meet(self, *others: "Host", strangers: bool = False) -> None:
        """Take the others' metadata, a snapshot of what they have registered by now. Of
        `strangers` it comes past NIXL's Python interface, as if from another process."""
        for other in others:
            give = other.agent.agent.getLocalMD if strangers else other.agent.get_agent_metadata
            self.agent.add_remote_agent(give())

    def prepare(self, other: "Host | None", rows: Any, kind: str | None = "DRAM") -> Any:
        """A prepared list: of `other`'s memory, or of one's own where that is None."""
        return self.agent.prep_xfer_dlist(other.name if other else "", rows, kind)

    def finish(self, handle: Any, *others: "Host", seconds: float = 10.0) -> None:
        """Poll until the transfer is done. Raises TimeoutError after that many seconds."""
        end = time.monotonic() + seconds
        while self.agent.check_xfer_state(handle) != "DONE":
            for other in others:
                other.agent.get_new_notifs()
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name}: a transfer is not done after {seconds} s")


def regions(counts: Sequence[int], item_lengths: int | Sequence[int] = 64) -> list[Bytes]:
    """Zeroed regions, each memory of its own."""
    return [np.zeros(shape, np.uint8) for shape in _shapes(counts, item_lengths)]


def neighbours(counts: Sequence[int], item_lengths: int | Sequence[int] = 64) -> list[Bytes]:
    """Zeroed regions, one right after the other in one piece of memory."""
    shapes = _shapes(counts, item_lengths)
    ends = list(itertools.accumulate(n * length for n, length in shapes))
    memory = np.zeros(ends[-1], np.uint8)
    return [
        memory[end - n * length : end].reshape(n, length)
        for end, (n, length) in zip(ends, shapes, strict=True)
    ]


def _shapes(counts: Sequence[int], item_lengths: int | Sequence[int]) -> list[tuple[int, int]]:
    lengths = [item_lengths] * len(counts) if isinstance(item_lengths, int) else item_lengths
    return list(zip(counts, lengths, strict=True))


def fill(parts: Iterable[Bytes], seed: int = 0) -> None:
    """Every slot of every region gets bytes of its own."""
    random = np.random.default_rng(seed)
    for part in parts:
        part[:] = random.integers(1, 256, part.shape, np.uint8)


def rows3(parts: Sequence[Bytes], counts: Sequence[int] | None = None) -> np.ndarray:
    """Nx3: (address, bytes, device), one row a slot; `counts` overrides the slots of each."""
    tables = []
    for part, n in zip(parts, counts or [len(part) for part in parts], strict=True):
        addresses = part.ctypes.data + np.arange(n) * part.shape[1]
        tables.append(np.stack([addresses, np.full(n, part.shape[1]), np.zeros(n, int)], axis=1))
    return np.concatenate(tables).astype(np.uint64)


def rows5(parts: Sequence[Bytes], counts: Sequence[int] | None = None) -> np.ndarray:
    """Nx5: (address, bytes, device, stride, count), one row a region."""
    rows = [
        (part.ctypes.data, part.shape[1], 0, part.shape[1], n)
        for part, n in zip(parts, counts or [len(part) for part in parts], strict=True)
    ]
    return np.array(rows, np.uint64)


def described(host: Host, parts: Sequence[Bytes]) -> Any:
    """NIXL's own descriptor object, one row a slot."""
    return host.agent.get_xfer_descs(rows3(parts), "DRAM")


def tensors(parts: Sequence[Bytes]) -> list[Any]:
    """A tensor a slot, each a view of its region; prepared with `kind=None`."""
    import torch

    return [slot for part in parts for slot in torch.from_numpy(part)]


def starts(parts: Sequence[Bytes]) -> list[int]:
    """The index of each region's slot 0 in a list of all slots."""
    return list(itertools.accumulate((len(part) for part in parts), initial=0))[:-1]


def indices(firsts: Iterable[int], slots: Iterable[int]) -> np.ndarray:
    """Indices of `slots` in every region, region after region, as int32."""
    return (np.array(list(firsts))[:, None] + np.array(list(slots))[None, :]).ravel().astype("i4")
