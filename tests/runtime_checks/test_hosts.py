"""What the companion's tests stand on: bytes really move between two agents of one process."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from tests.runtime_checks.hosts import (
    fill,
    indices,
    neighbours,
    regions,
    rows3,
    rows5,
    starts,
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
