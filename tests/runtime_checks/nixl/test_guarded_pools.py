"""A pool of plain tensors over real NIXL: its names and groups in every check of a transfer."""

import gc

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint import runtime_checks
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.hosts import indices, rows3, rows5, starts

COUNTS = (164, 161, 288)


@pytest.fixture
def pools(nixl, host, torch):
    """Two hosts whose regions are one arena each, registered as a whole, with tensors over it:
    NIXL sees no ends of regions."""
    from tests.runtime_checks.hosts import Host, neighbours

    def make():
        hosts = []
        for name in ("here", "there"):
            parts = neighbours(COUNTS)
            one = Host(name, parts)
            one.register_bytes(parts[0].ctypes.data, sum(part.nbytes for part in parts))
            hosts.append(one)
        one, other = hosts
        one.meet(other)
        return one, other, [[torch.from_numpy(part) for part in h.regions] for h in hosts]

    return make


def named(tensors):
    return dict(zip(("c4", "index key", "c128"), tensors, strict=True))


def too_long(tensors):
    """What is said of them: of index keys as many slots as the first has."""
    return {
        name: (tensor.data_ptr(), max(164, len(tensor)) * 64, 64)
        for name, tensor in named(tensors).items()
    }


def test_guarded_regions_have_names_in_one_arena(arm, pools):
    armed = arm("assert")
    one, other, (ours, theirs) = pools()
    runtime_checks.guard_pool(named(ours), name="mine", agent=one.name)
    runtime_checks.guard_pool(named(theirs), name="peers", agent=other.name)
    local = one.prepare(None, rows5(one.regions))
    right = one.prepare(other, rows5(other.regions))
    slots = indices(starts(one.regions), [3, 40])
    handle = one.agent.make_prepped_xfer("WRITE", local, slots, right, slots)
    one.agent.transfer(handle)
    one.finish(handle)
    assert armed.checks == []
    wrong = one.prepare(other, rows3(other.regions, [164, 164, 288]))
    stride = indices([0, 164, 328], [3, 40])
    with pytest.raises(Violation, match=r"'index key'.*164 slots.*161.*slot 161"):
        one.agent.make_prepped_xfer("WRITE", local, slots, wrong, stride)
    with pytest.raises(Violation, match="'c128'"):
        one.agent.make_prepped_xfer("WRITE", local, stride, right, slots)
    assert armed.checks == ["out-of-region", "column"]


def test_what_is_declared_here_says_nothing_of_a_peer_elsewhere(arm, pools):
    armed = arm("assert")
    one, other, (ours, theirs) = pools()
    runtime_checks.guard_pool(named(theirs))
    stranger = type(one)("stranger", one.regions)
    stranger.register_bytes(one.regions[0].ctypes.data, 164 * 64)
    stranger.meet(other, strangers=True)
    over = stranger.prepare(other, rows3(other.regions[:2], [164, 164]))
    assert armed.checks == []
    assert over is not None
    assert ours


def test_a_wrong_pool_is_told_where_it_is_guarded_and_raised_where_it_is_used(arm, pools):
    armed = arm("assert")
    one, other, (ours, _) = pools()
    said = too_long(ours)
    runtime_checks.guard_pool(ours, said=said)
    assert armed.checks == ["pool-length"]
    assert "has 10496 bytes, its tensor ends after 10304" in armed.violations[0]["message"]
    sound = one.prepare(None, rows5(one.regions[2:]))
    touched = one.prepare(None, rows5(one.regions[1:2]))
    remote = one.prepare(other, rows5(other.regions))
    one.agent.make_prepped_xfer("WRITE", sound, [3], remote, [3])
    with pytest.raises(Violation, match="'index key'"):
        one.agent.make_prepped_xfer("WRITE", touched, [3], remote, [3])
    del ours, said
    gc.collect()


def test_where_it_is_asked_for_it_is_raised_where_it_is_guarded(arm, pools, monkeypatch):
    monkeypatch.setenv("KVLINT_STRICT_PREPARE", "1")
    arm("assert")
    _, _, (ours, _) = pools()
    said = too_long(ours)
    with pytest.raises(Violation, match="'index key' has 10496 bytes, its tensor ends after 10304"):
        runtime_checks.guard_pool(ours, said=said)


def test_only_a_part_of_the_pool_registered_is_told(arm, pools):
    armed = arm("log")
    one, _, (ours, _) = pools()
    one.deregister(0)
    one.register_bytes(one.regions[0].ctypes.data, (164 + 100) * 64)
    runtime_checks.guard_pool(named(ours), agent=one.name)
    assert armed.checks == ["region-registered"]
    (record,) = armed.policy.violations
    assert (record["region_name"], record["slot"]) == ("index key", 100)


def test_nothing_is_guarded_where_nothing_is_armed(torch):
    runtime_checks.guard_pool(object())


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (object(), "object is no pool: give its tensors"),
        ([], "there is no tensor in it"),
    ],
)
def test_what_is_no_pool_is_one_line(arm, torch, pool, message):
    arm("log")
    with pytest.raises(ValueError, match=message) as told:
        runtime_checks.guard_pool(pool)
    assert "\n" not in str(told.value)


def test_a_column_that_the_engine_did_not_ask_for_is_told_by_its_indices(arm, pools):
    """Every region gets the same slots, and the other side the same: only who made the indices
    knows better."""
    armed = arm("assert")
    one, other, (ours, theirs) = pools()
    runtime_checks.guard_pool(named(ours), name="mine", agent=one.name)
    runtime_checks.guard_pool(named(theirs), name="peers", agent=other.name)
    lists = one.prepare(None, rows5(one.regions)), one.prepare(other, rows5(other.regions))
    local, remote = indices(starts(one.regions), [3, 40]), indices(starts(other.regions), [4, 41])
    asked = {("kv.peers", None): np.array([4, 41])}
    armed.companion.pools.ask(remote, lambda: asked)
    handle = one.agent.make_prepped_xfer("READ", lists[0], local, lists[1], remote)
    one.agent.transfer(handle)
    one.finish(handle)
    assert armed.checks == []
    asked["kv.peers", None] = np.array([3, 40])
    with pytest.raises(Violation, match=r"'c4'.* slot 4 .*not asked for: slots 3, 40 of it were"):
        one.agent.make_prepped_xfer("READ", lists[0], local, lists[1], remote)
    again = remote.copy()
    one.agent.make_prepped_xfer("READ", lists[0], local, lists[1], again)
    assert armed.checks == ["unasked-slot"]


def test_what_was_asked_for_region_by_region_needs_be_no_column(arm, pools):
    armed = arm("assert")
    one, other, (ours, theirs) = pools()
    runtime_checks.guard_pool(named(ours), name="mine", agent=one.name)
    runtime_checks.guard_pool(named(theirs), name="peers", agent=other.name)
    lists = one.prepare(None, rows5(one.regions)), one.prepare(other, rows5(other.regions))
    asked = {0: np.array([3, 40]), 1: np.array([40]), 2: np.array([3])}
    both = [
        np.concatenate([first + asked[n] for n, first in enumerate(starts(h.regions)[:3])])
        for h in (one, other)
    ]
    for indices_of_side in both:
        armed.companion.pools.ask(indices_of_side, lambda: asked)
    one.agent.make_prepped_xfer("READ", lists[0], both[0], lists[1], both[1])
    assert armed.checks == []
    with pytest.raises(Violation, match=r"'index key' slot 3 .* is not selected, its group"):
        one.agent.make_prepped_xfer("READ", lists[0], both[0].copy(), lists[1], both[1].copy())
