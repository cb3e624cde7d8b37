"""What is to move of each slot, and what the regions move, byte by byte."""

import math

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.pools.checking import faults
from kvlint.runtime_checks.pools.claims import Cache, Claim, Pool
from kvlint.runtime_checks.pools.coverage import runs
from kvlint.runtime_checks.pools.tensors import Tensor
from tests.runtime_checks.layouts import QUICK

BASE = 1 << 40
BLOCKS = 6


def laid(layers: int, heads: int, tokens: int, width: int, order: str) -> list[Tensor]:
    """Each layer's view of [layer, block, head, token, content], laid out in that order."""
    shape = dict(zip("LBHNC", (layers, BLOCKS, heads, tokens, width), strict=True))
    step, strides = 1, {}
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return [
        Tensor(
            BASE,
            step,
            BASE + layer * strides["L"],
            tuple(shape[axis] for axis in "BHNC"),
            tuple(strides[axis] for axis in "BHNC"),
            1,
            "int8",
        )
        for layer in range(layers)
    ]


def region(name: str, address: int, stride: int, moved: int, **more: object) -> Claim:
    length = (BLOCKS - 1) * stride + moved
    return Claim(
        name=name,
        list="kv",
        address=address,
        length=length,
        item_length=stride,
        transfer_length=moved,
        **more,  # type: ignore[arg-type]
    )


def caches(tensors: list[Tensor], **more: object) -> list[Cache]:
    return [
        Cache(name=f"layer {at}", list="kv", tensor=tensor, layer=at, **more)  # type: ignore[arg-type]
        for at, tensor in enumerate(tensors)
    ]


def missed(claims: list[Claim], of: list[Cache], *, shared: bool = False) -> list[Breach]:
    return [
        breach for _, breach in faults(Pool("Pool", claims, caches=of, shared=shared).settled())
    ]


@QUICK
@given(
    st.tuples(*[st.integers(1, 3)] * 4),
    st.permutations("LBHN").map(lambda axes: "".join(axes) + "C"),
    st.integers(0, 3),
)
def test_the_runs_of_a_slot_are_its_bytes(shape, order, dimension):
    for tensor in laid(*shape, order):
        cache = Cache(name="x", list="kv", tensor=tensor, dimension=dimension)
        inner = [(n, s) for at, (n, s) in enumerate(zip(tensor.shape, tensor.strides, strict=True))]
        del inner[dimension]
        offsets = np.zeros(1, np.int64)
        for n, step in inner:
            offsets = (offsets[:, None] + np.arange(n) * step).ravel()
        found = [byte for begin, end in runs(cache) for byte in range(begin, end)]
        assert found == sorted((offsets + tensor.address).tolist())
        assert len(found) == math.prod(n for n, _ in inner)


@pytest.mark.parametrize("order", ["LBHNC", "LBNHC", "BLHNC", "BLNHC"])
def test_a_region_a_layer_moves_all_and_half_a_region_does_not(order):
    tensors = laid(3, 2, 4, 8, order)
    page, stride = 64, tensors[0].strides[0]
    said = [region(f"layer {at}", t.address, stride, page) for at, t in enumerate(tensors)]
    assert missed(said, caches(tensors)) == []
    said[1] = region("layer 1", tensors[1].address, stride, page // 2)
    (breach,) = missed(said, caches(tensors))
    assert breach.check.name == "slot-coverage"
    assert breach.message == (
        "a slot of layer 1 (layer 1) has 64 bytes, 32 of them are in no region: from byte 32 to "
        "before 64, kv region 1 'layer 1' moves 32 bytes of each of its slots"
    )
    assert (breach.place.region, breach.place.slot, breach.place.byte) == (1, 0, 32)


def test_parts_of_a_layer_apart_and_rows_of_all_layers_move_all():
    apart = laid(2, 2, 4, 8, "LHBNC")
    said = [
        region(f"layer {at} head {head}", t.address + head * t.strides[1], 32, 32)
        for at, t in enumerate(apart)
        for head in range(2)
    ]
    assert missed(said, caches(apart)) == []
    assert [b.place.name for b in missed(said[:3], caches(apart))] == ["layer 1 head 0"]
    rows = laid(2, 2, 4, 8, "BHLNC")
    assert missed([region("rows", BASE, 128, 128)], caches(rows)) == []


def test_slots_may_be_cut_finer_than_the_tensor_has_them():
    (tensor,) = laid(1, 2, 4, 8, "LBHNC")
    fine = region("half pages", BASE, 32, 32)
    assert missed([fine], caches([tensor])) == []
    gaps = region("quarter pages", BASE, 32, 16)
    (breach,) = missed([gaps], caches([tensor]))
    assert breach.values == {"bytes of a slot": 64, "bytes moved of it": 32}


def test_groups_that_share_memory_are_each_moved_whole():
    """Two layers of one group share a row with one wider layer of another."""
    narrow = laid(2, 2, 4, 8, "BLHNC")
    (wide,) = laid(1, 4, 4, 8, "BLHNC")
    said = [
        region("narrow 0", BASE, 128, 64),
        region("narrow 1", BASE + 64, 128, 64, group="0"),
    ]
    wanted = [*caches(narrow, group="0"), Cache(name="wide", list="kv", tensor=wide, group="1")]
    (breach,) = missed(said, wanted, shared=True)
    assert breach.message.startswith("a slot of wide has 128 bytes, 64 of them are in no region")
    whole = region("wide", BASE, 128, 128, group="1")
    assert missed([*said, whole], wanted, shared=True)[0].check.name == "region-overlap"
    said[0] = region("narrow 0", BASE, 128, 64, group="0")
    assert missed([*said, whole], wanted, shared=True) == []
    assert missed([*said, whole], wanted)[0].check.name == "region-overlap"
