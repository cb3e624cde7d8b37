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
from pathlib import Path
from typing import Any

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
READ = [[3, 7, 2], [8, 10], [5]]
INTO = [[1, 4, 6], [2, 5], [7]]

ATTENTION: dict[str, Any] = {
    "block_size": 32,
    "num_kv_heads": 2,
    "head_size": 64,
    "dtype": torch.bfloat16,
}
LATENT = {**ATTENTION, "num_kv_heads": 1, "head_size": 576}
INDEXER = {**ATTENTION, "num_kv_heads": 1, "head_size": 132, "dtype": torch.uint8}
STATE: dict[str, Any] = {
    "block_size": 32,
    "shapes": ((192, 3), (8, 16, 32)),
    "dtypes": (torch.bfloat16, torch.bfloat16),
    "page_size_padded": 16384,
}


def attention(layer: int) -> str:
    return f"model.layers.{layer}.self_attn.attn"


def specs(kind: str) -> dict[str, Any]:
    full, sliding = (
        FullAttentionSpec(**ATTENTION),
        SlidingWindowSpec(**ATTENTION, sliding_window=64),
    )
    if kind == "sliding":
        return {attention(i): full if i < 2 else sliding for i in range(4)}
    if kind == "wide":
        wide = SlidingWindowSpec(**{**ATTENTION, "num_kv_heads": 4}, sliding_window=64)
        return {attention(i): full if i < 2 else wide for i in range(4)}
    if kind == "latent":
        return {attention(i): MLAAttentionSpec(**LATENT) for i in range(3)}
    if kind == "indexed":
        index = {
            f"model.layers.{i}.self_attn.indexer.k_cache": MLAAttentionSpec(**INDEXER)
            for i in range(3)
        }
        return specs("latent") | index
    if kind == "state":
        mixers = {f"model.layers.{i}.mixer": MambaSpec(**STATE) for i in (1, 3)}
        return {attention(i): full for i in (0, 2)} | mixers
    return {attention(i): full for i in range(2 if kind == "host" else 4)}


@dataclass(eq=False)
class Side:
    """One engine's worker, with its caches."""

    worker: Any
    plan: Any
    caches: dict[str, torch.Tensor]


def side(model: ModelConfig, engine: str, kind: str, layout: str) -> Side:
    config = vllm_config(model, engine, layout)
    groups = get_kv_cache_groups(config, specs(kind))
    memory = 1 << 30
    each = memory // get_kv_cache_config_from_groups(config, groups, memory).num_blocks
    plan = get_kv_cache_config_from_groups(config, groups, each * BLOCKS[engine])
    caches = allocate_kv_cache(plan, torch.device("cpu"), KVCacheLayout[layout])
    if kind == "host":
        spec, names = FullAttentionSpec(**ATTENTION), [attention(2), attention(3)]
        plan.kv_cache_groups.append(KVCacheGroupSpec(names, spec, host_resident=True))
        plan.hisparse_host_num_blocks = HOST_BLOCKS[engine]
        shape = (HOST_BLOCKS[engine], *caches[attention(0)].shape[1:])
        caches |= {name: torch.zeros(shape, dtype=torch.bfloat16) for name in names}
    with set_current_vllm_config(config):
        return Side(NixlPullConnectorWorker(config, engine, plan), plan, caches)


def vllm_config(model: ModelConfig, engine: str, layout: str) -> VllmConfig:
    config = VllmConfig(
        model_config=model,
        cache_config=CacheConfig(block_size=32, cache_dtype="auto"),
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
    config.cache_config.kv_cache_layout = layout
    return config


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


def transfer(model: ModelConfig, kind: str, layout: str) -> dict[str, Any]:
    """A request's blocks are read from the prefill engine's caches; which are wrong then."""
    here, there = (side(model, engine, kind, layout) for engine in ("decode", "prefill"))
    for one in (there, here):
        one.worker.register_kv_caches(one.caches)
    fill(there.caches)
    said = msgspec.msgpack.decode(
        there.worker.xfer_handshake_metadata.agent_metadata_bytes, type=NixlAgentMetadata
    )
    worker = here.worker
    worker._remote_agents["prefill"][0, 0] = worker.add_remote_agent(said, 0, 1, 1)
    there.worker.nixl_wrapper.add_remote_agent(worker.nixl_wrapper.get_agent_metadata())
    groups = len(here.plan.kv_cache_groups)
    step = NixlConnectorMetadata()
    step.add_new_req_to_recv(
        "request",
        INTO[:groups],
        {
            "remote_block_ids": READ[:groups],
            "remote_engine_id": "prefill",
            "remote_request_id": "the same",
            "remote_host": "localhost",
            "remote_port": 1,
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
        "wrong": list(differing(here, there)),
    }


def fill(caches: dict[str, torch.Tensor]) -> None:
    seed = torch.Generator().manual_seed(7)
    for storage in {
        c.untyped_storage().data_ptr(): c.untyped_storage() for c in caches.values()
    }.values():
        content = torch.tensor([], dtype=torch.uint8).set_(storage)
        content.copy_(torch.randint(0, 256, content.shape, generator=seed, dtype=torch.uint8))


def differing(here: Side, there: Side) -> Iterator[tuple[str, int]]:
    for number, group in enumerate(here.plan.kv_cache_groups):
        for name in group.layer_names:
            for source, block in zip(READ[number], INTO[number], strict=True):
                mine, theirs = here.caches[name][block], there.caches[name][source]
                if (
                    mine.contiguous()
                    .view(torch.uint8)
                    .ne(theirs.contiguous().view(torch.uint8))
                    .any()
                ):
                    yield name, block


Transfer = Callable[[str, str], dict[str, Any]]


def right(kind: str, layout: str) -> Callable[[Transfer], dict[str, Any]]:
    return lambda transfer: transfer(kind, layout)


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
        model = ModelConfig(
            model=folder,
            tokenizer=folder,
            skip_tokenizer_init=True,
            dtype="bfloat16",
            enforce_eager=True,
            max_model_len=1024,
        )
        with set_current_vllm_config(vllm_config(model, "decode", "LBHNC")):
            init_distributed_environment(1, 0, f"file://{folder}/group", 0, "gloo")
            initialize_model_parallel(1, 1)
    print(json.dumps([outcome(model, name) for name in names or SCENARIOS]), flush=True)


def outcome(model: ModelConfig, name: str) -> dict[str, Any]:
    before = len(told())
    try:
        found = SCENARIOS[name](lambda kind, layout: transfer(model, kind, layout))
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
