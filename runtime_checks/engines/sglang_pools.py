"""What a pool of SGLang says of its regions, with what its own attributes tell of each. Pure
reading: a pool and its answer in, claims out.

Where a tensor lies in the pool tells what it holds; the sizes of the object that holds it tell
whether its rows are tokens or pages. Class names tell nothing here, so a pool that a later version,
or a platform, derives from these is read like them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvlint.runtime_checks.checks import POOL_LISTS, Breach
from kvlint.runtime_checks.pools.claims import Claim, Pool
from kvlint.runtime_checks.pools.tensors import Around, Tensor, attribute, is_tensor, tensors_in

PACKAGE: Final = "sglang"

Said = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Addresses, lengths and item lengths, in bytes."""

# What a buffer holds, by the name that it has in its pool, or its pool has in another.
_ROLES: Final[Mapping[str, str]] = {
    "k_buffer": "key",
    "v_buffer": "value",
    "kv_buffer": "kv",
    "kv_buffer_rope": "kv rope",
    "index_k_pool": "index key",
    "index_key_cache": "index key",
    "index_k_with_scale_buffer": "index key",
    "index_k_buffer": "index key",
    "index_k_payload_buffer": "index key",
    "index_k_scale_buffer": "index key scale",
    "k_scale_buffer": "key scale",
    "v_scale_buffer": "value scale",
    "kv_score": "compression state",
    "conv": "conv state",
    "temporal": "temporal state",
    "_raw": "pages",
}
# Where a slot is no page: the list, and what of the pool says how many rows it is.
_ROWS: Final[Mapping[str, str]] = {
    "state.qsa_pending": "qsa_compress_ratio",
    "state.qsa_compressed": "qsa_compressed_page_size",
}
# Whose rows are pages, whatever the size of the pool that holds them: some pools keep keys of more
# tokens than they have.
_PAGE_ROWS: Final = frozenset(("index_key_cache", "index_k_with_scale_buffer"))
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_RATIO: Final = re.compile(r"\bc(\d+)_|\b(?:kv|index)_pools\[(\d+)\]")


def read(pool: Any, said: Said, list_name: str) -> Pool:
    """The pool as the checks see it."""
    held = [_held(pool, path, tensor) for path, tensor in tensors_in(pool, (PACKAGE,))]
    around = Around((one.tensor, one) for one in held)
    claims = [
        _claim(pool, around, number, list_name, *one)
        for number, one in enumerate(zip(*said, strict=False))
    ]
    return Pool(type(pool).__name__, claims, [(one.path, one.tensor) for one in held])


def uneven_lists(name: str, said: Said) -> Breach | None:
    """The lists are read in step, so what one has more of the others is lost without a word."""
    counts = [len(one) for one in said]
    if len(set(counts)) == 1:
        return None
    told = f"{counts[0]} addresses, {counts[1]} lengths and {counts[2]} item lengths"
    values = dict(zip(("addresses", "lengths", "item lengths"), counts, strict=True))
    return Breach(POOL_LISTS, f"{name} gives {told}", values)


def as_said(answer: object) -> Said | None:
    """Three lists of integers, or None for another answer."""
    if not isinstance(answer, tuple) or len(answer) != 3:
        return None
    if not all(isinstance(one, (list, tuple)) for one in answer):
        return None
    if not all(isinstance(value, int) for one in answer for value in one):
        return None
    addresses, lengths, item_lengths = (tuple(one) for one in answer)
    return addresses, lengths, item_lengths


@dataclass(frozen=True)
class Held:
    """A tensor in a pool.

    path     that leads to it: "c4_kv_pool.kv_buffer[2]"
    holders  the objects on the way, the pool first
    names    their names, that of the tensor, or of its list, last
    index    in its list, else None
    """

    path: str
    tensor: Tensor
    holders: Sequence[Any]
    names: Sequence[str]
    index: int | None

    @property
    def ratio(self) -> int | None:
        """How many tokens one entry stands for, in a pool that compresses."""
        found = _RATIO.search(self.path)
        if found is not None:
            return int(found[1] or found[2])
        ratios = (_whole(attribute(holder, "ratio", None)) for holder in reversed(self.holders))
        return next((ratio for ratio in ratios if ratio is not None), None)

    @property
    def role(self) -> str:
        """ "key", "c4 index key", "swa value": one thing of one layer."""
        known = [_ROLES[name] for name in self.names if name in _ROLES]
        what = known[0] if known and known[0] == "index key" else known[-1] if known else ""
        if not what:
            what = self.names[-1].strip("_").removesuffix("_buffer").replace("_", " ")
        before = [f"c{self.ratio}"] if self.ratio else []
        before += [word for word in ("swa", "indexer") if any(word in n for n in self.names[:-1])]
        return " ".join([*(one for one in before if one != "indexer" or "index" not in what), what])


