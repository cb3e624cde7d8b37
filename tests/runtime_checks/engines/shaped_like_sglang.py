"""Classes of this repository's own, shaped like SGLang's pools as far as the adapter reads them."""

from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

Said: TypeAlias = tuple[list[int], list[int], list[int]]
MODULE = "sglang.srt.mem_cache.memory_pool"
TOKENS, PAGE, HEADS, WIDTH = 64, 4, 2, 8


class Pages:
    """Keys and values of two layers, a row a token."""

    def __init__(self, torch: Any, size: int = TOKENS, dtype: Any = None) -> None:
        self.size, self.page_size, self.start_layer = size, PAGE, 0
        shape = size + PAGE, HEADS, WIDTH
        dtype = torch.bfloat16 if dtype is None else dtype
        self.k_buffer = [torch.zeros(shape, dtype=dtype) for _ in range(2)]
        self.v_buffer = [torch.zeros(shape, dtype=dtype) for _ in range(2)]

    def get_contiguous_buf_infos(self) -> Said:
        tensors = self.k_buffer + self.v_buffer
        item_lengths = [t[0].nbytes * self.page_size for t in tensors]
        return [t.data_ptr() for t in tensors], [t.nbytes for t in tensors], item_lengths


class PagesOfAnotherKind(Pages):
    """Asks its base class, and changes nothing."""

    def get_contiguous_buf_infos(self) -> Said:
        return super().get_contiguous_buf_infos()


