"""What must be right before anything is timed: digests on the device are those of numpy.

Without CUDA all of it runs on the CPU, in Triton's interpreter, but for what streams do.
"""

from itertools import product
from typing import Any

import numpy as np
import torch

from kvlint.runtime_checks.digests import device
from kvlint.runtime_checks.digests.host import UnreadableError
from kvlint.runtime_checks.digests.launches import Form, launch_of
from kvlint.runtime_checks.digests.pages import Pages, pages_at
from kvlint.runtime_checks.digests.reference import digests_of_rows, seeds

SEED = 0x1234_5678_9ABC_DEF1
FORMS = (
    None,
    Form(slots=1, words=512, warps=4),
    Form(slots=16, words=32, warps=4, stages=3),
    Form(slots=2, words=256, warps=4, stages=2, part=2048),
)


class Memory:
    """Random bytes on the device, and the same on the host."""

    def __init__(self, where: str, size: int) -> None:
        self.tensor = torch.randint(0, 256, (size,), dtype=torch.uint8, device=where)
        self.host = self.tensor.cpu().numpy()
        self.kind = "DRAM" if where == "cpu" else "VRAM"
        self.where = where

    @property
    def base(self) -> int:
        return int(self.tensor.data_ptr())

    def expected(self, pages: Pages, lanes: int) -> np.ndarray:
        offsets = (pages.addresses - np.uint64(self.base)).tolist()
        each = zip(offsets, pages.page_lengths.tolist(), strict=True)
        contents = [self.host[at : at + length].reshape(1, -1) for at, length in each]
        found = [
            [int(digests_of_rows(row, seed)[0]) for row in contents] for seed in seeds(SEED, lanes)
        ]
        return np.array(found[0] if lanes == 1 else found, np.uint64).T

    def blocks(self, begins: Any, strides: Any, lengths: Any, counts: Any, slots: Any) -> Pages:
        counts = np.array(counts, np.int64)
        return Pages(
            (np.array(begins) + self.base).astype(np.uint64),
            np.array(strides, np.int64),
            np.array(lengths, np.int64),
            np.maximum(0, np.minimum(counts.cumsum() - counts, len(slots) - counts)),
            counts,
            np.array(slots, np.int64),
            self.kind,
        )


def layouts(memory: Memory, rng: np.random.Generator) -> dict[str, Pages]:
    """Pages of every kind, by what they are."""
    many = 24 if memory.where == "cuda" else 3  # the interpreter takes its time
    slots = rng.permutation(24)[:many]
    far = rng.integers(0, (1 << 20) - 5000, 2 * many)
    lengths = rng.integers(1, 4999, 2 * many)
    return {
        "16-byte pages of four lengths": memory.blocks(
            [0, 4096, 65536, 16], [64, 2048, 4096, 16], [64, 1152, 4096, 16], [many] * 4, slots
        ),
        "pages of 73,728 and of 8 bytes": memory.blocks(
            [0, 8], [73728, 16], [73728, 8], [many, 1], slots % 13
        ),
        "4-byte words": memory.blocks([4, 20], [132, 2056], [132, 1156], [many, 2], slots),
        "odd lengths and addresses": memory.blocks(
            [0, 1, 2, 3, 7], [1031] * 5, [1, 2, 3, 67, 1001], [many] * 5, slots
        ),
        "anywhere, every length": pages_at(
            (far + memory.base).astype(np.uint64), lengths, memory.kind
        ),
        "very unequal counts": memory.blocks(
            [16 * n for n in range(30)], [64] * 30, [48] * 30, [1] * 29 + [many], slots
        ),
        "none": memory.blocks([0], [64], [64], [0], slots),
    }


def right(where: str) -> list[str]:
    """Raises AssertionError where something is wrong; else what was found right."""
    told, rng = [], np.random.default_rng(11)
    if where == "cuda":
        device.prepare()
    torch.manual_seed(11)
    memory = Memory(where, 1 << 20)
    kinds = list(product(FORMS, (1, 2))) if where == "cuda" else [(FORMS[0], 2), (FORMS[3], 1)]
    total = 0
    for name, pages in layouts(memory, rng).items():
        for form, lanes in kinds:
            found = device.start(pages, SEED, lanes, device=where, form=form).digests()
            expected = memory.expected(pages, lanes)
            assert np.array_equal(found, expected.reshape(found.shape)), (name, form, lanes)
            total += len(pages)
    told.append(f"{total:,} digests of pages of all kinds, in several forms and two lanes")
    if where == "cuda":
        told += [beyond_32_bits(), between_two_writes(), not_captured()]
    return told


def beyond_32_bits() -> str:
    """Slots whose offset in their region needs more than 32 bits."""
    tensor = torch.zeros(6 << 30, dtype=torch.uint8, device="cuda")
    slots = np.array([0, 299_000, 363_000, 140_000])
    for slot in slots.tolist():
        tensor[slot * 16384 :][:16384].random_(0, 256)
    one = np.ones(1, np.int64)
    base = np.array([tensor.data_ptr()], np.uint64)
    pages = Pages(base, one * 16384, one * 16384, one * 0, one * 4, slots, "VRAM")
    rows = np.stack([tensor[slot * 16384 :][:16384].cpu().numpy() for slot in slots.tolist()])
    assert np.array_equal(device.start(pages, SEED).digests(), digests_of_rows(rows, SEED))
    return "slots 5.9 GB from their region's begin"


def between_two_writes() -> str:
    """On a stream of its own, after one write and before the next."""
    memory = torch.zeros(64 << 20, dtype=torch.uint8, device="cuda")
    base = memory.data_ptr() + 16384 * np.arange(4096)
    pages = pages_at(base.astype(np.uint64), np.full(4096, 16384), "VRAM")
    torch.cuda.synchronize()
    pendings = []
    with torch.cuda.stream(torch.cuda.Stream()):
        for value in range(1, 9):
            memory.fill_(value)
            pendings.append(device.start(pages, SEED))
        memory.fill_(99)
    for value, pending in enumerate(pendings, 1):
        expected = digests_of_rows(np.full((1, 16384), value, np.uint8), SEED)
        assert (pending.digests() == expected[0]).all(), value
        assert pending.ready()
    return "eight digests between nine writes on one stream: each saw its own write"


def not_captured() -> str:
    """Nothing is launched into a CUDA graph, and asking does not end its capture."""
    memory = torch.ones(1 << 16, dtype=torch.uint8, device="cuda")
    pages = pages_at(np.array([memory.data_ptr()], np.uint64), np.array([4096]), "VRAM")
    pending = device.start(pages, SEED)
    graph, refused = torch.cuda.CUDAGraph(), ""
    with torch.cuda.graph(graph):
        memory.add_(1)
        pending.ready()
        try:
            device.start(pages, SEED)
        except UnreadableError as error:
            refused = str(error)
    assert refused, "a digest was captured"
    before = int(memory[0].item())
    graph.replay()
    assert int(memory[0].item()) == before + 1
    assert launch_of(pages, SEED).programs == 1
    assert len(pending.digests()) == 1
    return f"while a graph is captured: {refused!r}, and the graph is whole"
