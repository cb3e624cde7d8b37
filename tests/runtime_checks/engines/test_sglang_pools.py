"""The adapter of SGLang's pools, on classes of this repository's own that are shaped like them.

`tests/engines` has the same on SGLang's own classes.
"""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from kvlint.runtime_checks.engines import sglang
from kvlint.runtime_checks.engines.sglang_pools import read
from kvlint.runtime_checks.hooking import Hooks
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.pools.watching import Pools
from tests.runtime_checks.engines import shaped_like_sglang as shaped

BYTES_OF_A_PAGE = shaped.PAGE * shaped.HEADS * shaped.WIDTH * 2


@pytest.fixture
def pools(policy: Callable[..., Policy], hooks: Hooks) -> Pools:
    armed = policy()
    made = Pools(armed, armed.settings)
    sglang.install(shaped.module(), hooks, made)
    return made


def found(pools: Pools) -> list[tuple[Any, ...]]:
    records = pools.policy.violations
    assert dict(pools.policy.faults) == {}
    return [(r["check"], r["region"], r["region_name"], r["layer"], r["slot"]) for r in records]


def known(pools: Pools, addresses: list[int]) -> list[tuple[Any, ...]]:
    claims = [pools.known(address) for address in addresses]
    return [(c.name, c.layer, c.role, c.slot_rows) if c else None for c in claims]


def test_right_pools_are_silent_and_their_regions_are_known(pools, torch):
    pool = shaped.Pages(torch)
    addresses, *_ = pool.get_contiguous_buf_infos()
    assert known(pools, addresses) == [
        ("layer 0 key", 0, "key", 4),
        ("layer 1 key", 1, "key", 4),
        ("layer 0 value", 0, "value", 4),
        ("layer 1 value", 1, "value", 4),
    ]
    assert found(pools) == []


def test_what_a_base_class_is_asked_for_is_looked_at_once(pools, torch):
    pool = shaped.PagesOfAnotherKind(torch)
    pool.k_buffer[1] = torch.zeros((68, 2, 16), dtype=torch.bfloat16)[:, :, ::2]
    pool.get_contiguous_buf_infos()
    assert len(pools.policy.violations) == 1


def test_a_pool_in_a_pool_is_told_by_the_layers_of_the_outer_one(pools, torch):
    pool = shaped.Window(torch)
    full, *_ = pool.get_contiguous_buf_infos()
    window, *_ = pool.get_state_buf_infos()
    assert [name for name, *_ in known(pools, full)] == [
        "layer 1 key",
        "layer 3 key",
        "layer 1 value",
        "layer 3 value",
    ]
    assert [name for name, *_ in known(pools, window)] == [
        "layer 0 swa key",
        "layer 2 swa key",
        "layer 0 swa value",
        "layer 2 swa value",
    ]
    assert found(pools) == []


@pytest.mark.parametrize(("layers", "size"), [((0, 3), 5), ((2,), 5), ((0, 1, 2), 2)])
def test_layers_stacked_in_one_tensor_are_told_apart(pools, torch, layers, size):
    pool = shaped.States(torch, layers, size)
    addresses, *_ = pool.get_state_buf_infos()
    assert known(pools, addresses) == [
        (f"layer {layer} temporal state", layer, "temporal state", 1) for layer in layers
    ]
    assert found(pools) == []


def test_a_layer_without_a_buffer_keeps_its_place(pools, torch):
    pool = shaped.Elided(torch)
    pool.kv_buffer[2] = torch.zeros(shaped.TOKENS + shaped.PAGE, 64)[:, ::2]
    pool.get_contiguous_buf_infos()
    assert found(pools) == [("item-length", 2, "layer 2 kv", 2, 1)]
    (record,) = pools.policy.violations
    assert record["code"] == "KV404"


def test_as_many_pages_as_tokens_are_still_pages(pools, torch):
    pool = shaped.KeysOfMoreTokens(torch)
    addresses, *_ = pool.get_state_buf_infos()
    assert known(pools, addresses) == [("layer 0 index key", 0, "index key", None)]
    assert found(pools) == []


def test_pages_that_hold_all_layers_are_no_regions_of_one_layer(pools, torch):
    pool = shaped.Envelope(torch)
    addresses, *_ = pool.get_contiguous_buf_infos()
    assert known(pools, addresses) == [("pages", None, "pages", None)]
    assert found(pools) == []


def test_a_slot_is_as_many_pages_of_a_part_as_its_page_has(pools, torch):
    pool = shaped.Compressed(torch)
    addresses, *_ = pool.get_contiguous_buf_infos()
    assert known(pools, addresses) == [
        ("layer 1 c4 kv", 1, "c4 kv", 1),
        ("layer 1 c4 index key", 1, "c4 index key", 2),
    ]
    assert found(pools) == []


