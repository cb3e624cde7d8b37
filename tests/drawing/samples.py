"""Geometry as real pools have it, in few words."""

from collections.abc import Sequence
from typing import Any

from kvlint.geometry import Geometry, Region

# Bytes of a page of c4 entries, of index keys in fp8 and in bf16, of c128 entries: DeepSeek-V4.
C4, INDEX, INDEX_BF16, C128 = 37_440, 8_448, 16_384, 1_728


def region(name: str, slots: int, stride: int, **more: Any) -> Region:
    given = {"length": slots * stride, "transfer_length": stride, "address": 1 << 32}
    rest = {"memory_kind": "DRAM", "device": 0, "list": "kv"}
    return Region(name=name, stride=stride, **{**given, **rest, **more})


def apart(regions: Sequence[Region], engine: str | None = None) -> Geometry:
    """One region far from the next."""
    from dataclasses import replace

    placed = [replace(r, address=(at + 1) << 40) for at, r in enumerate(regions)]
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
