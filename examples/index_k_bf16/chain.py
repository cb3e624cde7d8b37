"""Four requests on their way: computed, stored, sent, read."""

from dataclasses import dataclass, field

import torch

from examples.index_k_bf16 import kernels
from examples.index_k_bf16.pools import (
    C4_PAGE_BYTES,
    FP8_PAGE_BYTES,
    HEAD_DIM,
    LAYERS,
    PAGE,
    PAGE_BYTES,
    Pools,
)
from examples.index_k_bf16.transfer import Worker
from kvlint import runtime_checks
from kvlint.runtime_checks.comparing.topk import overlap

FAULTS = {
    "none": "nothing is wrong",
    "fp8-item-length": "a page of bf16 keys is taken for as many bytes as one of fp8 keys has",
    "constant-stride": "each region's descriptors are thought to begin at i * S0",
    "early-read": "decode reads before the pages have arrived",
    "reused-page": "prefill frees pages that are still being sent, and fills them anew",
    "wrong-page": "the store kernel puts the keys of request B one page too early",
    "batch-read": "the read kernel takes the pages of the first request for all",
}
TOP_K = 32


@dataclass
class Request:
    """
    entries   index keys of each layer
    known     of each layer what the cache keeps of them: keys and scales
    overlaps  of each layer what share of the top-k entries was right
    failed    why there is no answer
    """

    name: str
    entries: int
    known: list = field(default_factory=list)
    src_pages: list = field(default_factory=list)
    dst_pages: list = field(default_factory=list)
    overlaps: list = field(default_factory=list)
    failed: str = ""

    @property
    def pages(self):
        return -(-self.entries // PAGE)

    @property
    def seed(self):
        return ord(self.name)

    def compute(self, dtype, device):
        """What the model would."""
        draw = torch.Generator().manual_seed(self.seed)
        for _ in range(LAYERS):
            keys = torch.randn(self.entries, HEAD_DIM, generator=draw).to(device)
            self.known.append(kernels.quantized(keys, dtype))

    def queries(self, device):
        """(HEADS, 128) bf16 and (HEADS,) float32."""
        draw = torch.Generator().manual_seed(self.seed + 1000)
        queries = torch.randn(kernels.HEADS, HEAD_DIM, generator=draw)
        weights = torch.rand(kernels.HEADS, generator=draw)
        return queries.to(device, torch.bfloat16), weights.to(device)

    def slots(self, pages):
        """(entries,) where they go."""
        at = torch.tensor(pages)[:, None] * PAGE + torch.arange(PAGE)
        return at.flatten()[: self.entries]

    def contents(self, dtype, device):
        """What its pages should hold: (pages, bytes) of each region, c4 first."""
        c4, index = [], []
        for layer, (keys, scale) in enumerate(self.known):
            shape = (self.pages, C4_PAGE_BYTES)
            numbers = torch.arange(shape[0] * shape[1]) * (self.seed + layer) % 251
            c4.append(numbers.to(device, torch.uint8).view(shape))
            pages = torch.zeros((self.pages, PAGE_BYTES[dtype]), dtype=torch.uint8, device=device)
            slots = self.slots(range(self.pages)).to(device)
            kernels.store_in_torch(pages, keys, scale, slots)
            index.append(pages)
        return [*c4, *index]


class Chain:
    """Both sides, over memory of their own.

    expected  what every page should hold, put there by torch
    """

    def __init__(self, fault, dtype, device, number):
        self.fault, self.dtype, self.device = fault, dtype, device
        item_bytes = FP8_PAGE_BYTES if fault == "fp8-item-length" else None
        self.prefill, self.decode = (Pools(dtype, device, item_bytes) for _ in range(2))
        self.expected = Pools(dtype, device)
        for name in ("prefill", "decode", "expected"):
            pools = getattr(self, name)
            runtime_checks.guard_pool(pools, name=name, said=pools.regions())
        self.sender = Worker(f"prefill-{number}", self.prefill)
        self.receiver = Worker(f"decode-{number}", self.decode)
        self.sender.meet(self.receiver, constant_stride=fault == "constant-stride")
        self.flying = {}

    def play(self):
        """The requests, with all that became of them."""
        requests = [Request(*of) for of in (("A", 700), ("B", 200), ("C", 64), ("D", 500))]
        for request in requests:
            request.compute(self.dtype, self.device)
        first, last = requests[:3], requests[3]
        self.each(self.store, first)
        self.each(self.send, first)
        if self.fault == "early-read":
            self.read(first)
        if self.fault == "reused-page":
            self.prefill.give(first[0].src_pages)
            self.each(self.store, [last])
        self.each(self.arrive, first)
        if self.fault != "reused-page":
            self.prefill.give(first[0].src_pages)
            self.each(self.store, [last])
        self.each(self.send, [last])
        self.each(self.arrive, [last])
        self.read([last] if self.fault == "early-read" else requests)
        return requests

    def each(self, step, requests):
        """As servers do: a request fails, the worker lives on."""
        for request in requests:
            if not request.failed or request.name in self.flying:
                try:
                    step(request)
                except RuntimeError as error:
                    request.failed = request.failed or str(error)

    def store(self, request):
        """The request's keys into pages of prefill, by the kernel."""
        request.src_pages = self.prefill.take(request.pages)
        contents = request.contents(self.dtype, self.device)
        for buffer, pages in zip(self.prefill.c4, contents):
            buffer[request.src_pages] = pages
        wrong = self.fault == "wrong-page" and request.name == "B"
        slots = request.slots(request.src_pages).to(self.device)
        for buffer, (keys, scale) in zip(self.prefill.index, request.known):
            # The rest of a last page is not that of its last owner.
            buffer[request.src_pages] = 0
            kernels.store(buffer, keys, scale, slots, pages_off=1 if wrong else 0)
        meant = self.expected.take(request.pages)
        for buffer, pages in zip([*self.expected.c4, *self.expected.index], contents):
            buffer[meant] = pages
        self.synchronize()
        self.staged("store", request, "prefill", request.src_pages)
        self.staged("store", request, "expected", meant)

    def send(self, request):
        """Begin it."""
        request.dst_pages = self.decode.take(request.pages)
        handle = self.sender.make(request.src_pages, request.dst_pages, request.name)
        self.staged("send", request, "prefill", request.src_pages)
        self.sender.post(handle)
        self.flying[request.name] = handle

    def arrive(self, request):
        self.sender.finish(self.flying.pop(request.name), request.name)
        if not request.failed:
            self.staged("arrival", request, "decode", request.dst_pages)

    def read(self, requests):
        """Score all of them in one batch, layer by layer."""
        batch = []

        def ready(request):
            if request.failed:
                return
            self.staged("read", request, "decode", request.dst_pages)
            batch.append(request)

        self.each(ready, requests)
        if not batch:
            return
        table = torch.zeros((len(batch), max(r.pages for r in batch)), dtype=torch.int32)
        for row, request in enumerate(batch):
            table[row, : request.pages] = torch.tensor(request.dst_pages)
        table = table.to(self.device)
        lengths = torch.tensor([r.entries for r in batch], dtype=torch.int32, device=self.device)
        asked = [request.queries(self.device) for request in batch]
        queries, weights = (torch.stack(of) for of in zip(*asked))
        for layer, cache in enumerate(self.decode.index):
            found = kernels.logits(
                queries,
                weights,
                cache,
                table,
                lengths,
                self.dtype,
                one_table=self.fault == "batch-read",
            )
            for row, request in enumerate(batch):
                keys = kernels.restored(*request.known[layer])
                right = kernels.scores(queries[row], weights[row], keys)[None]
                mine = found[row, : request.entries][None]
                room = right.abs().amax(dim=1) * 1e-3
                request.overlaps.append(float(overlap(mine, right, TOP_K, room)[0]))

    def staged(self, stage, request, pool, slots):
        runtime_checks.stage(stage, owner=request.name, pool=pool, slots=slots)

    def synchronize(self):
        if self.device != "cpu":
            torch.cuda.synchronize()

    def right_pages(self, request):
        """How many of the pages that decode has of it, of all regions, hold what they should."""
        buffers = [*self.decode.c4, *self.decode.index]
        contents = request.contents(self.dtype, self.device)
        if not request.dst_pages:
            return 0
        return sum(
            int((buffer[request.dst_pages] == pages).all(dim=1).sum())
            for buffer, pages in zip(buffers, contents)
        )

    def close(self):
        self.sender.close()
        self.receiver.close()
