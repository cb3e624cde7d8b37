"""vLLM's released NIXL connector on this machine's CPU, two workers of one process over real NIXL.

    VLLM_TARGET_DEVICE=cpu VLLM_SSM_CONV_STATE_LAYOUT=DS python vllm_connector.py SCENARIO...

For an environment with vllm 0.33.0, its compiled parts not needed. Prints one JSON array, with an
object a scenario; without names, all of them. Everything but the layers' specs is vLLM's own: the
plan of the cache, its tensors, the workers and what they register, the handshake's metadata, the
reading of a request's blocks. kvlint comes in through vLLM's loader of plug-ins, or not at all.
"""

# ruff: noqa: E402  (plug-ins come first, as in an engine)

import inspect
import json
import os
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from vllm.plugins import load_general_plugins

load_general_plugins()

import msgspec
import torch
from vllm.config import (
    CacheConfig,
    DeviceConfig,
    KVTransferConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    VllmConfig,
    set_current_vllm_config,
)
from vllm.distributed.kv_transfer.kv_connector.v1.nixl import base_worker
from vllm.distributed.kv_transfer.kv_connector.v1.nixl.metadata import (
    NixlAgentMetadata,
    NixlConnectorMetadata,
)
from vllm.distributed.kv_transfer.kv_connector.v1.nixl.pull_worker import NixlPullConnectorWorker
from vllm.distributed.parallel_state import init_distributed_environment, initialize_model_parallel
from vllm.v1.core.kv_cache_planning import get_kv_cache_config_from_groups, get_kv_cache_groups
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheGroupSpec,
    KVCacheLayout,
    MambaSpec,
    MLAAttentionSpec,
    SlidingWindowSpec,
)
from vllm.v1.worker.utils import allocate_kv_cache

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_hidden_layers": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 1024,
    "torch_dtype": "bfloat16",
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
}
BLOCKS = {"prefill": 12, "decode": 9}
HOST_BLOCKS = {"prefill": 20, "decode": 15}
# Blocks of one request, group by group, here and there.
READ = [[3, 7, 2, 9], [8, 10], [5]]
INTO = [[1, 4, 6, 8], [2, 5], [7]]

TOKENS, HEADS = 32, 2
ATTENTION: dict[str, Any] = {"head_size": 64, "dtype": torch.bfloat16}
LATENT = {"num_kv_heads": 1, "head_size": 576, "dtype": torch.bfloat16}
INDEXER = {"num_kv_heads": 1, "head_size": 132, "dtype": torch.uint8}
STATE: dict[str, Any] = {
    "shapes": ((192, 3), (8, 16, 32)),
    "dtypes": (torch.bfloat16, torch.bfloat16),
    "page_size_padded": 16384,
}


@dataclass(frozen=True)
class Model:
    """What of a model's caches one rank of an engine holds.

    kind    which layers there are
    layout  as vLLM calls it: layer, block, head, token (N), content, outermost first
    tokens  in a block
    """

    kind: str
    layout: str
    heads: int = HEADS
    tokens: int = TOKENS


def attention(layer: int) -> str:
    return f"model.layers.{layer}.self_attn.attn"


def specs(model: Model) -> dict[str, Any]:
    block = {"block_size": model.tokens}
    heads = {**block, **ATTENTION, "num_kv_heads": model.heads}
    full, sliding = FullAttentionSpec(**heads), SlidingWindowSpec(**heads, sliding_window=64)
    if model.kind == "sliding":
        return {attention(i): full if i < 2 else sliding for i in range(4)}
    if model.kind == "wide":
        wide = SlidingWindowSpec(**{**heads, "num_kv_heads": 2 * model.heads}, sliding_window=64)
        return {attention(i): full if i < 2 else wide for i in range(4)}
    latent = {attention(i): MLAAttentionSpec(**block, **LATENT) for i in range(3)}
    if model.kind == "latent":
        return latent
    if model.kind == "indexed":
        index = MLAAttentionSpec(**block, **INDEXER)
        return latent | {f"model.layers.{i}.self_attn.indexer.k_cache": index for i in range(3)}
    if model.kind == "state":
        mixers = {f"model.layers.{i}.mixer": MambaSpec(**block, **STATE) for i in (1, 3)}
        return {attention(i): full for i in (0, 2)} | mixers
    return {attention(i): full for i in range(2 if model.kind == "host" else 4)}


@dataclass(eq=False)
class Side:
    """One engine's worker, with its caches."""

    worker: Any
    plan: Any
    caches: dict[str, torch.Tensor]