class Window:
    """Two pools in one; which layers each has only the outer one knows."""

    def __init__(self, torch: Any) -> None:
        self.size, self.page_size = TOKENS, PAGE
        self.full_kv_pool, self.swa_kv_pool = Pages(torch), Pages(torch, TOKENS // 2)
        self.layers_mapping = {1: (0, False), 3: (1, False), 0: (0, True), 2: (1, True)}

    def get_contiguous_buf_infos(self) -> Said:
        return self.full_kv_pool.get_contiguous_buf_infos()

    def get_state_buf_infos(self) -> Said:
        return self.swa_kv_pool.get_contiguous_buf_infos()


class States:
    """One state a request; all layers in one tensor."""

    def __init__(self, torch: Any, layers: Sequence[int] = (0, 3), size: int = 5) -> None:
        self.size, self.mamba_layer_ids = size, list(layers)
        self.temporal = torch.zeros((len(layers), size + 1, 4, 4))

    def get_state_buf_infos(self) -> Said:
        layers = list(self.temporal)
        return (
            [t.data_ptr() for t in layers],
            [t.nbytes for t in layers],
            [t[0].nbytes for t in layers],
        )


class Elided:
    """The second layer has no buffer of its own, and keeps its place."""

    def __init__(self, torch: Any) -> None:
        self.size, self.page_size = TOKENS, PAGE
        self.kv_buffer = [torch.zeros(rows, 32) for rows in (TOKENS + PAGE, 0, TOKENS + PAGE)]

    def get_contiguous_buf_infos(self) -> Said:
        return (
            [t.data_ptr() for t in self.kv_buffer],
            [t.nbytes for t in self.kv_buffer],
            [t[0].nbytes * PAGE if len(t) else 0 for t in self.kv_buffer],
        )


class KeysOfMoreTokens:
    """Its index has as many pages as it has tokens: most of them are in host memory."""

    def __init__(self, torch: Any) -> None:
        self.size, self.page_size = TOKENS, PAGE
        self.index_k_with_scale_buffer = [torch.zeros((TOKENS + 1, 132), dtype=torch.uint8)]

    def get_state_buf_infos(self) -> Said:
        (buffer,) = self.index_k_with_scale_buffer
        return [buffer.data_ptr()], [buffer.nbytes], [buffer[0].nbytes]


class Envelope:
    """Layers lie within each page; the whole buffer is told as one region of pages."""

    def __init__(self, torch: Any) -> None:
        self.size, self.page_size, pages = TOKENS, PAGE, TOKENS // PAGE + 1
        self._raw = torch.zeros(pages * 1024, dtype=torch.uint8)
        self.k_buffer = [self._raw.view(pages, 1024)[:, at : at + 256] for at in (0, 256)]

    def get_contiguous_buf_infos(self) -> Said:
        return [self._raw.data_ptr()], [self._raw.nbytes], [1024]


class Compressed:
    """Pages of a compressed cache have a fourth of the entries; those of its index are shorter by
    half again, so that a slot is two of them."""

    class Part:
        def __init__(self, torch: Any, size: int, page: int, row: int, name: str) -> None:
            self.size, self.page_size = size, page
            rows = -(-(size + page) // page)
            setattr(self, name, [torch.zeros((rows, row), dtype=torch.uint8)])

    def __init__(self, torch: Any) -> None:
        self.size, self.page_size, self.compression_ratios = 256, 64, [0, 4]
        self.kv_pools = {4: self.Part(torch, 64, 16, 600, "kv_buffer")}
        self.index_pools = {4: self.Part(torch, 64, 8, 100, "index_k_with_scale_buffer")}

    def get_contiguous_buf_infos(self) -> Said:
        (kv,), (index,) = self.kv_pools[4].kv_buffer, self.index_pools[4].index_k_with_scale_buffer
        return (
            [kv.data_ptr(), index.data_ptr()],
            [kv.nbytes, index.nbytes],
            [kv[0].nbytes, index[0].nbytes * 2],
        )


class Manager:
    """Of the transport. Its agent registers nothing here."""

    def __init__(self, name: str | None, **given: Any) -> None:
        nothing: dict[str, list[Any]] = {
            f"{what}_{part}": []
            for what in ("kv", "aux", "state")
            for part in ("data_ptrs", "data_lens", "item_lens")
        }
        self.kv_args = SimpleNamespace(
            **(nothing | {"page_size": PAGE, "gpu_id": 3, "engine_rank": 1} | given)
        )
        if name is not None:
            self.agent = SimpleNamespace(name=name)

    def register_buffer_to_engine(self) -> str:
        return "registered"


def repeat_indices_over_layers(indices: Any, num_layers: int, layer_length: int) -> Any:
    import numpy as np

    offsets = np.arange(num_layers, dtype=np.int32) * layer_length
    return (offsets[:, None] + indices[None, :]).ravel()


class Host:
    """A copy of `Pages` in host memory, layer by layer."""

    def __init__(self, torch: Any, tokens: int = 2 * TOKENS, width: int = WIDTH) -> None:
        self.size, self.page_size, self.layout = tokens, PAGE, "layer_first"
        self.kv_buffer = torch.zeros((2, 2, tokens, HEADS, width), dtype=torch.bfloat16)
        self.k_data_refs, self.v_data_refs = list(self.kv_buffer[0]), list(self.kv_buffer[1])

    def free(self, indices: Any) -> int:
        return len(indices)

    def backup_from_device_all_layer(
        self, device_pool: Any, host_indices: Any, device_indices: Any, io_backend: str
    ) -> None:
        for ours, theirs in (
            (self.k_data_refs, device_pool.k_buffer),
            (self.v_data_refs, device_pool.v_buffer),
        ):
            for here, there in zip(ours, theirs, strict=True):
                here[host_indices] = there[device_indices]

    def load_to_device_per_layer(
        self,
        device_pool: Any,
        host_indices: Any,
        device_indices: Any,
        layer_id: int,
        io_backend: str,
        *,
        is_draft: bool = False,
    ) -> None:
        device_pool.k_buffer[layer_id][device_indices] = self.k_data_refs[layer_id][host_indices]
        device_pool.v_buffer[layer_id][device_indices] = self.v_data_refs[layer_id][host_indices]


class HostOfAnotherKind(Host):
    def backup_from_device_all_layer(
        self, device_pool: Any, host_indices: Any, device_indices: Any, io_backend: str
    ) -> None:
        super().backup_from_device_all_layer(device_pool, host_indices, device_indices, io_backend)


class HostWithAWrongKernel(Host):
    """Of layer 0's keys each page is brought the first one's bytes."""

    def backup_from_device_all_layer(
        self, device_pool: Any, host_indices: Any, device_indices: Any, io_backend: str
    ) -> None:
        super().backup_from_device_all_layer(device_pool, host_indices, device_indices, io_backend)
        first = self.k_data_refs[0][host_indices[:PAGE]]
        for begin in range(0, len(host_indices), PAGE):
            self.k_data_refs[0][host_indices[begin : begin + PAGE]] = first


class Group:
    """Host pools that are copied together."""

    def __init__(self, *hosts: Host) -> None:
        self.hosts = hosts

    def backup_from_device_all_layer(
        self, device_pool: Any, host_indices: Any, device_indices: Any, io_backend: str
    ) -> None:
        for host in self.hosts:
            host.backup_from_device_all_layer(device_pool, host_indices, device_indices, io_backend)


def module(name: str = MODULE) -> ModuleType:
    """These classes as a module of the engine would have them."""
    made = ModuleType(name)
    for one in list(globals().values()):
        if isinstance(one, type) and one not in (ModuleType, SimpleNamespace):
            one.__module__ = Compressed.Part.__module__ = name
            setattr(made, one.__name__, one)
    return made
