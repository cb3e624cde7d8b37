"""Copies between a pool and its copy in host memory, as SGLang makes them."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from kvlint.runtime_checks.engines import sglang
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.pools.watching import Pools
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.engines import shaped_like_sglang as shaped

HOST_MODULE = "sglang.srt.mem_cache.pool_host.mha"


@pytest.fixture
def pools(policy: Callable[..., Policy], hooks: Any) -> Pools:
    armed = policy()
    made = Pools(armed, armed.settings)
    sglang.install(shaped.module(HOST_MODULE), hooks, made)
    return made


def pages(torch: Any, *numbers: int) -> Any:
    return torch.cat([torch.arange(shaped.PAGE) + shaped.PAGE * number for number in numbers])


def found(pools: Pools) -> list[tuple[Any, ...]]:
    assert dict(pools.policy.faults) == {}
    return [(r["check"], r["message"]) for r in pools.policy.violations]


def test_right_copies_are_silent_and_are_made(pools, torch):
    pool, host = shaped.Pages(torch), shaped.HostOfAnotherKind(torch)
    pool.k_buffer[1].normal_()
    host.backup_from_device_all_layer(pool, pages(torch, 5, 30), pages(torch, 1, 16), "direct")
    other = shaped.Pages(torch)
    for layer in range(2):
        host.load_to_device_per_layer(other, pages(torch, 30), pages(torch, 2), layer, "kernel")
    assert found(pools) == []
    assert torch.equal(other.k_buffer[1][8:12], pool.k_buffer[1][64:68])


HOST, DEVICE = "host Host", "the device pool"
FAULTS = [
    ([0, 1, 2], [0, 1, 2, 3], "", f"copy-counts: 4 indices of {DEVICE} are copied to 3 of {HOST}"),
    (
        [0, 1, 128, 3],
        [0, 1, 2, 3],
        "",
        f"copy-range: index 128 (at 2) of {HOST} is not in it: it has 128 entries",
    ),
    (
        [0, 1, 2, 3],
        [68, 1, 2, 3],
        "",
        f"copy-range: index 68 (at 0) of {DEVICE} is not in it: it has 68 entries",
    ),
    (
        [0, 1, 2, 0],
        [0, 1, 2, 3],
        "",
        f"duplicate-destination: index 0 of {HOST} is written from two entries (at 0 and at 3)",
    ),
    (
        [0, 1, 2],
        [0, 1, 2],
        "direct",
        f"copy-pages: 3 entries of {DEVICE} are copied in pages of 4: the last page has 3",
    ),
    (
        [2, 3, 4, 5],
        [4, 5, 6, 7],
        "page_first_direct",
        f"copy-pages: index 2 (at 0) of {HOST}: a copy of whole pages of 4 begins 2 entries into "
        "page 0",
    ),
    (
        [0, 0, 2, 128],
        [4, 5, 6, 7],
        "page_first_direct",
        f"copy-range: index 128 (at 3) of {HOST} is not in it: it has 128 entries",
    ),
    (
        [0, 1, 2, 3],
        [4, 5, 8, 9],
        "page_first_direct",
        f"copy-pages: index 8 (at 2) of {DEVICE}: a copy of whole pages of 4 should go on with 6",
    ),
]


@pytest.mark.parametrize(("host_indices", "device_indices", "how", "told"), FAULTS)
def test_each_fault_is_told(pools, torch, host_indices, device_indices, how, told):
    pool, host = shaped.Pages(torch), shaped.Host(torch)
    host.layout = "layer_first" if how in ("", "direct") else how
    backend = how if how == "direct" else "kernel"
    # The copy goes on, and fails, or not, by itself.
    with suppress(IndexError, RuntimeError):
        host.backup_from_device_all_layer(
            pool, torch.tensor(host_indices), torch.tensor(device_indices), backend
        )
    assert [": ".join(one) for one in found(pools)] == [told]


def test_in_a_mode_that_raises_nothing_is_copied(policy, hooks, torch):
    armed = policy("assert")
    sglang.install(shaped.module(HOST_MODULE), hooks, Pools(armed, armed.settings))
    pool, host = shaped.Pages(torch), shaped.Host(torch)
    pool.k_buffer[0].fill_(1)
    twice = torch.tensor([0, 1, 1, 3])
    for _ in range(2):
        with pytest.raises(Violation, match="index 1 of host Host is written from two entries"):
            host.backup_from_device_all_layer(pool, twice, pages(torch, 0), "kernel")
    assert not host.kv_buffer.any()


def test_pages_of_another_size_are_told_once_for_the_pools(pools, torch):
    pool, host = shaped.Pages(torch), shaped.Host(torch, width=2 * shaped.WIDTH)
    for number in (1, 2):
        with pytest.raises(RuntimeError):
            host.backup_from_device_all_layer(
                pool, pages(torch, number), pages(torch, number), "kernel"
            )
    assert found(pools) == [
        (
            "copy-lengths",
            "a page of layer 0 key has 256 bytes of bfloat16 in Host and 128 of bfloat16 on the "
            "device",
        ),
        (
            "copy-lengths",
            "a page of layer 0 value has 256 bytes of bfloat16 in Host and 128 of bfloat16 on the "
            "device",
        ),
    ]


def test_layers_of_the_host_that_share_bytes_are_told(pools, torch):
    pool, host = shaped.Pages(torch), shaped.Host(torch)
    flat = host.kv_buffer[0].flatten()
    half = flat.numel() // 2
    shape = host.k_data_refs[0].shape
    host.k_data_refs[1] = flat[half - 64 :][: shape.numel()].view(shape)
    host.backup_from_device_all_layer(pool, pages(torch, 0), pages(torch, 0), "kernel")
    ((check, message),) = found(pools)
    assert check == "region-overlap"
    assert message.startswith("kv region 1 'host layer 1 key'")


def test_pools_of_a_group_are_each_looked_at(pools, torch):
    pool = shaped.Pages(torch)
    group = shaped.Group(shaped.Host(torch), shaped.Host(torch, tokens=8))
    with suppress(IndexError):
        group.backup_from_device_all_layer(pool, pages(torch, 5), pages(torch, 5), "kernel")
    assert [": ".join(one) for one in found(pools)] == [
        f"copy-range: index 20 (at 0) of {HOST} is not in it: it has 8 entries"
    ]


def test_indices_of_one_layer_are_not_read_again_for_the_next(pools, torch, monkeypatch):
    pool, host = shaped.Pages(torch), shaped.Host(torch)
    here, there = pages(torch, 3), pages(torch, 4)
    reads = []
    asked = torch.Tensor.numpy
    monkeypatch.setattr(torch.Tensor, "numpy", lambda t: reads.append(1) or asked(t))
    for layer in (0, 1):
        host.load_to_device_per_layer(pool, here, there, layer, "kernel")
    assert len(reads) == 2


def test_indices_that_were_changed_in_place_are_read_again(pools, torch):
    pool, host = shaped.Pages(torch), shaped.Host(torch)
    here, there = pages(torch, 3), pages(torch, 4)
    host.load_to_device_per_layer(pool, here, there, 0, "kernel")
    there[1] = there[0]
    host.load_to_device_per_layer(pool, here, there, 1, "kernel")
    assert [check for check, _ in found(pools)] == ["duplicate-destination"]


def test_what_may_be_read_twice_may_not_be_written_twice(pools, torch):
    """The same indices, and the other way round."""
    pool, host = shaped.Pages(torch), shaped.Host(torch)
    here, there = pages(torch, 3), torch.tensor([16, 16, 17, 18])
    host.backup_from_device_all_layer(pool, here, there, "kernel")
    assert found(pools) == []
    host.load_to_device_per_layer(pool, here, there, 0, "kernel")
    assert [check for check, _ in found(pools)] == ["duplicate-destination"]


def test_a_host_pool_that_is_wrong_is_raised_for_every_copy(policy, hooks, torch):
    armed = policy("assert")
    sglang.install(shaped.module(HOST_MODULE), hooks, Pools(armed, armed.settings))
    pool, host = shaped.Pages(torch), shaped.Host(torch, width=2 * shaped.WIDTH)
    for number in (1, 2):
        with pytest.raises(Violation, match="a page of layer 0"):
            host.backup_from_device_all_layer(
                pool, pages(torch, number), pages(torch, number), "kernel"
            )


@pytest.mark.parametrize("mode", ["log", "paranoid"])
def test_indices_that_cannot_be_read_are_counted_only(policy, hooks, torch, mode):
    armed = policy(mode)
    sglang.install(shaped.module(HOST_MODULE), hooks, Pools(armed, armed.settings))
    pool, host = shaped.Pages(torch), shaped.Host(torch)
    with suppress(Exception):
        host.backup_from_device_all_layer(
            pool, pages(torch, 0).to("meta"), pages(torch, 0), "kernel"
        )
    assert (dict(armed.faults), list(armed.violations)) == ({}, [])
    with suppress(Exception), torch.inference_mode():
        host.backup_from_device_all_layer(pool, pages(torch, 0)[:2], pages(torch, 0), "kernel")
    assert [record["check"] for record in armed.violations] == ["copy-counts"]
    assert dict(armed.faults) == {}