def _held(pool: Any, path: str, tensor: Tensor) -> Held:
    holders, names, index, thing = [pool], [], None, pool
    for name, key in _STEP.findall(path):
        if name:
            names.append(name)
            thing, index = attribute(thing, name, None), None
        else:
            thing, index = _part(thing, key)
        if hasattr(thing, "__dict__") and not is_tensor(thing):
            holders.append(thing)
    return Held(path, tensor, holders, names, index)


def _part(thing: Any, key: str) -> tuple[Any, int | None]:
    try:
        if isinstance(thing, Mapping):
            parts = list(thing.items())
            return next((part for name, part in parts if repr(name) == key), None), None
        return thing[int(key)], int(key)
    except Exception:
        # Another thread has changed it since.
        return None, None


def _claim(
    pool: Any,
    around: Around[Held],
    number: int,
    list_name: str,
    address: int,
    length: int,
    item_length: int,
) -> Claim:
    here = _lying(around[address], address, length)
    if here is None:
        return Claim(
            name=f"{list_name} {number}",
            list=list_name,
            address=address,
            length=length,
            item_length=item_length,
        )
    part = _part_of_stack(here, address, length)
    layer = _layer(pool, here, part)
    name = here.role if layer is None else f"layer {layer} {here.role}"
    at = here.index if part is None else part
    return Claim(
        name=name if layer is not None or at is None else f"{name} {at}",
        list=list_name,
        address=address,
        length=length,
        item_length=item_length,
        layer=layer,
        role=here.role,
        page_size=_whole(attribute(pool, "page_size", None)) if list_name == "kv" else None,
        slot_rows=slot_rows(pool, here, part is not None, list_name),
        tensor=here.tensor if part is None else here.tensor.part(part),
    )


def _lying(around: Sequence[Held], address: int, length: int) -> Held | None:
    """The tensor that the region is of. Of those with its first byte: one that begins there, whose
    rows are whole (a pool may hold other views of the same bytes), that holds all of it."""

    def fits(one: Held) -> tuple[bool, bool, bool, int]:
        tensor = one.tensor
        split = bool(tensor.shape) and tensor.strides[0] != tensor.reach(1)
        return (
            tensor.address != address,
            split,
            tensor.end < address + length,
            tensor.reach(),
        )

    return min(around, key=fits, default=None)


def _part_of_stack(here: Held, address: int, length: int) -> int | None:
    """Which entry of the first dimension the region is, where its tensor stacks layers: its second
    dimension, not the first, has the slots of the object that holds it."""
    tensor = here.tensor
    if len(tensor.shape) < 2 or not tensor.strides[0]:
        return None
    sizes = (_whole(attribute(holder, "size", None)) for holder in reversed(here.holders))
    size = next((size for size in sizes if size is not None), None)
    layers, slots = tensor.shape[:2]
    if size is None or slots != size + 1 or (layers == slots and length >= tensor.reach()):
        return None
    return (address - tensor.address) // tensor.strides[0]


def slot_rows(pool: Any, here: Held, stacked: bool, list_name: str) -> int | None:
    """Rows of a slot. None where the pool's attributes do not tell: then only whole rows are asked
    for."""
    if stacked or list_name == "aux":
        return 1
    if list_name in _ROWS:
        return _whole(attribute(pool, _ROWS[list_name], None))
    if "unified_kv_pool" in here.names:
        # Rows of the window come first, each a slot; pages of compressed entries follow.
        ratio = _unified_ratio(pool, here)
        pages = _whole(attribute(pool, "page_size", None))
        if "ring" in list_name:
            return 1
        return pages // ratio if pages and ratio else None
    for holder in reversed(here.holders):
        ring = _whole(attribute(holder, "ring_size", None))
        if ring is not None:
            return _rows_of_state(holder, ring, list_name)
    rows = here.tensor.shape[0] if here.tensor.shape else 0
    for holder in reversed(here.holders):
        size = _whole(attribute(holder, "size", None))
        page = _whole(attribute(holder, "page_size", None))
        if size is None or not page:
            continue
        padding = attribute(holder, "global_page_size", page)
        found = rows_of_page(rows, size, page, padding)
        if found != 1 and not _PAGE_ROWS.isdisjoint(here.names):
            return None
        return None if found is None else found * _pages_of_slot(pool, here, holder, page)
    return None


