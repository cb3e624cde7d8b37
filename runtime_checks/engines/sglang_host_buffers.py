"""The buffers of SGLang's host pools, and those of the device that they are copies of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvlint.runtime_checks.engines.sglang_pools import rows_of_page
from kvlint.runtime_checks.pools.tensors import Tensor, is_tensor

# The host's buffers, layer by layer; those of the device, where the host pool keeps them; and where
# they are else, in the device's pool; and what they hold.
_BUFFERS: Final = (
    ("k_data_refs", ("device_k_buffers",), "k_buffer", "key"),
    ("v_data_refs", ("device_v_buffers",), "v_buffer", "value"),
    ("data_refs", ("device_kv_buffers", "device_buffers", "device_page_views"), "kv_buffer", "kv"),
    (
        "index_k_data_refs",
        ("packed_device_index_buffers",),
        "index_k_with_scale_buffer",
        "index key",
    ),
)
# Host pools that keep the device's buffers by page.
_BY_PAGE: Final = ("device_buffers", "device_page_views")


@dataclass(frozen=True, slots=True)
class Pair:
    """Buffers of one thing, layer by layer, on the host and on the device.

    by_page  whether a row is a page, whatever the sizes are
    tokens   whether parts of a page are copied, too, where no whole pages are given
    """

    role: str
    host: Sequence[Any]
    device: Sequence[Any]
    by_page: bool
    tokens: bool


def pairs_of(host: Any, device_pool: Any) -> Iterator[Pair]:
    """Thing by thing, as far as either side has any."""
    for name, kept, there, role in _BUFFERS:
        ours = [one for one in getattr(host, name, None) or () if is_tensor(one)]
        own = next((n for n in kept if getattr(host, n, None) is not None), None)
        theirs = getattr(host, own) if own else getattr(device_pool, there, None)
        if not isinstance(theirs, (list, tuple)):
            theirs = ()
        device = [one for one in theirs if is_tensor(one)]
        if ours or device:
            kept_by_page = own in _BY_PAGE
            by_page = kept_by_page or role == "index key"
            yield Pair(role, ours, device, by_page, kept_by_page)


def rows_of(tensor: Tensor, size: object, page: object, by_page: bool) -> int | None:
    """How many entries of its first dimension a page takes; None where that is not known."""
    if by_page:
        return 1
    if not (isinstance(size, int) and isinstance(page, int) and tensor.shape):
        return None
    return rows_of_page(tensor.shape[0], size, page, page)


def name_of(host: Any) -> str:
    """For people."""
    name = getattr(host, "pool_name", None) or getattr(host, "pool_label", None)
    return str(name) if name else type(host).__name__
