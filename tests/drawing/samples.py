"""Geometry as real pools have it, in few words, and geometry that no pool has."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kvlint.geometry import Geometry, Region

# Bytes of a page of c4 entries, of index keys in fp8 and in bf16, of c128 entries: DeepSeek-V4.
C4, INDEX, INDEX_BF16, C128 = 37_440, 8_448, 16_384, 1_728


def region(name: str, slots: int, stride: int, **more: Any) -> Region:
    given = {"length": slots * stride, "transfer_length": stride, "address": 1 << 32}
    rest = {"memory_kind": "DRAM", "device": 0, "list": "kv"}
    return Region(name=name, stride=stride, **{**given, **rest, **more})


def apart(regions: Sequence[Region], engine: str | None = None) -> Geometry:
    """One region far from the next."""
    placed = [replace(one, address=(at + 1) << 40) for at, one in enumerate(regions)]
    return Geometry(tuple(placed), engine)


def dsv4(index_slots: int, index_bytes: int, engine: str) -> Geometry:
    """The pages of two layers of each kind, as 40,960 tokens have them."""
    kinds = (
        ("c4 kv", (2, 4), 164, C4),
        ("c4 index key", (2, 4), index_slots, index_bytes),
        ("c128 kv", (3, 5), 288, C128),
    )
    return apart(
        [
            region(f"layer {layer} {role}", slots, stride, layer=layer, role=role, dtype="uint8")
            for role, layers, slots, stride in kinds
            for layer in layers
        ],
        engine,
    )


def of_0_5_21() -> Geometry:
    return dsv4(161, INDEX, "sglang 0.5.21")


def of_0_5_22_in_bf16() -> Geometry:
    return dsv4(164, INDEX_BF16, "sglang 0.5.22")


# Whatever else runs on the machine.
UNHURRIED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

_text = st.one_of(
    st.sampled_from(
        ["<b>&\"'", "n" * 200, "名" * 200, "model.layers.17.self_attn.indexer.k_cache"]
    ),
    st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12),
).filter(str.isprintable)
_sizes = st.one_of(st.integers(1, 300), st.integers(1, 1 << 40))


@st.composite
def odd_regions(draw: st.DrawFn, name: str) -> Region:
    length = draw(st.one_of(st.integers(0, 2_000), st.integers(0, 1 << 50)))
    return Region(
        name=name,
        address=draw(st.one_of(st.integers(0, 4_000), st.integers(0, (1 << 64) - 1 - length))),
        length=length,
        stride=draw(_sizes),
        transfer_length=draw(_sizes),
        memory_kind=draw(st.sampled_from(["VRAM", "DRAM"])),
        device=draw(st.integers(0, 1)),
        list=draw(st.sampled_from(["kv", "state", "state.swa"])),
        layer=draw(st.none() | st.integers(0, 1 << 60)),
        role=draw(st.none() | _text),
        dtype=draw(st.none() | _text),
        element_size=draw(st.none() | st.integers(1, 16)),
        page_size=draw(st.none() | st.integers(1, 1 << 50)),
        group=draw(st.none() | _text),
    )


@st.composite
def odd_geometries(draw: st.DrawFn) -> Geometry:
    """All that a file may hold: no slots, huge beside tiny, overlap, long names."""
    names = draw(st.lists(_text, max_size=7, unique=True))
    return Geometry(tuple(draw(odd_regions(name)) for name in names), draw(st.none() | _text))
