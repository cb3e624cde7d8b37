"""Memory that nobody has declared, kept as geometry where prepared lists show buffers."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint import runtime_checks
from kvlint.geometry import Geometry
from kvlint.runtime_checks.capture import FOLDED
from tests.runtime_checks.hosts import fill, neighbours, regions, rows3, rows5


@pytest.fixture
def kept(tmp_path, monkeypatch, arm):
    """Arms, and gives back the geometry that was kept of a host."""
    monkeypatch.setenv("KVLINT_REPORT", str(tmp_path))
    arm()

    def kept(host):
        found = list(tmp_path.glob(f"geometry-*-{host.name}.json"))
        assert len(found) <= 1
        return Geometry.from_json(found[0].read_bytes()) if found else None

    return kept


@pytest.mark.parametrize("rows", [rows3, rows5])
def test_registrations_are_buffers_that_the_list_cuts_into_slots(kept, host, rows):
    one = host("here", regions([6, 6, 4], [64, 32, 64]))
    one.prepare(None, rows(one.regions))
    found = kept(one)
    assert (found.engine, found.process) == (FOLDED, one.name)
    assert [(r.length, r.stride, r.slots) for r in found.regions] == [
        (6 * 64, 64, 6),
        (6 * 32, 32, 6),
        (4 * 64, 64, 4),
    ]
    assert min(region.address for region in found.regions) == 0
    addresses = [part.ctypes.data for part in one.regions]
    assert [r.address + min(addresses) for r in found.regions] == addresses


def test_a_list_of_fewer_slots_than_there_are_tells_the_same_buffers(kept, host):
    one = host("here", regions([6, 5, 4]))
    one.prepare(None, rows3(one.regions, [4, 4, 4]))
    one.prepare(None, rows3(one.regions))
    assert [region.slots for region in kept(one).regions] == [6, 5, 4]


def test_lists_of_other_buffers_are_other_lists(kept, host):
    one = host("here", regions([6, 6, 4, 4]))
    for _ in range(2):
        one.prepare(None, rows3(one.regions[:2]))
        one.prepare(None, rows3(one.regions[2:]))
    found = kept(one)
    lists = list(dict.fromkeys(region.list for region in found.regions))
    assert [len(found.regions_of(name)) for name in lists] == [2, 2]
    assert {name.partition(".")[0] for name in lists} == {"kv"}


def test_parts_of_one_registration_may_be_anything(kept, host):
    one = host("here", [])
    one.regions = neighbours([6, 6, 4])
    one.register_bytes(one.regions[0].ctypes.data, sum(part.nbytes for part in one.regions))
    one.prepare(None, rows5(one.regions))
    assert kept(one) is None


@pytest.mark.parametrize(
    "slots", [slice(1, 5), slice(0, 4, 2), slice(0, 1)], ids=["later", "every second", "one"]
)
def test_pages_of_one_request_are_no_buffers(kept, host, slots):
    one = host("here", regions([6, 6]))
    rows = rows3(one.regions).reshape(2, 6, 3)[:, slots].reshape(-1, 3)
    one.prepare(None, np.ascontiguousarray(rows))
    assert kept(one) is None


def test_what_was_declared_is_not_folded(kept, host, torch):
    one = host("here", regions([6, 6]))
    pool = {f"layer {n}": torch.from_numpy(part) for n, part in enumerate(one.regions)}
    runtime_checks.guard_pool(pool, name="mine", agent=one.name)
    one.prepare(None, rows3(one.regions))
    found = kept(one)
    assert found.engine is None
    assert [region.name for region in found.regions] == ["layer 0", "layer 1"]


def test_a_transfer_that_describes_itself_leaves_no_geometry(kept, host):
    one, other = host("here", regions([6, 6])), host("here", regions([6, 6]))
    fill(one.regions)
    one.meet(other)
    local, remote = (
        host.agent.get_xfer_descs([(p.ctypes.data, p.nbytes, 0) for p in host.regions], "DRAM")
        for host in (one, other)
    )
    one.agent.initialize_xfer("WRITE", local, remote, other.name, b"m")
    assert kept(one) is None


def test_nothing_is_kept_without_a_folder(arm, host, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    armed = arm()
    one = host("here", regions([6, 6]))
    one.prepare(None, rows3(one.regions))
    assert armed.faults == {}
    assert list(tmp_path.iterdir()) == []
