"""What changed between two captures, as people read it."""

from dataclasses import replace

from hypothesis import given

from kvlint.drawing import changes
from kvlint.drawing.comparing import difference
from kvlint.geometry import Geometry
from tests.drawing.samples import (
    UNHURRIED,
    apart,
    odd_geometries,
    of_0_5_21,
    of_0_5_22_in_bf16,
    region,
)


def said(one, two):
    found = difference(one, two)
    return list(changes.lines(found, ["a", "b"], lambda text, style: text))[2:]


def test_alike_changes_are_told_once_and_what_follows_for_the_list():
    assert said(of_0_5_21(), of_0_5_22_in_bf16()) == [
        "",
        "list kv",
        "  regions 2, 3 (layers 2, 4 c4 index key): item and transfer length 8,448 -> 16,384 "
        "bytes, slots 161 -> 164, length 1,360,128 -> 2,686,976 bytes",
        "  descriptors before region 3: 489 -> 492 (+3)",
        "  descriptors before region 4: 650 -> 656 (+6)",
        "  descriptors before region 5: 938 -> 944 (+6)",
        "  descriptors in all: 1,226 -> 1,232 (+6)",
        "  index i * S0 + p, with the slots of region 0: wrong in A from region 3 on, wrong in B "
        "from region 5 on",
        "",
        "4 regions the same",
    ]


def test_whether_one_stride_was_right_and_is():
    one = apart([region("a", 4, 10), region("b", 4, 10), region("c", 4, 10)])
    a, b, c = one.regions
    two = Geometry((a, region("b", 3, 10, address=b.address), c))
    line = "  index i * S0 + p, with the slots of region 0: right in A, wrong in B from region 2 on"
    assert line in said(one, two)
    # The last region's own slots change no start.
    three = Geometry((a, b, region("c", 9, 10, address=c.address)))
    assert not [told for told in said(one, three) if "S0" in told]


def test_addresses_and_labels_are_no_difference():
    one = of_0_5_21()
    moved = [replace(r, address=r.address + 4096) for r in one.regions]
    assert not difference(one, Geometry(tuple(moved), "other", "process")).found
    assert said(one, one) == ["no difference"]


def test_overlap_is_a_difference():
    one = apart([region("a", 4, 10), region("b", 4, 10)])
    a, b = one.regions
    two = Geometry((a, replace(b, address=a.address + 25)))
    assert said(one, two)[1:3] == [
        "list kv",
        "  region 1 (b): in common with a region that begins before it 0 -> 15 bytes",
    ]


def test_a_region_of_another_name_is_known_by_list_layer_and_role():
    one = apart([region("layer 3 key", 4, 10, layer=3, role="key")])
    two = apart([region("k.3", 4, 20, layer=3, role="key")])
    assert said(one, two)[2] == (
        "  region 0 (layer 3 key): name layer 3 key -> k.3, item and transfer length 10 -> 20 "
        "bytes, length 40 -> 80 bytes"
    )


def test_layer_and_role_that_several_have_say_nothing():
    same = {"layer": 3, "role": "key"}
    one = apart([region("a", 4, 10, **same), region("b", 4, 10, **same)])
    two = apart([region("c", 4, 10, **same)])
    found = difference(one, two)
    assert [len(side) for side in found.only] == [2, 1]


def test_what_a_list_is_called_is_no_difference_and_told():
    """As lists that were folded from a run are numbered in each process."""
    one = Geometry(tuple(replace(r, list="kv.1") for r in of_0_5_21().regions))
    two = Geometry(tuple(replace(r, list="kv.2") for r in of_0_5_21().regions))
    assert not difference(one, two).found
    assert said(one, two) == ["list kv.1 is called kv.2 in B", "no difference"]
    three = Geometry(tuple(replace(r, list="kv.2") for r in of_0_5_22_in_bf16().regions))
    assert said(one, three)[1] == "list kv.1, kv.2 in B"
    assert said(one, three)[2:] == said(of_0_5_21(), of_0_5_22_in_bf16())[2:]


def test_lists_of_two_kinds_or_of_several_candidates_stay_what_they_are():
    a, b = region("a", 4, 10), region("b", 5, 10)
    one = apart([replace(a, list="kv.x"), replace(b, list="kv.y")])
    two = apart([replace(a, list="state"), replace(region("c", 4, 10), list="kv.z")])
    assert dict(difference(one, two).called) == {}


def test_what_only_one_side_has_and_what_moved():
    one = apart([region("a", 4, 10), region("b", 4, 10), region("c", 9, 10)])
    two = apart([region("b", 4, 10), region("a", 4, 10), region("d", 2, 10), region("e", 2, 10)])
    assert said(one, two)[1:] == [
        "list kv",
        "  only in A: region 2 (c): 9 slots of 10 bytes",
        "  only in B: regions 2, 3 (d, e): 2 slots of 10 bytes",
        "  order differs: 'b' is region 1 in A, 0 in B",
        "  descriptors before region 0 (1 in B): 0 -> 4 (+4)",
        "  descriptors before region 1 (0 in B): 4 -> 0 (-4)",
        "  descriptors in all: 17 -> 12 (-5)",
        "  index i * S0 + p, with the slots of region 0: right in A, wrong in B from region 3 on",
        "",
        "2 regions the same",
    ]


def test_many_shifts_are_told_by_their_ends():
    one = apart([region(f"r{at}", 4, 10) for at in range(40)])
    two = apart([region(f"r{at}", 5, 10) for at in range(40)])
    told = [line for line in said(one, two) if "descriptors" in line]
    assert told[0] == "  descriptors before region 1: 4 -> 5 (+1)"
    assert told[-1] == "  descriptors in all: 160 -> 200 (+40)"
    assert len(told) == 6
    assert "  regions 0-39 (r0 ... r39): slots 4 -> 5, length 40 -> 50 bytes" in said(one, two)


@UNHURRIED
@given(odd_geometries(), odd_geometries())
def test_any_two_can_be_compared_and_one_is_the_same_as_itself(one, two):
    assert not difference(one, one).found
    found = difference(one, two)
    assert found.found == difference(two, one).found
    both = found.same + sum(len(changed.pairs) for changed in found.changed)
    assert len(one.regions) == both + len(found.only[0])
    assert len(two.regions) == both + len(found.only[1])
    assert all("\n" not in line for line in said(one, two))
    changes.data(found, ["a", "b"], [one, two])
