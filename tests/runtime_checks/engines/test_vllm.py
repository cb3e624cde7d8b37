"""What vLLM's workers say of their regions, in the shapes of three released versions."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.declared import declared
from kvlint.runtime_checks.engines import vllm
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.pools.checking import faults
from kvlint.runtime_checks.pools.own import PoolError
from kvlint.runtime_checks.pools.watching import Pools
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.engines import shaped_like_vllm as shaped
from tests.runtime_checks.engines.shaped_like_vllm import BLOCKS, HEADS, PAGE, TOKENS, WIDTH

PACKAGE = "vllm.distributed.kv_transfer.kv_connector.v1"


class Listening(Pools):
    """Keeps the messages."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.told: list[str] = []

    def tell(self, breach: Breach, call: str, *given: Any, **named: Any) -> Violation | None:
        self.told.append(f"{breach.check.name}: {breach.message}")
        return super().tell(breach, call, *given, **named)


class Maker:
    """Makes workers that the adapter has hooked."""

    def __init__(self, policy: Policy, hooks: Any) -> None:
        self.policy, self.hooks = policy, hooks
        self.pools = Listening(policy, policy.settings)
        self.pools.agent_of = lambda metadata: metadata.decode()

    def __call__(self, of: type, name: str = f"{PACKAGE}.nixl.base_worker", **said: Any) -> Any:
        module = shaped.module(name, of)
        vllm.install(module, self.hooks, self.pools)
        (made,) = [k for k in vars(module).values() if isinstance(k, type)]
        return made(**said)

    @property
    def told(self) -> list[str]:
        assert not self.policy.faults
        return self.pools.told


@pytest.fixture
def worker(policy: Callable[..., Policy], hooks: Any):
    """Makes workers that the adapter has hooked, and keeps what was told."""
    made = Maker(policy(), hooks)
    yield made
    assert not made.policy.faults
    made.pools.forget()


def regions(name: str = "agent") -> Sequence[Region]:
    return declared(name, here=True)


def caches(torch: Any, layers: int = 2, order: str = "LBHNC") -> dict[str, Any]:
    """All layers in one storage, in that order, as the model runner allocates them."""
    sizes = dict(zip("LBHNC", (layers, BLOCKS, HEADS, TOKENS, WIDTH), strict=True))
    whole = torch.zeros([sizes[axis] for axis in order], dtype=torch.bfloat16)
    whole = whole.permute([order.index(axis) for axis in "LBHNC"])
    return {shaped.attention(layer): whole[layer] for layer in range(layers)}


def test_regions_are_declared_under_the_agents_name_before_a_list_is_prepared(worker, torch):
    given = caches(torch)
    one = worker(shaped.NixlBaseConnectorWorker)
    assert one.register_kv_caches(given) == "prepared"
    assert regions() == tuple(
        Region(
            name=shaped.attention(layer),
            address=given[shaped.attention(layer)].data_ptr(),
            length=BLOCKS * PAGE,
            stride=PAGE,
            transfer_length=PAGE,
            memory_kind="DRAM",
            device=0,
            list="kv",
            layer=layer,
            role="model.layers.*.self_attn.attn part 0",
            dtype="bfloat16",
            element_size=2,
            page_size=TOKENS,
        )
        for layer in range(2)
    )
    assert worker.told == []


@pytest.mark.parametrize("order", ["LBNHC", "BLHNC", "BLNHC"])
def test_blocks_in_any_order_and_rows_of_all_layers_are_right(worker, torch, order):
    one = worker(shaped.NixlBaseConnectorWorker)
    one.register_kv_caches(caches(torch, 3, order))
    stride = PAGE * (3 if order[0] == "B" else 1)
    assert [(r.stride, r.transfer_length, r.slots) for r in regions()] == [
        (stride, PAGE, BLOCKS)
    ] * 3
    assert worker.told == []


