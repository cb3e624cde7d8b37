"""What the companion's tests stand on: bytes really move between two agents of one process."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from tests.runtime_checks.hosts import (
    described,
    fill,
    indices,
    neighbours,
    regions,
    rows3,
    rows5,
    starts,
    tensors,
)


@pytest.mark.parametrize("rows", [rows3, rows5])
@pytest.mark.parametrize("operation", ["WRITE", "READ"])
@pytest.mark.parametrize("make", [regions, neighbours])
def test_named_slots_arrive_and_no_others(host, rows, operation, make):
    counts, slots = [5, 3, 4], [2, 0]
    here, there = host("here", make(counts)), host("there", make(counts))
    source, target = (here, there) if operation == "WRITE" else (there, here)
    fill(source.regions)
    here.meet(there)
    chosen = indices(starts(here.regions), slots)
    lists = here.prepare(None, rows(here.regions)), here.prepare(there, rows(there.regions))
    handle = here.agent.make_prepped_xfer(operation, lists[0], chosen, lists[1], chosen)
    here.agent.transfer(handle)
    here.finish(handle)
    for sent, got in zip(source.regions, target.regions, strict=True):
        assert (got[slots] == sent[slots]).all()
        assert not [slot for slot in range(len(got)) if slot not in slots and got[slot].any()]


@pytest.mark.parametrize("form", ["object", "tensors"])
def test_other_lists_name_the_same_slots(host, form, request):
    if form == "tensors":
        request.getfixturevalue("torch")
    here, there = host("here", regions([5, 3])), host("there", regions([5, 3]))
    fill(here.regions)
    here.meet(there)
    chosen = indices(starts(here.regions), [2])
    if form == "object":
        lists = [
            here.prepare(to, described(here, of.regions))
            for to, of in ((None, here), (there, there))
        ]
    else:
        lists = [
            here.prepare(to, tensors(of.regions), None) for to, of in ((None, here), (there, there))
        ]
    handle = here.agent.make_prepped_xfer("WRITE", lists[0], chosen, lists[1], chosen)
    here.agent.transfer(handle)
    here.finish(handle)
    for sent, got in zip(here.regions, there.regions, strict=True):
        assert (got[2] == sent[2]).all()
        assert not got[:2].any()