def side(config: ModelConfig, engine: str, model: Model, rank: int = 0, ranks: int = 1) -> Side:
    """All ranks are in this process; which one a worker is, is all that it asks others for."""
    whole = vllm_config(config, engine, model)
    groups = get_kv_cache_groups(whole, specs(model))
    memory = 1 << 30
    each = memory // get_kv_cache_config_from_groups(whole, groups, memory).num_blocks
    plan = get_kv_cache_config_from_groups(whole, groups, each * BLOCKS[engine])
    caches = allocate_kv_cache(plan, torch.device("cpu"), KVCacheLayout[model.layout])
    if model.kind == "host":
        names = [attention(2), attention(3)]
        spec = specs(model)[attention(0)]
        plan.kv_cache_groups.append(KVCacheGroupSpec(names, spec, host_resident=True))
        plan.hisparse_host_num_blocks = HOST_BLOCKS[engine]
        shape = (HOST_BLOCKS[engine], *caches[attention(0)].shape[1:])
        caches |= {name: torch.zeros(shape, dtype=torch.bfloat16) for name in names}
    with (
        set_current_vllm_config(whole),
        patch.object(base_worker, "get_tensor_model_parallel_rank", lambda: rank),
        patch.object(base_worker, "get_tensor_model_parallel_world_size", lambda: ranks),
    ):
        worker = NixlPullConnectorWorker(whole, engine, plan)
    # The rest of the model's config is of a Llama, whatever its layers are here.
    worker.use_mla = model.kind in ("latent", "indexed")
    return Side(worker, plan, caches)


def vllm_config(config: ModelConfig, engine: str, model: Model) -> VllmConfig:
    whole = VllmConfig(
        model_config=config,
        cache_config=CacheConfig(block_size=model.tokens, cache_dtype="auto"),
        scheduler_config=SchedulerConfig(
            max_num_seqs=4,
            max_num_batched_tokens=1024,
            max_model_len=1024,
            is_encoder_decoder=False,
        ),
        parallel_config=ParallelConfig(),
        device_config=DeviceConfig("cpu"),
        kv_transfer_config=KVTransferConfig(
            kv_connector="NixlConnector",
            kv_role="kv_both",
            engine_id=engine,
            kv_buffer_device="cpu",
        ),
    )
    whole.cache_config.kv_cache_layout = model.layout
    return whole


@contextmanager
def planted(method: str, *changes: tuple[str, str]) -> Iterator[None]:
    """The worker's method with some of its text changed, under whatever stands around it."""
    found = inspect.unwrap(getattr(base_worker.NixlBaseConnectorWorker, method))
    text = textwrap.dedent(inspect.getsource(found))
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {method}"
        text = text.replace(old, new)
    made: dict[str, Any] = {}
    lines = "\n" * (found.__code__.co_firstlineno - 1)
    code = compile(lines + text, found.__code__.co_filename, "exec")
    exec(code, vars(base_worker), made)
    sound, found.__code__ = found.__code__, made[method].__code__
    try:
        yield
    finally:
        found.__code__ = sound


