"""What was said of memory that has been given back says nothing of what lies there now."""

import gc

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint import runtime_checks
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.hosts import rows3


@pytest.fixture
def memory(nixl, torch):
    """A host with 64 slots of 64 bytes, and a peer, both there before anything is armed; makes
    tensors that have the host's memory as their own, one after another, as an allocator would."""
    from tests.runtime_checks.hosts import Host

    one, other = (Host(name, [np.zeros((64, 64), np.uint8)]) for name in ("here", "there"))
    for host in (one, other):
        host.register()
    one.meet(other)
    return one, other, lambda slots: torch.from_numpy(one.regions[0][:slots])


def use(one, other):
    local = one.prepare(None, rows3(one.regions, [64]))
    remote = one.prepare(other, rows3(other.regions, [64]))
    one.agent.make_prepped_xfer("WRITE", local, [40], remote, [40])


@pytest.mark.parametrize("whose", ["the process", "the agent"])
def test_a_longer_pool_may_be_where_a_shorter_one_was(arm, memory, whose):
    armed = arm("assert")
    one, other, tensor = memory
    pool = [tensor(16)]
    agent = one.name if whose == "the agent" else None
    runtime_checks.guard_pool(pool, name="short", agent=agent)
    with pytest.raises(Violation, match="ends after 16: local region"):
        use(one, other)
    del pool
    gc.collect()
    use(one, other)
    assert len(armed.violations) == 1


def test_what_was_wrong_with_a_pool_is_not_held_against_the_next(arm, memory):
    armed = arm("assert")
    one, other, tensor = memory
    pool = [tensor(16)]
    runtime_checks.guard_pool(pool, said=[(pool[0].data_ptr(), 17 * 64, 64)])
    with pytest.raises(Violation, match="has 1088 bytes, its tensor ends after 1024"):
        use(one, other)
    del pool
    gc.collect()
    use(one, other)
    assert armed.checks == ["pool-length"]


def test_a_pointer_into_no_tensor_is_not_held_against_memory_around_it(arm, memory, torch):
    armed = arm("assert")
    one, other, _ = memory
    base = one.regions[0].ctypes.data
    elsewhere = torch.zeros((4, 64), dtype=torch.uint8)
    runtime_checks.guard_pool([elsewhere], said=[(base + 64, 4 * 64, 64)])
    use(one, other)
    assert armed.checks == ["pool-memory"]
    wrong = one.prepare(None, np.array([[base + 64, 64, 0], [base + 128, 64, 0]], np.uint64))
    remote = one.prepare(other, rows3(other.regions, [64]))
    with pytest.raises(Violation, match="begins in no tensor"):
        one.agent.make_prepped_xfer("WRITE", wrong, [0], remote, [0])