def rows_of_page(rows: int, size: int, page: int, padding: int) -> int | None:
    """The rows of one page of `page` entries, of a buffer for `size` entries and some more."""
    of_entries = size <= rows <= size + page + 1
    of_pages = size <= rows * page <= size + padding + 2 * page
    if page == 1 and (of_entries or of_pages):
        return 1
    if of_entries == of_pages:
        return None
    return page if of_entries else 1


def _pages_of_slot(pool: Any, here: Held, holder: Any, page: int) -> int:
    """A slot is one page of the whole pool's; where the part of the pool that compresses, or the
    window, has smaller pages of its own, several of these."""
    ratio, whole = here.ratio, _whole(attribute(pool, "page_size", None))
    if holder is pool or whole is None:
        return 1
    if any("swa" in name or name == "request_window" for name in here.names[:-1]):
        whole = _whole(attribute(pool, "swa_page_size", None)) or page
        return max(1, whole // page)
    return max(1, whole // ratio // page) if ratio else 1


def _rows_of_state(holder: Any, ring: int, list_name: str) -> int | None:
    """Of the state of a pool that compresses: a ring, where it goes along with the window; else
    what one compressed entry is made of."""
    if list_name == "state":
        return ring
    if attribute(holder, "online", False):
        return 1
    ratio = _whole(attribute(holder, "ratio", None))
    return ring if ratio == 2 else ratio


def _unified_ratio(pool: Any, here: Held) -> int | None:
    ratios = _stage_ratios(pool)
    return ratios[here.index] if here.index is not None and here.index < len(ratios) else None


def _stage_ratios(pool: Any) -> Sequence[int]:
    """The ratio of each layer of this stage of a pool that compresses."""
    ratios = attribute(pool, "compression_ratios", None)
    if not isinstance(ratios, (list, tuple)):
        return ()
    return ratios[attribute(pool, "_stage_start", 0) : attribute(pool, "_stage_end", len(ratios))]


def _layer(pool: Any, here: Held, part: int | None) -> int | None:
    """The model's layer, by whatever the pool has to tell layers by."""
    is_state = here.names[-1] == "kv_score"
    index = _listed_at(here) if is_state else here.index if part is None else part
    if index is None:
        return None
    start = _whole(attribute(pool, "_stage_start", None)) or 0
    stage = _stage_ratios(pool)
    if stage:
        if is_state or not here.ratio or "swa_kv_pool" in here.names:
            return start + index
        of_ratio = [at for at, ratio in enumerate(stage) if ratio == here.ratio]
        return start + of_ratio[index] if index < len(of_ratio) else None
    ids = next(_layer_ids(here, part is not None), None)
    if ids is not None or part is not None:
        return ids[index] if ids and index < len(ids) else None
    first = attribute(here.holders[-1], "start_layer", attribute(pool, "start_layer", 0))
    return index + (_whole(first) or 0)


def _listed_at(here: Held) -> int | None:
    """The place in the outermost list on the way, as of a state pool among the layers."""
    found = re.search(r"\[(\d+)\]", here.path)
    return int(found[1]) if found else None


def _layer_ids(here: Held, stacked: bool) -> Iterator[Sequence[int]]:
    """Lists of layers that the holders have, the innermost holder's first."""
    is_window = any("swa" in name for name in here.names[:-1])
    for holder in reversed(here.holders):
        kept: tuple[str, ...] = ("model_layer_ids", "full_attention_layer_id_mapping")
        if stacked:
            kept = ("mamba_layer_ids", "mamba_map")
        elif "index_k_pool" in here.names:
            kept = ("sparse_layer_id_mapping",)
        for name in kept:
            ids = attribute(holder, name, None)
            if ids:
                yield list(ids)
        mapping = attribute(holder, "layers_mapping", None)
        if mapping and not stacked:
            yield [layer for layer, (_, window) in mapping.items() if window == is_window]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