def transfer(
    config: ModelConfig, kind: str, layout: str, ranks: int = 1, tokens: int = TOKENS
) -> dict[str, Any]:
    """A request's blocks are read from the prefill engine's caches; which are wrong then.

    ranks   of the prefill engine; the decode engine has one
    tokens  in a block of the decode engine
    """
    part = Model(kind, layout, heads=HEADS // ranks)
    there = [side(config, "prefill", part, rank, ranks) for rank in range(ranks)]
    here = side(config, "decode", Model(kind, layout, tokens=tokens))
    for number, one in enumerate([here, *there]):
        one.worker.register_kv_caches(one.caches)
        fill(one.caches, number)
    worker = here.worker
    for rank, one in enumerate(there):
        said = msgspec.msgpack.decode(
            one.worker.xfer_handshake_metadata.agent_metadata_bytes, type=NixlAgentMetadata
        )
        worker._remote_agents["prefill"][0, rank] = worker.add_remote_agent(said, rank, ranks, 1)
        one.worker.nixl_wrapper.add_remote_agent(worker.nixl_wrapper.get_agent_metadata())
    groups, step = len(here.plan.kv_cache_groups), NixlConnectorMetadata()
    step.add_new_req_to_recv(
        "request",
        [blocks[: len(blocks) * TOKENS // tokens] for blocks in INTO[:groups]],
        {
            "remote_block_ids": READ[:groups],
            "remote_engine_id": "prefill",
            "remote_request_id": "the same",
            "remote_host": "localhost",
            "remote_port": 1,
            "tp_size": ranks,
        },
        awaiting_kvs=True,
    )
    worker.start_load_kv(step)
    results, until = worker.get_transfer_results(), time.monotonic() + 60
    while not (results.finished_recving or results.failed_recving) and time.monotonic() < until:
        results = worker.get_transfer_results()
    return {
        "arrived": sorted(results.finished_recving - results.failed_recving),
        "failed": sorted(results.failed_recving),
        "regions": len(worker.region_names),
        "wrong": list(differing(here, there, tokens // TOKENS)),
    }


def fill(caches: dict[str, torch.Tensor], number: int) -> None:
    """Any bytes, others for each number."""
    seed = torch.Generator().manual_seed(number)
    storages = {c.untyped_storage().data_ptr(): c.untyped_storage() for c in caches.values()}
    for storage in storages.values():
        content = torch.tensor([], dtype=torch.uint8).set_(storage)
        content.copy_(torch.randint(0, 256, content.shape, generator=seed, dtype=torch.uint8))


def differing(here: Side, there: list[Side], parts: int) -> Iterator[tuple[str, int]]:
    """Layers and blocks of the decode engine. The prefill engine's ranks have their heads each,
    its blocks are that part of a block here."""
    for number, group in enumerate(here.plan.kv_cache_groups):
        for name in group.layer_names:
            for at, source in enumerate(READ[number]):
                block = INTO[number][at // parts]
                theirs = torch.cat([one.caches[name][source] for one in there])
                tokens = theirs.shape[1]
                first = at % parts * tokens
                mine = here.caches[name][block][:, first : first + tokens]
                if not torch.equal(as_bytes(mine), as_bytes(theirs)):
                    yield name, block


def as_bytes(part: torch.Tensor) -> torch.Tensor:
    return part.contiguous().view(torch.uint8)


Transfer = Callable[..., dict[str, Any]]


def right(kind: str, layout: str, **more: int) -> Callable[[Transfer], dict[str, Any]]:
    return lambda transfer: transfer(kind, layout, **more)


def wrong(
    kind: str, layout: str, method: str, *changes: tuple[str, str]
) -> Callable[[Transfer], dict[str, Any]]:
    def run(transfer: Transfer) -> dict[str, Any]:
        with planted(method, *changes):
            return transfer(kind, layout)

    return run


SCENARIOS = {
    "uniform": right("uniform", "LBHNC"),
    "uniform, tokens before heads": right("uniform", "LBNHC"),
    "uniform, heads apart": right("uniform", "LHBNC"),
    "uniform, rows of all layers": right("uniform", "BLHNC"),
    "uniform, rows of all layers as one": right("uniform", "BHLNC"),
    "two groups share": right("sliding", "LBHNC"),
    "two groups share rows": right("sliding", "BLHNC"),
    "latent rows": right("latent", "BLHNC"),
    "latent and indexer rows": right("indexed", "BLHNC"),
    "latent and indexer": right("indexed", "LBHNC"),
    "attention and state": right("state", "LBHNC"),
    "a group in host memory": right("host", "LBHNC"),
    "two ranks to one": right("uniform", "LBHNC", ranks=2),
    "rows of two ranks to one": right("uniform", "BLHNC", ranks=2),
    "two ranks to one, two groups": right("sliding", "LBHNC", ranks=2),
    "blocks twice as long": right("uniform", "LBHNC", tokens=2 * TOKENS),
    "rows of blocks twice as long": right("uniform", "BLHNC", tokens=2 * TOKENS),
    "groups of unequal pages share rows": right("wide", "BLHNC"),
    "one stride for all regions": wrong(
        "host",
        "LBHNC",
        "_compute_desc_ids",
        (
            "np.cumsum([0, *region_num_blocks[:-1]])",
            "np.arange(num_desc_regions) * region_num_blocks[0]",
        ),
    ),
    "half of each block": wrong(
        "uniform",
        "LBHNC",
        "register_kv_caches",
        (
            "block_stride if num_segments > 1 else physical_page_size",
            "block_stride if num_segments > 1 else physical_page_size // 2",
        ),
    ),
    "one block too many": wrong(
        "uniform",
        "LBHNC",
        "register_kv_caches",
        (
            "self.region_num_blocks.append(num_blocks)",
            "self.region_num_blocks.append(num_blocks + 1)",
        ),
    ),
    "states begin by the other side's count": wrong(
        "state",
        "LBHNC",
        "_compute_desc_ids",
        ("num_fa_descs = sum(region_num_blocks)", "num_fa_descs = sum(self.region_num_blocks)"),
    ),
}


def main(*names: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(MODEL))
        config = ModelConfig(
            model=folder,
            tokenizer=folder,
            skip_tokenizer_init=True,
            dtype="bfloat16",
            enforce_eager=True,
            max_model_len=1024,
        )
        with set_current_vllm_config(vllm_config(config, "decode", Model("uniform", "LBHNC"))):
            init_distributed_environment(1, 0, f"file://{folder}/group", 0, "gloo")
            initialize_model_parallel(1, 1)
    print(json.dumps([outcome(config, name) for name in names or SCENARIOS]), flush=True)


def outcome(config: ModelConfig, name: str) -> dict[str, Any]:
    before = len(told())
    try:
        found = SCENARIOS[name](partial(transfer, config))
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    return {"scenario": name, **found, "violations": told()[before:]}


def told() -> list[dict[str, Any]]:
    """What kvlint has written, where it is armed."""
    report = os.environ.get("KVLINT_REPORT")
    if report is None:
        return []
    files = sorted(Path(report).glob("violations-*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if "check" in line]


if __name__ == "__main__":
    main(*sys.argv[1:])
    # NIXL's threads are still at work when the interpreter takes modules apart.
    os._exit(0)
