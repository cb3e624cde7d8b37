"""What KV205 takes for a length where a stride belongs, and what settles it."""

from textwrap import dedent

import pytest

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.findings import Confidence, Status

SENDER = """
    import math


    class Sender:
        def __init__(self, engine):
            self.engine = engine
            self.base_addrs = []
            self.block_lens = []

        def register_kv_caches(self, kv_caches):
            for cache in kv_caches.values():
                self.base_addrs.append(cache.data_ptr())
                {taken}

        def send(self, session, local_block_ids, remote_block_ids, remote_addrs):
            src, dst, lengths = [], [], []
            for base_addr, remote_addr, block_len in zip(
                self.base_addrs, remote_addrs, self.block_lens, strict=True
            ):
                for block_id, remote_id in zip(local_block_ids, remote_block_ids, strict=True):
                    {stepped}
                    lengths.append(block_len)
            self.engine.batch_transfer_sync_write(session, src, dst, lengths)
"""
STEPPED = """src.append(base_addr + block_id * block_len)
                    dst.append(remote_addr + remote_id * block_len)"""
BY_SHAPE = "self.block_lens.append(cache.element_size() * math.prod(cache.shape[1:]))"


@pytest.fixture
def found(project):
    def run(source):
        root = project({"sender.py": dedent(source)})
        report = check(root, [root], all_rules())
        assert not report.faults
        return [finding for finding in report.findings if finding.code == "KV205"]

    return run


def sender(taken=BY_SHAPE, stepped=STEPPED):
    return SENDER.format(taken=taken, stepped=stepped)


@pytest.mark.parametrize(
    "taken",
    [
        BY_SHAPE,
        "self.block_lens.append(cache.nbytes // cache.shape[0])",
        "self.block_lens.append(cache[0].numel() * cache.element_size())",
        "self.block_lens.append(cache.numel() * cache.element_size() // len(cache))",
    ],
)
def test_the_share_of_a_tensor_handed_in_says_nothing_of_how_far_its_slots_lie(found, taken):
    (finding,) = found(sender(taken))
    assert (finding.status, finding.confidence) == (Status.UNGUARDED, Confidence.HIGH)
    assert dict(finding.counterexample.quantities) == {"item length": (2,), "transfer length": (1,)}
    assert min(finding.counterexample.slots) > 1  # one slot alone has no next one


def test_both_ends_of_one_loop_are_one_assumption(found):
    (finding,) = found(sender())
    written = dedent(sender()).splitlines()[finding.span.line - 1]
    assert written.strip() == "src.append(base_addr + block_id * block_len)"


def test_a_length_that_a_message_carries_is_followed(found):
    source = """
    from dataclasses import dataclass


    @dataclass
    class Meta:
        base_addrs: list[int]
        block_len: int


    class Worker:
        def register_kv_caches(self, kv_caches):
            caches = list(kv_caches.values())
            self.block_len = caches[0].nbytes // caches[0].shape[0]
            self.base_addrs = [cache.data_ptr() for cache in caches]
            return Meta(base_addrs=self.base_addrs, block_len=self.block_len)

        def add_remote(self, agent, meta: Meta, num_blocks):
            descs = []
            for base_addr in meta.base_addrs:
                for block_id in range(num_blocks):
                    offset = block_id * meta.block_len
                    addr = base_addr + offset
                    descs.append((addr, meta.block_len, 0))
            return agent.prep_xfer_dlist("peer", descs)
    """
    (finding,) = found(source)
    assert "block_id * meta.block_len" in dedent(source).splitlines()[finding.span.line - 1]


def test_a_helper_that_is_given_base_and_length_makes_the_address(found):
    source = """
    def start_of(base, block_id, block_len):
        return base + block_id * block_len


    class Sender:
        def __init__(self, engine):
            self.engine = engine

        def register(self, cache):
            self.base_addr = cache.data_ptr()
            self.block_len = cache[0].nbytes

        def send(self, session, block_ids, remote_addr):
            src = [start_of(self.base_addr, b, self.block_len) for b in block_ids]
            self.engine.batch_transfer_sync_write(session, src, [remote_addr], [self.block_len])
    """
    assert {finding.confidence for finding in found(source)} == {Confidence.HIGH}


def test_a_stride_is_what_it_should_be_whatever_it_is_called(found):
    assert not found(sender("self.block_lens.append(cache.stride(0) * cache.element_size())"))


@pytest.mark.parametrize(
    "check",
    [
        "assert cache.is_contiguous()",
        "if not cache.is_contiguous():\n                    raise ValueError('gaps')",
        "assert cache.stride(0) == cache[0].numel()",
    ],
)
def test_a_check_where_the_length_is_taken_settles_it(found, check):
    (finding,) = found(sender(f"{check}\n                {BY_SHAPE}"))
    assert finding.status is Status.GUARDED
    assert finding.guard is not None


def test_a_helper_that_refuses_gaps_settles_it(found):
    source = (
        sender(f"refuse_gaps(cache)\n                {BY_SHAPE}")
        + """
    def refuse_gaps(tensor):
        if not tensor.is_contiguous():
            raise ValueError("its slots do not follow one another")
    """
    )
    (finding,) = found(source)
    assert finding.status is Status.GUARDED


