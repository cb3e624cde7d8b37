"""Pages of a transfer are found again as pages of pools, however blocks and regions lie."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.geometry import Region
from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.stages.locating import located
from kvlint.runtime_checks.stages.memory import Memory

STRIDES = st.sampled_from([8, 8, 4, 6])


def region(number, address, slots, stride):
    return Region(
        name=f"r{number}",
        address=address,
        length=slots * stride,
        stride=stride,
        transfer_length=4,
        memory_kind="DRAM",
        device=0,
        list="kv",
    )


@st.composite
def memories(draw):
    """Edge to edge, with gaps, or over one another."""
    end, regions = draw(st.integers(0, 16)), []
    for number in range(draw(st.integers(0, 4))):
        slots, stride = draw(st.integers(1, 5)), draw(STRIDES)
        address = max(0, end + draw(st.sampled_from([0, 0, 4, -8])))
        regions.append(region(number, address, slots, stride))
        end = address + slots * stride
    return Memory("pool", tuple(draw(st.permutations(regions))))


@st.composite
def transfers(draw, known):
    """Blocks begin at regions, at slots of theirs, or anywhere."""
    places = [r.address + n * r.stride for m in known for r in m.regions for n in range(-1, 3)]
    anywhere = st.integers(0, 60)
    near = st.sampled_from([p for p in places if p >= 0] or [0]) | anywhere
    blocks = draw(st.lists(near, max_size=4, unique=True))
    runs = [draw(st.lists(st.integers(0, 5), max_size=4, unique=True)) for _ in range(2)]
    which = [draw(st.integers(0, 1)) for _ in blocks]
    firsts = np.array([0, len(runs[0])], np.int64)[which] if blocks else np.zeros(0, np.int64)
    counts = np.array([len(runs[one]) for one in which], np.int64)
    total = int(counts.sum())
    order = draw(st.none() | st.permutations(range(total)).map(lambda o: np.array(o, np.int64)))
    return Pages(
        np.array(blocks, np.uint64),
        np.array([draw(STRIDES) for _ in blocks], np.int64),
        np.array([draw(st.sampled_from([4, 4, 5])) for _ in blocks], np.int64),
        firsts,
        counts,
        np.array(runs[0] + runs[1], np.int64),
        "DRAM",
        order=order,
    )


def expected(pages, memory):
    """Region, slot and address of every page that begins a slot, one page at a time."""
    lengths = pages.page_lengths.tolist()
    for position, address in enumerate(pages.addresses.tolist()):
        for number, one in enumerate(memory.regions):
            slot, rest = divmod(address - one.address, one.stride)
            if lengths[position] == 4 and rest == 0 and 0 <= slot < memory.slots:
                yield number, slot, address


@settings(max_examples=500)
@given(st.data())
def test_each_page_is_found_in_each_region_that_has_it_and_nowhere_else(data):
    known = data.draw(st.lists(memories(), max_size=2))
    pages = data.draw(transfers(known))
    # Two blocks may hold one page: of its positions the last is kept.
    found = {id(memory): set() for memory in known}
    addresses = pages.addresses.tolist()
    for one in located(pages, known):
        for number, row in enumerate(one.positions.tolist()):
            for slot, position in zip(one.slots.tolist(), row, strict=True):
                if position >= 0:
                    found[id(one.memory)].add((number, slot, addresses[position]))
    for memory in known:
        assert found[id(memory)] == set(expected(pages, memory))


def test_pages_of_many_regions_go_together():
    memory = Memory("pool", tuple(region(n, n * 100, 9, 8) for n in range(3)))
    slots = np.array([2, 0, 7], np.int64)
    ((_, pages),) = memory.pages(slots)
    (one,) = located(pages, [memory])
    assert one.slots.tolist() == [2, 0, 7]
    assert one.positions.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_a_block_that_begins_inside_a_region_is_counted_from_there():
    memory = Memory("pool", (region(0, 100, 9, 8),))
    pages = Pages(
        *(np.array([n], np.int64) for n in (100 + 3 * 8, 8, 4, 0, 2)), np.array([0, 4]), "DRAM"
    )
    (one,) = located(pages, [memory])
    assert one.slots.tolist() == [3, 7]


def test_a_block_that_begins_before_every_region_is_found_as_far_as_it_lies_in_one():
    memory = Memory("pool", (region(0, 100, 9, 8),))
    pages = Pages(
        *(np.array([n], np.int64) for n in (100 - 8, 8, 4, 0, 2)), np.array([0, 1]), "DRAM"
    )
    (one,) = located(pages, [memory])
    assert (one.slots.tolist(), one.positions.tolist()) == ([0], [[1]])
