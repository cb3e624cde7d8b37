"""Which quotients KV204 takes for strides and counts of memory, and what makes them exact."""

from textwrap import dedent

import pytest

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.findings import Confidence, Status

SENDER = """
    class Sender:
        def __init__(self, engine):
            self.engine = engine

        def register(self, cache, num_blocks, page_size):
            self.base_addr = cache.data_ptr()
            {taken}

        def send(self, session, block_ids, remote_addr):
            src = [self.base_addr + block_id * self.block_len for block_id in block_ids]
            self.engine.batch_transfer_sync_write(session, src, [remote_addr], [self.block_len])


    def refuse_remainder(whole, part):
        if whole % part:
            raise ValueError("a remainder")


    def align_up(number, to):
        return (number + to - 1) // to * to
"""
SHARED = "self.block_len = cache.nbytes // num_blocks"


@pytest.fixture
def found(project):
    def run(taken):
        source = SENDER.format(taken=taken.replace("\n", "\n            "))
        root = project({"sender.py": dedent(source)})
        report = check(root, [root], all_rules())
        assert not report.faults
        return [finding for finding in report.findings if finding.code == "KV204"]

    return run


def test_a_stride_that_is_a_share_of_bytes_may_lose_a_remainder(found):
    (finding,) = found(SHARED)
    assert (finding.status, finding.confidence) == (Status.UNGUARDED, Confidence.HIGH)
    assert finding.formula == "num_blocks divides nbytes"


@pytest.mark.parametrize(
    "taken",
    [
        f"assert cache.nbytes % num_blocks == 0\n{SHARED}",
        f"if cache.nbytes % num_blocks != 0:\n    raise ValueError('uneven')\n{SHARED}",
        f"refuse_remainder(cache.nbytes, num_blocks)\n{SHARED}",
        f"{SHARED}\nassert self.block_len * num_blocks == cache.nbytes",
        f"if cache[0].nbytes * num_blocks != cache.nbytes:\n    raise ValueError()\n{SHARED}",
    ],
)
def test_a_check_of_the_remainder_or_of_the_product_settles_it(found, taken):
    (finding,) = found(taken)
    assert finding.status is Status.GUARDED
    assert finding.guard is not None


@pytest.mark.parametrize(
    "taken",
    [
        "self.block_len = cache.nbytes // cache.shape[0]",
        "total = align_up(cache.nbytes, num_blocks)\nself.block_len = total // num_blocks",
    ],
)
def test_a_construction_that_leaves_no_remainder_settles_it(found, taken):
    assert all(finding.status is Status.GUARDED for finding in found(taken))


@pytest.mark.parametrize(
    "taken",
    [
        "self.block_len = (cache.nbytes + num_blocks - 1) // num_blocks",
        "self.block_len = cache.nbytes // page_size * page_size",
        "self.block_len = cache.nbytes // 2",
        "self.block_len = (cache[0].nbytes * num_blocks) // num_blocks",
    ],
)
def test_rounding_on_purpose_and_splitting_in_two_assume_nothing(found, taken):
    assert not found(taken)


def test_how_many_fit_a_budget_is_rounded_down_on_purpose(project):
    source = """
    import torch


    class Pool:
        def __init__(self, budget_bytes, page_bytes):
            self.kv_buffer = torch.zeros((budget_bytes // page_bytes, page_bytes))
    """
    root = project({"pool.py": dedent(source)})
    assert "KV204" not in {f.code for f in check(root, [root], all_rules()).findings}


def test_a_remainder_that_is_only_logged_is_lost_all_the_same(found):
    (finding,) = found(f"if cache.nbytes % num_blocks:\n    print('uneven')\n{SHARED}")
    assert finding.status is Status.UNGUARDED


def test_what_names_alone_tell_is_never_sure(project):
    source = """
    import torch


    class Pool:
        def __init__(self, max_tokens, page_size, width):
            self.kv_buffer = torch.zeros((max_tokens // page_size, page_size * width))
    """
    root = project({"pool.py": dedent(source)})
    report = check(root, [root], all_rules())
    (finding,) = [f for f in report.findings if f.code == "KV204"]
    assert finding.confidence is Confidence.MEDIUM
