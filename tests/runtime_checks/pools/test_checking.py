"""What a pool says against its tensors: each fault at its region, with both values."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from kvlint.geometry import Region
from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.pools.checking import faults, registered_in_part
from kvlint.runtime_checks.pools.claims import Claim, Pool
from kvlint.runtime_checks.pools.tensors import Around, Tensor, tensors_in

PAGE = 4


def eight_slots(name: str) -> Region:
    """Of 128 bytes each, from 4096 on."""
    return Region(
        name=name,
        address=4096,
        length=1024,
        stride=128,
        transfer_length=128,
        memory_kind="DRAM",
        device=0,
        list="kv",
    )


def claims(tensors: list[Any], **changed: Any) -> list[Claim]:
    """Pages of four rows, as an engine says of each tensor."""
    return [
        replace(
            Claim(
                name=f"layer {at} key",
                list="kv",
                layer=at,
                address=tensor.data_ptr(),
                length=tensor.nbytes,
                item_length=tensor[0].nbytes * PAGE,
                slot_rows=PAGE,
                page_size=PAGE,
            ),
            **changed,
        )
        for at, tensor in enumerate(tensors)
    ]


@pytest.fixture
def tensors(torch):
    return [torch.zeros((n, 2, 8), dtype=torch.bfloat16) for n in (40, 36, 48)]


@pytest.fixture
def found(tensors) -> Callable[..., list[Breach]]:
    def find(said: list[Claim], held: Any = tensors) -> list[Breach]:
        return [
            breach for _, breach in faults(Pool("Pool", said, tensors_in({"keys": held})).settled())
        ]

    return find


def test_a_right_pool_of_unequal_regions_is_silent(found, tensors):
    assert found(claims(tensors)) == []
    assert found(claims(tensors, slot_rows=None)) == []


def test_an_item_length_for_elements_of_one_byte_is_named_as_such(found, tensors):
    said = claims(tensors)
    said[1] = replace(said[1], item_length=said[1].item_length // 2)
    (breach,) = found(said)
    assert (breach.check.name, breach.code) == ("item-length", "KV201")
    assert breach.formula == "the dtype has this many bytes"
    assert breach.values == {"item length of region 1": 64, "bytes of a slot": 128}
    assert breach.message == (
        "kv region 1 'layer 1 key' (layer 1) has item length 64, a slot is 4 rows of 32 bytes, "
        "128 bytes: right for elements of 1 byte, bfloat16 has 2; slot 1 begins at byte 128, "
        "not 64"
    )


@pytest.mark.parametrize(
    ("rows", "item_length", "wanted"), [(4, 136, 128), (4, 96, 128), (None, 72, 64), (None, 0, 32)]
)
def test_an_item_length_that_is_no_slot_is_told_with_what_a_slot_takes(
    found, tensors, rows, item_length, wanted
):
    said = claims(tensors, slot_rows=rows)
    said[2] = replace(said[2], item_length=item_length)
    (breach,) = found(said)
    assert (breach.check.name, breach.code) == ("item-length", None)
    assert list(breach.values.values()) == [item_length, wanted]
    assert breach.place is not None
    assert (breach.place.region, breach.place.name) == (2, "layer 2 key")


def test_a_length_of_the_first_region_runs_past_a_shorter_one(found, tensors):
    said = claims(tensors, length=tensors[0].nbytes)
    (breach,) = found(said)
    assert breach.check.name == "pool-length"
    assert breach.values == {"bytes of region 1": 1280, "bytes of its tensor from there": 1152}
    assert breach.place is not None
    assert (breach.place.region, breach.place.slot, breach.place.byte) == (1, 9, 1152)
    assert "past its storage" in breach.message


def test_past_a_view_but_within_its_storage_is_said_without_the_storage(found, torch):
    whole = torch.zeros((20, 16))
    part = whole[:8]
    (breach,) = found(claims([part], length=part.nbytes + 1), [part])
    assert breach.check.name == "pool-length"
    assert "storage" not in breach.message


def test_a_region_moved_by_a_page_ends_too_late(found, tensors):
    said = claims(tensors)
    said[0] = replace(said[0], address=said[0].address + 128)
    (breach,) = found(said)
    assert (breach.check.name, breach.place and breach.place.slot) == ("pool-length", 9)


def test_a_region_in_no_tensor_is_told_with_the_nearest(found, tensors):
    said = claims(tensors)
    at = tensors[2].data_ptr() + tensors[2].nbytes + 8
    said[2] = replace(said[2], address=at, length=1)
    (breach,) = found(said)
    assert breach.check.name == "pool-memory"
    assert "begins in no tensor of Pool: it is 8 bytes after the end of ['keys'][2]" in (
        breach.message
    )


def test_rows_that_reach_into_each_other_make_no_slots(found, torch):
    # Heads first: a "row" of the transposed view is spread over the whole tensor.
    tensor = torch.zeros((2, 40, 8)).transpose(0, 1)
    said = claims([tensor], length=64, item_length=32, slot_rows=1)
    (breach,) = found(said, [tensor])
    assert (breach.check.name, breach.code) == ("slot-layout", "KV404")
    assert list(breach.values.values()) == [1312, 32]


def test_permuted_rows_that_stay_within_a_row_are_right(found, torch):
    tensor = torch.zeros((10, 2, 4, 8)).transpose(1, 2)
    said = claims([tensor], item_length=tensor.stride(0) * 4, slot_rows=1)
    assert found(said, [tensor]) == []


def test_padded_slots_of_which_a_part_is_moved_are_right(found, torch):
    padded = torch.zeros((10, 64), dtype=torch.uint8)[:, :48]
    said = claims([padded], length=9 * 64 + 48, item_length=64, transfer_length=48, slot_rows=1)
    assert found(said, [padded]) == []
    (breach,) = found([replace(said[0], transfer_length=72, length=9 * 64 + 48)], [padded])
    assert breach.values == {"bytes moved of a slot": 72, "item length of region 0": 64}


def test_halves_of_one_page_do_not_overlap_and_neighbours_that_do_are_told(found, torch):
    both = torch.zeros((10, 2, 32), dtype=torch.uint8)
    halves = [both[:, 0], both[:, 1]]
    said = claims(halves, length=9 * 64 + 32, item_length=64, transfer_length=32, slot_rows=1)
    assert found(said, halves) == []
    wide = [replace(claim, transfer_length=40) for claim in said]
    (breach,) = found(wide, halves)
    assert breach.check.name == "region-overlap"
    assert breach.place is not None
    assert (breach.place.region, breach.place.name) == (1, "layer 1 key")


def test_a_cache_that_two_layers_share_is_no_overlap(found, tensors):
    assert found(claims([tensors[0], tensors[0], tensors[1]]), tensors[:2]) == []


def test_regions_of_different_lists_may_share_bytes(found, tensors):
    kv, state = claims(tensors[:1]), claims(tensors[:1], list="state", length=640)
    assert found([*kv, *state]) == []


def test_only_some_of_a_region_registered_is_told_from_where_on():
    region = eight_slots("layer 0 key")
    whole = [("DRAM", 4096, 512, 0), ("DRAM", 4608, 512, 0)]
    assert list(registered_in_part([region], whole)) == []
    assert list(registered_in_part([region], [("DRAM", 0, 1 << 20, 0)])) == []
    assert list(registered_in_part([region], [])) == []
    (breach,) = registered_in_part([region], [whole[0], ("VRAM", 4608, 512, 0)])
    assert breach.values == {"bytes of region 0": 1024, "bytes registered": 512}
    assert breach.place is not None
    assert breach.place.slot == 4
    (breach,) = registered_in_part([region], whole[1:])
    assert breach.values["bytes registered"] == 0


def test_tensors_are_found_on_every_way_once(torch):
    class Pool:
        def __init__(self) -> None:
            self.keys = [torch.zeros(2, 4), torch.zeros(3, 4)]
            self.inner = {"index": torch.zeros(5, 4, dtype=torch.uint8)}
            self.alias, self.itself = self.keys[0], self
            self.elsewhere = object()

    pool = Pool()
    names = dict(tensors_in(pool))
    assert list(names) == ["alias", "keys[1]", "inner['index']"]
    assert names["keys[1]"] == Tensor.of(pool.keys[1])
    assert names["inner['index']"].strides == (4, 1)
    outer = type("Outer", (), {})()
    outer.pool = pool
    assert tensors_in(outer) == []
    assert len(tensors_in(outer, [Pool.__module__])) == 3


def test_rows_with_bytes_between_them_are_told_from_elements_of_another_size(found, torch):
    strided = torch.zeros((80, 2, 8), dtype=torch.bfloat16)[::2]
    said = claims([strided], length=strided.nbytes)
    (breach,) = found(said, [strided])
    assert (breach.check.name, breach.code) == ("item-length", "KV404")
    assert "right for a contiguous tensor, whose rows would be 32 bytes apart" in breach.message


def test_what_is_said_of_no_bytes_is_not_looked_for(found, tensors):
    said = claims(tensors)
    said[1] = replace(said[1], address=0, length=0, item_length=0)
    assert found(said) == []


def test_what_holds_a_byte_is_found_among_overlapping_and_empty_tensors():
    spans = [(10, 30), (10, 14), (14, 20), (20, 20), (26, 40), (50, 51)]
    around = Around((Tensor(0, 64, a, (b - a,), (1,), 1, "uint8"), (a, b)) for a, b in spans)
    for byte in range(64):
        assert list(around[byte]) == [(a, b) for a, b in spans if a <= byte < b], byte
    assert around.nearest(3) in spans[:2]
    assert around.nearest(44) == (26, 40)
    assert around.nearest(46) == around.nearest(60) == (50, 51)


def test_no_memory_that_is_registered_beside_or_twice_makes_a_region_registered():
    region = eight_slots("keys")
    beside = [("DRAM", 0, 4096, 0), ("DRAM", 5120, 64, 0), ("DRAM", 4096, 1024, 1)]
    assert list(registered_in_part([region], beside)) == []
    twice = [*beside, ("DRAM", 4000, 300, 0), ("DRAM", 4100, 20, 0), ("DRAM", 4200, 920, 0)]
    assert list(registered_in_part([region], twice)) == []
    (breach,) = registered_in_part([region], [*beside, *twice[3:5], ("DRAM", 4864, 256, 0)])
    assert breach.values["bytes registered"] == 4300 - 4096


def test_a_layer_told_with_the_tensor_of_another_leaves_its_own_over(found, torch):
    like = [torch.zeros((40, 2, 8), dtype=torch.bfloat16) for _ in range(3)]
    said = claims([like[0], like[0], like[2]])
    (breach,) = found(said, like)
    assert breach.check.name == "region-overlap"
    assert breach.message == (
        "kv region 1 'layer 1 key' (layer 1) is kv region 0 over again, and ['keys'][1] of Pool is "
        "in no region"
    )
    assert breach.place is not None
    assert breach.place.region == 1
    # A tensor of another shape is for something else.
    assert found(said, [like[0], like[2], torch.zeros((40, 4, 8), dtype=torch.bfloat16)]) == []


def test_what_an_object_raises_hides_nothing_of_the_rest(torch):
    class Closed(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError

    class Pool:
        def __init__(self) -> None:
            self.closed, self.free = Closed(), [0, 1, True, "2", None]
            self.keys = [torch.zeros(2, 4)]
            self.sealed = Sealed()

    class Sealed:
        @property
        def __dict__(self) -> Any:
            raise RuntimeError

    names = [name for name, _ in tensors_in(Pool(), [Pool.__module__])]
    assert names == ["keys[0]"]
