"""The kv caches that vLLM hands to its NIXL connector, and the rows of blocks that they lie in."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvlint.runtime_checks.pools.claims import Cache
from kvlint.runtime_checks.pools.coverage import runs
from kvlint.runtime_checks.pools.tensors import Tensor, is_tensor

_NO_GROUPS: Final[Mapping[str, int]] = {}
_LAYER: Final = re.compile(r"(?:^|\.)layers?\.(\d+)(?:\.|$)|(?:^|\.)h\.(\d+)(?:\.|$)")


def caches_of(worker: Any, kv_caches: Mapping[str, Any]) -> list[Cache]:
    """What is moved of each block, by `register_kv_caches`' own argument, or by the buffers in
    host memory in its place. Layers that the worker leaves out are left out."""
    buffers = kv_caches
    if getattr(worker, "use_host_buffer", False):
        buffers = worker.host_xfer_buffers
    config = getattr(worker, "kv_cache_config", None)
    groups: Mapping[str, int] = getattr(config, "transfer_group_index_by_layer", _NO_GROUPS)
    topology = topology_of(worker)
    mapped = getattr(worker, "_uses_region_group_mapping", False)
    specs = getattr(worker, "_layer_specs", None)
    found: list[Cache] = []
    if getattr(topology, "cross_layers_blocks", False):
        # One tensor of all layers, of which nothing says how it is laid out.
        return found
    for name, value in buffers.items():
        if specs is not None and name not in specs:
            continue
        state = specs is not None and type(_spec(specs[name], name)).__name__ == "MambaSpec"
        group = groups.get(name) if mapped else None
        for called, tensor in _tensors(name, value):
            facts = Tensor.of(tensor)
            found.append(
                Cache(
                    name=called,
                    list="state" if state else "kv",
                    tensor=facts,
                    dimension=0 if state else _dimension(facts, topology),
                    layer=layer_and_role(name)[0],
                    group=None if group is None else group_name(group),
                )
            )
    return found


def topology_of(worker: Any) -> Any:
    """How the worker lays out its caches; versions before 0.21.0 call it otherwise."""
    return getattr(worker, "transfer_topo", None) or getattr(worker, "kv_topo", None)


def group_name(number: int) -> str:
    return f"group {number}"


def _spec(spec: Any, name: str) -> Any:
    return getattr(spec, "kv_cache_specs", {}).get(name, spec)


def _tensors(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A layer has one tensor, or one a part of its state."""
    if is_tensor(value):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            if is_tensor(part):
                yield f"{name}[{at}]", part


def layer_and_role(name: str) -> tuple[int | None, str]:
    """Of a name like model.layers.3.self_attn.attn: 3, and what is the same for all layers."""
    found = _LAYER.search(name)
    if found is None:
        return None, name
    at = 1 if found[1] is not None else 2
    begin, end = found.span(at)
    return int(found[at]), f"{name[:begin]}*{name[end:]}"


def _dimension(tensor: Tensor, topology: Any) -> int:
    """Which dimension counts blocks. Keys and values may come first: so the connector reads it
    where it registers them apart, and where a hybrid model's tensor has two of them first."""
    if len(tensor.shape) < 2 or tensor.shape[0] != 2:
        return 0
    apart = getattr(topology, "split_k_and_v", False) or getattr(topology, "is_mamba", False)
    return 1 if apart and hasattr(topology, "split_k_and_v") else 0


def rows_of(cache: Cache, stride: int = 0, moved: int = 0) -> list[Tensor]:
    """The cache as rows of blocks: one for each run of bytes that a block has, and where whole
    rows of the storage are moved, all of that.

    stride, moved  as a region has them, in bytes: where it cuts each block into equal parts, so
                   are the rows
    """
    tensor = cache.tensor
    step, count = tensor.strides[cache.dimension], tensor.shape[cache.dimension]
    found: list[Tensor] = []
    for begin, end in runs(cache):
        length, parts = end - begin, 1
        if 0 < stride < step and step % stride == 0 and length % (step // stride) == 0:
            parts = step // stride
        found.append(_rows(tensor, begin, count * parts, step // parts, length // parts))
    if moved == stride == step and tensor.storage_bytes >= step:
        whole = tensor.storage_bytes // step
        found.append(_rows(tensor, tensor.storage, whole, step, step))
    return found


def _rows(tensor: Tensor, address: int, count: int, step: int, length: int) -> Tensor:
    size = tensor.element_size
    return Tensor(
        tensor.storage,
        tensor.storage_bytes,
        address,
        (count, length // size),
        (step, size),
        size,
        tensor.dtype,
        tensor.kind,
        tensor.device,
        tensor.gone,
    )