class Faulty(shaped.Pages):
    """Says what it is told to say."""

    change: Any = None

    def get_contiguous_buf_infos(self) -> shaped.Said:
        said = super().get_contiguous_buf_infos()
        type(self).change(self, *said)
        return said


def shorter_elements(pool, addresses, lengths, item_lengths):
    item_lengths[2] //= 2


def length_of_a_longer_neighbour(pool, addresses, lengths, item_lengths):
    lengths[2] = lengths[2] + 3 * item_lengths[2]


def a_page_late(pool, addresses, lengths, item_lengths):
    addresses[2] += item_lengths[2]


def length_of_the_first_for_all(pool, addresses, lengths, item_lengths):
    pool.v_buffer[0] = pool.v_buffer[0][:-8].clone()
    addresses[2] = pool.v_buffer[0].data_ptr()


def strided(pool, addresses, lengths, item_lengths):
    pool.v_buffer[0] = pool.v_buffer[0].new_zeros((136, 2, 8))[::2]
    addresses[2] = pool.v_buffer[0].data_ptr()


@pytest.mark.parametrize(
    ("change", "check", "slot", "values"),
    [
        (shorter_elements, "item-length", 1, (BYTES_OF_A_PAGE // 2, BYTES_OF_A_PAGE)),
        (length_of_a_longer_neighbour, "pool-length", 17, (2560, 2176)),
        (a_page_late, "pool-length", 16, (2176, 2048)),
        (length_of_the_first_for_all, "pool-length", 15, (2176, 1920)),
        (strided, "item-length", 1, (BYTES_OF_A_PAGE, 2 * BYTES_OF_A_PAGE)),
    ],
)
def test_each_fault_is_told_at_its_region_with_both_values(
    pools, hooks, torch, change, check, slot, values
):
    made = shaped.ModuleType(shaped.MODULE)
    Faulty.__module__, made.Faulty, Faulty.change = shaped.MODULE, Faulty, staticmethod(change)
    sglang.install(made, hooks, pools)
    Faulty(torch).get_contiguous_buf_infos()
    assert found(pools) == [(check, 2, "layer 0 value", 0, slot)]
    assert tuple(pools.policy.violations[0]["values"].values()) == values


def test_lists_of_different_lengths_are_told(pools, hooks, torch):
    def drop(pool, addresses, lengths, item_lengths):
        del item_lengths[3]

    made = shaped.ModuleType(shaped.MODULE)
    Faulty.__module__, made.Faulty, Faulty.change = shaped.MODULE, Faulty, staticmethod(drop)
    sglang.install(made, hooks, pools)
    Faulty(torch).get_contiguous_buf_infos()
    (record,) = pools.policy.violations
    assert record["check"] == "pool-lists"
    assert record["values"] == {"addresses": 4, "lengths": 4, "item lengths": 3}


def test_a_pool_that_is_gone_is_forgotten(pools, torch):
    pool = shaped.Pages(torch)
    addresses, *_ = pool.get_contiguous_buf_infos()
    del pool
    assert known(pools, addresses) == [None] * 4


def test_what_no_pool_answers_goes_through_unread(pools, hooks, torch):
    class Group:
        def get_contiguous_buf_infos(self):
            return ([1], [2], [3]), ([4], [5], [6])

    made = shaped.ModuleType(shaped.MODULE)
    Group.__module__, made.Group = shaped.MODULE, Group
    sglang.install(made, hooks, pools)
    assert Group().get_contiguous_buf_infos() == (([1], [2], [3]), ([4], [5], [6]))
    assert found(pools) == []


def test_the_lists_given_back_are_the_pools_own(pools, torch):
    """Engines append the entries of a draft model to them."""
    pool = shaped.Pages(torch)
    addresses, *_ = pool.get_contiguous_buf_infos()
    addresses += [1, 2, 3]
    assert known(pools, [1, 2, 3]) == [None, None, None]


def test_a_class_that_must_be_there_and_is_not_is_told_in_the_status(hooks, policy):
    armed = policy()
    made = shaped.ModuleType("sglang.srt.mem_cache.swa_memory_pool")
    sglang.install(made, hooks, Pools(armed, armed.settings))
    assert hooks.status == {
        "sglang.SWAKVPool.get_contiguous_buf_infos": "missing: this version has none"
    }


@pytest.mark.parametrize("name", ["size", "start_layer"])
def test_attributes_that_raise_tell_nothing_and_switch_nothing_off(pools, torch, name):
    def raising(_: Any) -> Any:
        raise RuntimeError

    sealed = property(raising, lambda *_: None)
    cls = type("Sealed", (shaped.Pages,), {name: sealed, "__module__": shaped.Pages.__module__})
    pool = cls(torch)
    addresses, lengths, item_lengths = pool.get_contiguous_buf_infos()
    assert found(pools) == []
    lengths[1] *= 2
    pools.look(read(pool, (addresses, lengths, item_lengths), "kv"), "said")
    assert [check for check, *_ in found(pools)] == ["pool-length"]