def test_gaps_that_are_only_logged_settle_nothing(found):
    logged = "if not cache.is_contiguous():\n                    print('gaps')"
    (finding,) = found(sender(f"{logged}\n                {BY_SHAPE}"))
    assert finding.status is Status.UNGUARDED


def test_a_tensor_that_the_project_makes_as_a_whole_has_no_gaps(found):
    source = """
    import torch


    class Pool:
        def __init__(self, pages, width, layers, engine):
            self.engine = engine
            self.kv_buffers = [torch.zeros((pages, width)) for _ in range(layers)]
            self.kv_item_lens = [buffer[0].nbytes for buffer in self.kv_buffers]
            self.kv_ptrs = [buffer.data_ptr() for buffer in self.kv_buffers]

        def send(self, session, page_ids, remote_ptrs):
            for ptr, item_len, remote_ptr in zip(
                self.kv_ptrs, self.kv_item_lens, remote_ptrs, strict=True
            ):
                src = [ptr + page_id * item_len for page_id in page_ids]
                self.engine.batch_transfer_sync_write(session, src, [remote_ptr], [item_len])
    """
    (finding,) = found(source)
    assert finding.status is Status.GUARDED


def test_a_length_that_only_a_name_tells_is_never_sure(found):
    source = """
    def send(engine, session, args, page_ids, remote_ptrs):
        for ptr, item_len, remote_ptr in zip(
            args.kv_data_ptrs, args.kv_item_lens, remote_ptrs, strict=True
        ):
            src = [ptr + page_id * item_len for page_id in page_ids]
            engine.batch_transfer_sync_write(session, src, [remote_ptr], [item_len])
    """
    (finding,) = found(source)
    assert finding.status is Status.CONDITIONAL
    assert finding.confidence is Confidence.MEDIUM


def test_a_share_of_a_slot_for_each_rank_numbers_no_slots(found):
    """Which heads a rank sends is an offset within one slot."""
    stepped = """src.append(base_addr + self.rank % 2 * (block_len // 2))
                    dst.append(remote_addr)"""
    assert not found(sender(stepped=stepped))


def test_a_count_of_slots_is_no_slot(found):
    """`base + num_blocks * block_len` is where a region ends."""
    stepped = """src.append(base_addr + self.num_blocks * block_len)
                    dst.append(remote_addr)"""
    assert not found(sender(stepped=stepped))


CARRIED = {
    "items of a mapping": (
        "self.lens = {}\n        self.lens['kv'] = cache[0].nbytes",
        "[self.base_addr + b * self.lens['kv'] for b in block_ids]",
    ),
    "an object in a list": (
        "self.regions = [Region(base=self.base_addr, length=cache[0].nbytes)]",
        "[r.base + b * r.length for r in self.regions for b in block_ids]",
    ),
    "what a helper multiplies": (
        "self.length = cache.nbytes // cache.shape[0]",
        "[self.base_addr + times(b, self.length) for b in block_ids]",
    ),
    "an array": (
        "self.length = cache.shape[1] * cache.shape[2] * cache.element_size()",
        "(np.asarray(block_ids) * self.length + self.base_addr).tolist()",
    ),
}


@pytest.mark.parametrize(("taken", "addresses"), CARRIED.values(), ids=CARRIED)
def test_a_length_is_followed_through_what_carries_it(found, taken, addresses):
    source = f"""
from dataclasses import dataclass

import numpy as np


@dataclass
class Region:
    base: int
    length: int


def times(block_id, length):
    return block_id * length


class Sender:
    def register(self, cache):
        self.base_addr = cache.data_ptr()
        {taken}

    def send(self, engine, session, block_ids, remote_addrs, lengths):
        src = {addresses}
        engine.batch_transfer_sync_write(session, src, remote_addrs, lengths)
"""
    assert {finding.confidence for finding in found(source)} == {Confidence.HIGH}


def test_a_number_of_a_layer_is_no_slot(found):
    stepped = """for layer_id in range(self.num_hidden_layers):
                        src.append(base_addr + layer_id * block_len)
                        dst.append(remote_addr)"""
    assert not found(sender(stepped=stepped))


CHECKED = """
    class Sender:
        def __init__(self, kv_cache):
            {made}
            self.kv_cache = kv_cache

        def at(self, block_id):
            kv_cache = self.kv_cache
            {used}
            return self.kv_cache.data_ptr() + block_id * self.kv_cache[0].nbytes
"""


def test_gaps_that_a_constructor_refuses(found):
    made = "if not kv_cache.is_contiguous(): raise ValueError('gaps')"
    findings = found(CHECKED.format(made=made, used="pass"))
    assert {f.status for f in findings} <= {Status.GUARDED}


@pytest.mark.parametrize(
    "used",
    ["assert kv_cache.stride(1) == 1", "query = self.query.contiguous()"],
    ids=["the stride of another axis", "a copy of something else"],
)
def test_what_says_nothing_of_the_gaps_between_slots(found, used):
    findings = found(CHECKED.format(made="pass", used=used))
    assert Status.GUARDED not in {f.status for f in findings}
    assert findings
