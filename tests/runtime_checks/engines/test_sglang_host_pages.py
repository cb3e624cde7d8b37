"""What pages hold when they are copied to host memory and back, as SGLang copies them."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from kvlint.runtime_checks.digests.service import Digesting
from kvlint.runtime_checks.engines import sglang
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.pools.watching import Pools
from kvlint.runtime_checks.stages.notes import Owned, Stage
from kvlint.runtime_checks.stages.noting import Stages
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.engines import shaped_like_sglang as shaped

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="process_vm_readv is Linux's")

HOST_MODULE = "sglang.srt.mem_cache.pool_host.mha"
BEFORE, AFTER = [5, 30], [1, 16]


class Armed:
    def __init__(self, policy: Policy, hooks: Any) -> None:
        self.policy = policy
        self.stages = Stages(policy, Digesting(policy.settings, policy))
        pools = Pools(policy, policy.settings)
        pools.stages = lambda: self.stages
        sglang.install(shaped.module(HOST_MODULE), hooks, pools)

    @property
    def found(self) -> list[str]:
        assert dict(self.policy.faults) == {}
        return [str(record["check"]) for record in self.policy.violations]


@pytest.fixture
def armed(policy: Callable[..., Policy], hooks: Any) -> Armed:
    return Armed(policy("assert", None), hooks)


@pytest.fixture
def pools(torch: Any) -> tuple[Any, Any]:
    pool, host = shaped.Pages(torch), shaped.Host(torch)
    for buffer in (*pool.k_buffer, *pool.v_buffer):
        buffer.normal_()
    return pool, host


def pages(torch: Any, numbers: list[int]) -> Any:
    return torch.cat([torch.arange(shaped.PAGE) + shaped.PAGE * number for number in numbers])


def back_up(torch: Any, pool: Any, host: Any, here: list[int], there: list[int]) -> None:
    indices = pages(torch, here), pages(torch, there)
    host.backup_from_device_all_layer(pool, *indices, "kernel")


def load(torch: Any, pool: Any, host: Any, here: list[int], there: list[int]) -> None:
    indices = pages(torch, here), pages(torch, there)
    for layer in range(2):
        host.load_to_device_per_layer(pool, *indices, layer, "kernel")


def test_pages_that_come_back_as_they_went_are_silent(armed, pools, torch):
    pool, host = pools
    back_up(torch, pool, host, BEFORE, AFTER)
    # The device's pages are another's by now.
    pool.k_buffer[0].zero_()
    load(torch, pool, host, [30], [2])
    load(torch, pool, host, BEFORE, [7, 8])
    assert armed.found == []
    stages = [(note.stage.value, note.memory.pool) for note in armed.stages.ledger.notes()]
    assert stages[:4] == [
        ("write-back", "device Host"),
        ("write-back", "host Host"),
        ("load-back", "host Host"),
        ("load-back", "device Host"),
    ]


def test_host_memory_that_changes_is_told_when_it_is_loaded(armed, pools, torch):
    pool, host = pools
    back_up(torch, pool, host, BEFORE, AFTER)
    host.v_data_refs[1][30 * shaped.PAGE + 2, 0, 3] += 1
    expected = (
        r"layer 1 value slot 30 \(page 1 of host copy 1\) changed between write-back and load-back"
    )
    with pytest.raises(Violation, match=expected):
        load(torch, pool, host, BEFORE, [7, 8])
    assert armed.found == ["page-changed"]


def test_a_copy_that_brings_other_bytes_is_told_after_it(armed, pools, torch):
    pool, host = pools[0], shaped.HostWithAWrongKernel(torch)
    expected = (
        r"layer 0 key slot 30 \(page 1 of host copy 1\) changed between write-back \(device .* "
        "slot 16\\) and write-back .*; it holds what belongs to page 0 of layer 0 key"
    )
    with pytest.raises(Violation, match=expected):
        back_up(torch, pool, host, BEFORE, AFTER)
    assert armed.found == ["page-misplaced"]


def test_pages_that_were_given_back_may_hold_anything(armed, pools, torch):
    pool, host = pools
    back_up(torch, pool, host, BEFORE, AFTER)
    host.free(pages(torch, [30]))
    host.k_data_refs[0][30 * shaped.PAGE] += 1
    load(torch, pool, host, BEFORE, [7, 8])
    assert armed.found == []
    host.k_data_refs[0][5 * shaped.PAGE] += 1
    with pytest.raises(Violation, match=r"slot 5 \(page 0 of host copy 1\) changed"):
        load(torch, pool, host, BEFORE, [7, 8])


def test_where_nobody_says_when_pages_are_given_back_only_the_copy_is_looked_at(
    armed, pools, torch, monkeypatch
):
    pool, _ = pools

    class Unwatched(shaped.Host):
        def free(self, indices: Any) -> int:
            return len(indices)

    host = Unwatched(torch)
    back_up(torch, pool, host, BEFORE, AFTER)
    host.k_data_refs[0][30 * shaped.PAGE] += 1
    load(torch, pool, host, BEFORE, [7, 8])
    assert armed.found == []


def test_single_tokens_are_followed_one_by_one(armed, pools, torch):
    pool, host = pools
    here, there = torch.tensor([9, 3, 7]), torch.tensor([1, 66, 4])
    host.backup_from_device_all_layer(pool, here, there, "kernel")
    host.k_data_refs[1][3] += 1
    host.load_to_device_per_layer(pool, here, there, 0, "kernel")
    with pytest.raises(Violation, match=r"layer 1 key slot 3 \(page 1 of host copy 1\) changed"):
        host.load_to_device_per_layer(pool, here, there, 1, "kernel")


def test_the_request_whose_pages_they_were_is_named(armed, pools, torch):
    import numpy as np

    pool, host = pools
    back_up(torch, pool, host, BEFORE, AFTER)
    device = armed.stages.ledger.notes()[0].memory
    owned = Owned("A", np.arange(2), np.array([4, 5]))
    armed.stages.noted(Stage.STORE, device, np.array(AFTER), [owned], writes=True)
    pool.v_buffer[0][16 * shaped.PAGE] += 1
    with pytest.raises(Violation, match=r"page 5 of request A\) changed between store and write"):
        back_up(torch, pool, host, [8, 9], AFTER)
    owners = {note.owner for note in armed.stages.ledger.notes()}
    assert owners == {"A", "host copy 1", "host copy 2 of request A"}


def test_in_a_mode_that_reads_no_bytes_nothing_of_it_is_there(policy, hooks, pools, torch):
    armed = policy("log", None)
    sglang.install(shaped.module(HOST_MODULE), hooks, Pools(armed, armed.settings))
    pool, host = pools
    back_up(torch, pool, host, BEFORE, AFTER)
    assert "sglang.Host.free" not in hooks.status
    assert "sglang.Host.backup_from_device_all_layer" in hooks.status
