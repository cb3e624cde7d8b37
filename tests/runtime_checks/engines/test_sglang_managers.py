"""What SGLang's managers give to the transport: declared list by list."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.declared import declared
from kvlint.runtime_checks.engines import sglang
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.pools.watching import Pools
from kvlint.runtime_checks.regions import Regions
from tests.runtime_checks.engines import shaped_like_sglang as shaped


class Kind(StrEnum):
    WINDOW = "swa"


@pytest.fixture
def pools(policy: Callable[..., Policy], hooks: Any):
    armed = policy()
    made = Pools(armed, armed.settings)
    sglang.install(shaped.module(), hooks, made)
    conn = shaped.module("sglang.srt.disaggregation.nixl.conn")
    conn.repeat_indices_over_layers = shaped.repeat_indices_over_layers
    sglang.install(conn, hooks, made)
    made.conn = conn
    yield made
    made.forget()


def regions(name: str) -> Sequence[Region]:
    return declared(name, here=True)


def of(said: shaped.Said) -> dict[str, list[int]]:
    names = ("kv_data_ptrs", "kv_data_lens", "kv_item_lens")
    return dict(zip(names, said, strict=True))


def test_regions_are_declared_with_what_the_pool_has_told_of_them(pools, torch):
    pool = shaped.Pages(torch)
    manager = shaped.Manager("prefill", **of(pool.get_contiguous_buf_infos()))
    assert manager.register_buffer_to_engine() == "registered"
    first, *_, last = regions("prefill")
    assert first == Region(
        name="layer 0 key",
        address=pool.k_buffer[0].data_ptr(),
        length=2176,
        stride=128,
        transfer_length=128,
        memory_kind="VRAM",
        device=3,
        list="kv",
        layer=0,
        role="key",
        dtype="bfloat16",
        element_size=2,
        page_size=4,
    )
    assert (last.name, last.address) == ("layer 1 value", pool.v_buffer[1].data_ptr())
    assert list(pools.policy.violations) == []


def test_entries_of_a_draft_model_and_in_host_memory_are_groups_of_their_own(pools, torch):
    pool, draft = shaped.Pages(torch), shaped.Pages(torch)
    said = [
        a + b[:2]
        for a, b in zip(*(p.get_contiguous_buf_infos() for p in (pool, draft)), strict=True)
    ]
    kinds = ["DRAM", *["VRAM"] * 5]
    given = of(said) | {"num_draft_entries": 2, "kv_data_mem_kinds": kinds}
    shaped.Manager("prefill", **given, kv_layer_ids=[7, 8, 7, 8, 9, 9]).register_buffer_to_engine()
    assert [(r.name, r.layer, r.group, r.memory_kind, r.device) for r in regions("prefill")] == [
        ("layer 0 key", 7, "DRAM", "DRAM", 0),
        ("layer 1 key", 8, "VRAM", "VRAM", 3),
        ("layer 0 value", 7, "VRAM", "VRAM", 3),
        ("layer 1 value", 8, "VRAM", "VRAM", 3),
        ("draft layer 0 key", 9, "draft", "VRAM", 3),
        ("draft layer 1 key", 9, "draft", "VRAM", 3),
    ]


def test_states_are_lists_by_their_type_and_what_goes_along_one_of_its_own(pools, torch):
    pool = shaped.Window(torch)
    states = pool.get_state_buf_infos()
    parts = [[one, one[:1]] for one in states]
    along = torch.zeros((4, 16), dtype=torch.int32)
    manager = shaped.Manager(
        "decode",
        state_types=[Kind.WINDOW, "mamba"],
        **dict(zip(("state_data_ptrs", "state_data_lens", "state_item_lens"), parts, strict=True)),
        aux_data_ptrs=[along.data_ptr()],
        aux_data_lens=[along.nbytes],
        aux_item_lens=[along[0].nbytes],
    )
    manager.register_buffer_to_engine()
    told = [(r.list, r.name, r.memory_kind) for r in regions("decode")]
    assert told == [
        ("state.swa", "layer 0 swa key", "VRAM"),
        ("state.swa", "layer 2 swa key", "VRAM"),
        ("state.swa", "layer 0 swa value", "VRAM"),
        ("state.swa", "layer 2 swa value", "VRAM"),
        ("state.mamba", "layer 0 swa key #2", "VRAM"),
        ("aux", "aux 0", "DRAM"),
    ]


def test_what_was_changed_since_the_pool_told_it_is_looked_at_again(pools, torch):
    pool = shaped.Pages(torch)
    given = of(pool.get_contiguous_buf_infos())
    given["kv_item_lens"][3] //= 2
    shaped.Manager("prefill", **given).register_buffer_to_engine()
    (record,) = pools.policy.violations
    assert (record["check"], record["region_name"]) == ("item-length", "layer 1 value")
    assert list(record["values"].values()) == [64, 128]


def test_lists_that_are_not_read_to_their_end_are_told(pools, torch):
    pool = shaped.Pages(torch)
    given = of(pool.get_contiguous_buf_infos())
    del given["kv_data_lens"][2:]
    shaped.Manager("prefill", **given).register_buffer_to_engine()
    (record,) = pools.policy.violations
    assert record["check"] == "pool-lists"
    assert record["message"] == ("kv_args.kv gives 4 addresses, 2 lengths and 4 item lengths")
    assert len(regions("prefill")) == 2


def test_in_a_mode_that_raises_the_server_starts_and_the_transfer_is_refused(policy, hooks, torch):
    armed = policy("assert")
    pools = Pools(armed, armed.settings)
    sglang.install(shaped.module("sglang.srt.disaggregation.nixl.conn"), hooks, pools)
    pool = shaped.Pages(torch)
    given = of(pool.get_contiguous_buf_infos())
    del given["kv_data_lens"][2:]
    manager = shaped.Manager("prefill", **given)
    assert manager.register_buffer_to_engine() == "registered"
    addresses = np.array(given["kv_data_ptrs"], np.uint64)
    zero, one = np.zeros(2, np.int64), np.ones(2, np.int64)
    listed = Regions(np.arange(3), addresses[:2], one, one, zero)
    assert "2 lengths" in str(pools.raises_for(listed))
    pools.forget()


def test_a_manager_of_another_transport_declares_nothing_and_is_looked_at(pools, torch):
    pool = shaped.Pages(torch)
    given = of(pool.get_contiguous_buf_infos())
    given["kv_data_lens"][0] += 128
    shaped.Manager(None, **given).register_buffer_to_engine()
    (record,) = pools.policy.violations
    assert (record["check"], record["slot"]) == ("pool-length", 17)


def test_the_pages_of_a_request_are_what_its_indices_are_asked_for(pools):
    import numpy as np

    pages = np.array([3, 5], np.int32)
    indices = pools.conn.repeat_indices_over_layers(pages, 3, 10)
    assert indices.tolist() == [3, 5, 13, 15, 23, 25]
    asked = pools.asked(indices)()
    assert asked["kv", None] is asked["kv", "draft"] is pages
    assert pools.asked(indices.copy()) is None