def test_whole_rows_of_the_storage_and_heads_apart_are_right(worker, torch):
    rows = caches(torch, 2, "BHLNC")
    base, row = rows[shaped.attention(0)].untyped_storage().data_ptr(), 2 * PAGE
    one = worker(
        shaped.NixlBaseConnectorWorker,
        kv_caches_base_addr={"agent": {0: [base]}},
        block_len_per_layer=[row],
        block_stride_per_layer=[row],
        region_num_blocks=[BLOCKS],
        region_group_ids=[0],
        region_names=[shaped.attention(0)],
        region_mem_types=["DRAM"],
    )
    one.register_kv_caches(rows)
    assert worker.told == []
    apart = caches(torch, 1, "LHBNC")
    (base,), half = (t.data_ptr() for t in apart.values()), PAGE // HEADS
    one = worker(
        shaped.NixlBaseConnectorWorker,
        kv_caches_base_addr={"agent": {0: [base, base + BLOCKS * half]}},
        block_len_per_layer=[half] * 2,
        block_stride_per_layer=[half] * 2,
        region_num_blocks=[BLOCKS] * 2,
        region_group_ids=[0] * 2,
        region_names=[shaped.attention(0)] * 2,
        region_mem_types=["DRAM"] * 2,
    )
    one.register_kv_caches(apart)
    assert worker.told == []
    assert [r.name for r in regions()] == [shaped.attention(0), f"{shaped.attention(0)} part 1"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            {"block_len_per_layer": [PAGE, PAGE // 2]},
            "slot-coverage: a slot of model.layers.1.self_attn.attn (layer 1) has 128 bytes, 64 of "
            "them are in no region: from byte 64 to before 128",
        ),
        (
            {"block_stride_per_layer": [PAGE, PAGE // 2], "block_len_per_layer": [PAGE, PAGE // 4]},
            "slot-coverage: a slot of model.layers.1.self_attn.attn (layer 1) has 128 bytes, 64 of "
            "them are in no region: from byte 32 to before 64",
        ),
        (
            {"block_stride_per_layer": [112, PAGE], "block_len_per_layer": [112, PAGE]},
            "item-length: kv region 0 'model.layers.0.self_attn.attn' (layer 0) has item length "
            "112, a slot is 1 row of 128 bytes",
        ),
        (
            {"region_num_blocks": [BLOCKS + 1, BLOCKS]},
            "pool-length: kv region 0 'model.layers.0.self_attn.attn' (layer 0) has 896 bytes, its "
            "tensor ends after 768: kv region 0 'model.layers.0.self_attn.attn' (layer 0) slot 6",
        ),
        (
            {"region_names": [shaped.attention(0)]},
            "pool-lists: the worker has 2 addresses, 2 lengths, 2 strides, 2 counts, 1 names, 2 "
            "kinds for its regions",
        ),
        (
            {"region_num_blocks": [BLOCKS]},
            "pool-lists: the worker has 2 addresses, 2 lengths, 2 strides, 1 counts, 2 names, 2 "
            "kinds for its regions",
        ),
    ],
)
def test_a_wrong_entry_of_one_list_is_told_with_region_and_block(worker, torch, said, told):
    worker(shaped.NixlBaseConnectorWorker, **said).register_kv_caches(caches(torch))
    (found,) = worker.told
    assert found.startswith(told)


def test_groups_of_different_pages_are_each_moved_whole_or_it_is_told(worker, torch):
    """As 0.33.0 lists a second group, with wider pages, over the rows of the first."""
    narrow = caches(torch, 2, "BLHNC")
    wide = torch.as_strided(
        narrow[shaped.attention(0)],
        (BLOCKS, 2 * HEADS, TOKENS, WIDTH),
        (PAGE, TOKENS * WIDTH, WIDTH, 1),
    )
    groups = {shaped.attention(0): 0, shaped.attention(1): 0, shaped.attention(2): 1}
    rows = [*narrow.items(), (shaped.attention(2), wide)]

    class Worker(shaped.NixlBaseConnectorWorker):
        def list_regions(self, caches):
            super().list_regions(caches[:2])
            self.kv_cache_config.transfer_group_index_by_layer = groups

    one = worker(Worker, region_group_ids=[-1, 0])
    one.register_kv_caches(dict(rows))
    (found,) = worker.told
    assert found.startswith(
        "slot-coverage: a slot of model.layers.2.self_attn.attn (layer 2) has 256 bytes, 128 of "
        "them are in no region: from byte 128 to before 256"
    )
    # What the wider page lacks is the shared region's.
    assert [(r.layer, r.group) for r in regions()] == [(1, "group 0")]


def test_buffers_in_host_memory_stand_for_the_caches(worker, torch):
    one = worker(shaped.NixlBaseConnectorWorker)
    one.use_host_buffer = True
    given = caches(torch)
    one.register_kv_caches(given)
    assert worker.told == []
    assert {r.address for r in regions()} == {t.data_ptr() for t in one.host_xfer_buffers.values()}


def test_layers_that_share_anothers_cache_are_left_out(worker, torch):
    one = worker(shaped.NixlBaseConnectorWorker)
    given = caches(torch, 3)
    one._layer_specs = {shaped.attention(0): None, shaped.attention(2): None}
    one.register_kv_caches(given)
    assert worker.told == []
    assert [r.layer for r in regions()] == [0, 2]


@pytest.mark.parametrize("ranks", [True, False])
def test_before_names_keys_and_values_lie_apart_or_are_halves(worker, torch, ranks):
    class Worker(shaped.NixlConnectorWorker):
        pass

    Worker.ranks = ranks
    name = f"{PACKAGE}.{'nixl.worker' if ranks else 'nixl_connector'}"
    both = {n: torch.zeros(2, BLOCKS, TOKENS, HEADS, WIDTH) for n in map(shaped.attention, (0, 1))}
    worker(Worker, name, apart=True).register_kv_caches(both)
    layer = shaped.attention(0)
    assert [r.name for r in regions()][:2] == [f"{layer} key", f"{layer} value"]
    joint = {n: torch.zeros(BLOCKS, 2, TOKENS, HEADS, WIDTH) for n in both}
    worker(Worker, name, halves=True).register_kv_caches(joint)
    assert [r.name for r in regions()][:2] == [f"{layer} key", f"{layer} value"]
    key, value = regions()[:2]
    assert value.address - key.address == key.transfer_length == key.stride // 2
    assert worker.told == []


def test_the_parts_of_states_are_regions_over_the_same_memory(worker, torch):
    given = caches(torch)
    base, mixer = given[shaped.attention(0)].data_ptr(), "model.layers.1.mixer"
    state = torch.zeros(0).set_(
        given[shaped.attention(0)].untyped_storage(), 0, (BLOCKS, 24), (PAGE // 4, 1)
    )

    class Worker(shaped.NixlBaseConnectorWorker):
        def list_regions(self, caches):
            super().list_regions([(n, t) for n, t in caches if n != mixer])

    one = worker(Worker)
    one._has_mamba = True
    one._layer_specs = dict.fromkeys(given) | {mixer: shaped.MambaSpec()}
    one._group_spec_types = shaped.FullAttentionSpec, shaped.MambaSpec
    one.states = np.array([(base, 32, 0, PAGE, BLOCKS), (base + 32, 64, 0, PAGE, BLOCKS)])
    assert one.register_kv_caches({**given, mixer: state}) == "prepared 2"
    assert worker.told == []
    assert [(r.name, r.list, r.layer) for r in regions()][2:] == [
        (f"{mixer} part 0", "state", 1),
        (f"{mixer} part 1", "state", 1),
    ]
    one.states = [(base + b * PAGE, 32, 0) for b in range(BLOCKS)]
    one.register_kv_caches({**given, mixer: state})
    (found,) = worker.told
    assert found.startswith(
        "slot-coverage: a slot of model.layers.1.mixer (layer 1) has 96 bytes, 64"
    )


def test_what_a_peer_says_has_our_names_where_it_tells_none(worker, torch):
    name = f"{PACKAGE}.nixl_connector"
    one = worker(shaped.NixlConnectorWorker, name)
    one.register_kv_caches(caches(torch))
    said = SimpleNamespace(
        agent_metadata=b"peer",
        kv_caches_base_addr=[1 << 40, 1 << 41],
        device_id=3,
        num_blocks=9,
        block_lens=[PAGE, PAGE],
        block_size=TOKENS,
    )
    one._validate_remote_agent_handshake(said, 1)
    assert [(r.name, r.slots, r.device) for r in regions("peer")] == [
        (shaped.attention(0), 9, 0),
        (shaped.attention(1), 9, 0),
    ]
    later = worker(shaped.NixlBaseConnectorWorker)
    later.register_kv_caches(caches(torch))
    said = SimpleNamespace(
        **vars(said),
        block_strides=[4 * PAGE, 4 * PAGE],
        region_num_blocks=[9, 20],
        region_group_ids=[0, 1],
        region_names=["model.layers.4.self_attn.attn", "model.layers.5.self_attn.attn"],
        region_mem_types=["VRAM", "DRAM"],
    )
    later._validate_remote_agent_handshake(nixl_agent_meta=said, remote_tp_size=1)
    assert [(r.layer, r.slots, r.stride, r.group) for r in regions("peer")] == [
        (4, 9, 4 * PAGE, "group 0"),
        (5, 20, 4 * PAGE, "group 1"),
    ]
    assert [(r.memory_kind, r.device) for r in regions("peer")] == [("VRAM", 3), ("DRAM", 0)]
    said.agent_metadata, said.region_names = b"lame", ["model.layers.4.self_attn.attn"]
    later._validate_remote_agent_handshake(said, 1)
    assert [told.partition(":")[0] for told in worker.told] == ["pool-lists"]


def test_indices_are_known_for_the_blocks_that_they_were_made_of(worker, torch):
    one = worker(shaped.NixlBaseConnectorWorker, region_group_ids=[0, 1])
    one.register_kv_caches(caches(torch))
    one.indices = np.array([3, 1, 2])
    assert one._compute_desc_ids([[3, 1], [2]], 6) is one.indices
    asked = worker.pools.asked(one.indices)()
    assert {key: slots.tolist() for key, slots in asked.items()} == {
        ("kv", None): [3, 1, 2],
        ("kv", "group 0"): [3, 1],
        ("kv", "group 1"): [2],
    }
    each = {"region_group_ids": [0, 1], "uses_region_group_mapping": True}
    one.indices = np.array([3, 1, 2])
    one._compute_desc_ids(block_ids=[[3, 1], [2]], dst_num_blocks=6, **each)
    by_region = worker.pools.asked(one.indices)()
    assert {number: slots.tolist() for number, slots in by_region.items()} == {0: [3, 1], 1: [2]}
    one.indices = None
    one._compute_desc_ids([[3, 1], [2]], 6)
    assert worker.pools.asked(np.array([3, 1, 2])) is None


def test_a_worker_is_read_without_hooks_once_it_has_registered(worker, torch):
    one = worker(shaped.NixlBaseConnectorWorker, block_len_per_layer=[PAGE, PAGE // 2])
    with pytest.raises(PoolError, match="has registered no kv caches"):
        vllm.pools_of(one)
    one.device_kv_caches = caches(torch)
    one.register_kv_caches(one.device_kv_caches)
    (pool,) = vllm.pools_of(one)
    assert [claim.name for claim in pool.claims] == [*one.device_kv_caches]
    assert [breach.check.name for _, breach in faults(pool.settled())] == ["slot-coverage"]


def test_a_module_that_only_gives_out_the_class_has_no_hooks(policy, hooks):
    armed = policy()
    module = shaped.module(f"{PACKAGE}.nixl.worker", shaped.NixlConnectorWorker)
    module.__name__ = f"{PACKAGE}.nixl.elsewhere"
    vllm.install(module, hooks, Pools(armed, armed.settings))
    assert hooks.status == {}
