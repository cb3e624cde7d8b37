"""Source at post, source at completion, destination at commit: what they say of real transfers."""

import os
import time
from threading import Event, Thread

import numpy as np
import pytest

from kvlint.geometry import Geometry, Region
from kvlint.runtime_checks import Violation, declare, guard_pool, stage
from kvlint.runtime_checks.digests.rows import Rows
from kvlint.runtime_checks.nixl.initiator import Moment
from kvlint.runtime_checks.nixl.target import id_of
from tests.runtime_checks.hosts import fill, indices, regions, rows5, starts

COUNTS = [8, 8, 8]
SOURCE, DESTINATION = [1, 2, 3], [6, 5, 4]


@pytest.fixture
def pair(host):
    """Two hosts with equal regions, the first of which is full; made after arming."""

    def make():
        one, other = host("p", regions(COUNTS)), host("d", regions(COUNTS))
        fill(one.regions)
        one.meet(other)
        other.meet(one)
        return one, other

    return make


def post(pair, operation="WRITE", message=b"room", source=SOURCE, destination=DESTINATION):
    one, other = pair
    local = one.prepare(None, rows5(one.regions))
    remote = one.prepare(other, rows5(other.regions))
    handle = one.agent.make_prepped_xfer(
        operation,
        local,
        indices(starts(one.regions), source),
        remote,
        indices(starts(other.regions), destination),
        message,
    )
    one.agent.transfer(handle)
    return handle


def arrive(pair, handle, *, notified=True):
    """Until the initiator knows the end, and the target has read of it."""
    one, other = pair
    one.finish(handle)
    messages = {}
    while notified and not messages:
        messages = other.agent.get_new_notifs()
    return messages


def said(host, *layers):
    """The host's regions, declared as the keys of these layers."""
    return Geometry(
        tuple(
            Region(
                name=f"layer {layer} key",
                address=part.ctypes.data,
                length=part.nbytes,
                stride=part.shape[1],
                transfer_length=part.shape[1],
                memory_kind="DRAM",
                device=0,
                list="kv",
                layer=layer,
                role="key",
            )
            for layer, part in zip(layers, host.regions, strict=True)
        )
    )


def compared(armed):
    return armed.companion.digests.counts["transfers compared"]


@pytest.mark.parametrize("mode", ["assert", "paranoid"])
@pytest.mark.parametrize("operation", ["WRITE", "READ"])
def test_a_clean_transfer_is_compared_and_nothing_is_said(arm, pair, mode, operation):
    armed, both = arm(mode), pair()
    fill(both[1].regions, seed=1)
    for _ in range(3):
        arrive(both, post(both, operation))
    assert armed.violations == []
    assert compared(armed) == 3


def test_modes_that_read_no_bytes_compare_nothing(arm, pair):
    armed, both = arm("log"), pair()
    arrive(both, post(both))
    assert dict(armed.companion.digests.counts) == {}


def test_bytes_that_change_before_the_commit_are_told_at_their_page(arm, pair):
    armed, both = arm("assert"), pair()
    handle = post(both)
    both[0].finish(handle)
    both[1].regions[2][5, 7] ^= 1
    arrive(both, handle)
    (record,) = armed.violations
    assert record["check"] == "arrived-wrong"
    assert record["message"].startswith("page 1 of region 2 (at 7) holds other bytes")
    assert record["transfer"] in armed.names
    with pytest.raises(Violation, match="page 1 of region 2"):
        post(both)
    arrive(both, post(both))


def test_exchanged_pages_are_told_by_whose_they_are(arm, pair):
    armed, (one, other) = arm("paranoid"), pair()
    declare(said(other, 15, 16, 17), agent=other.name)
    handle = post((one, other))
    one.finish(handle)
    held = other.regions[2][4].copy()
    other.regions[2][4], other.regions[1][4] = other.regions[1][4], held
    arrive((one, other), handle)
    (record,) = armed.violations
    assert record["message"].partition("; transfer ")[0] == (
        "page 2 of region 1 'layer 16 key' (layer 16), slot 4 (at 5) holds what belongs to page 2 "
        "of region 2 'layer 17 key' (layer 17), slot 4; 2 of 9 pages of this transfer are so"
    )
    assert (record["region_name"], record["layer"], record["slot"]) == ("layer 16 key", 16, 4)


def test_a_page_of_another_layer_is_told_though_its_bytes_are_as_sent(arm, pair):
    armed, (one, other) = arm("assert"), pair()

    declare(said(one, 0, 1, 2), agent=one.name)
    declare(said(other, 0, 1, 2), agent=other.name)
    prepared = post((one, other))
    # What the target says of its memory later is what it means by then.
    declare(said(other, 0, 2, 1), agent=other.name)
    arrive((one, other), prepared)
    (record,) = armed.violations
    assert (
        "is a page of another layer, role, dtype or length to the other side" in record["message"]
    )
    assert record["layer"] == 2


def test_a_source_that_changed_is_no_fault_of_the_transport(arm, pair):
    armed, both = arm("paranoid"), pair()
    one, other = both
    handle = post(both, "READ")
    while one.agent.check_xfer_state(handle) != "DONE":
        pass
    # The target is the source: it digests as soon as it hears of the transfer, and at its end.
    other.regions[0][6, 0] ^= 1
    arrive(both, handle)
    assert armed.checks == ["source-changed"]


def read(host, notifications):
    """Reads so many notifications, however long they take to come."""
    while notifications > 0:
        notifications -= sum(map(len, host.agent.get_new_notifs().values()))


def test_a_handle_posted_again_before_its_notification_was_read_is_no_fault(arm, pair):
    armed, (one, other) = arm("assert"), pair()
    handle = post((one, other))
    one.finish(handle)
    fill(one.regions, seed=1)
    one.agent.transfer(handle)
    one.finish(handle)
    read(other, 2)
    arrive((one, other), post((one, other)))
    assert (compared(armed), armed.violations) == (1, [])


def grown(both):
    """A request's last page grows, and is sent again before anybody has read of the first time."""
    one, _ = both
    one.finish(post(both, message=b"chunk 0", source=[1, 2, 3], destination=[1, 2, 3]))
    one.regions[0][3] += 1
    one.finish(post(both, message=b"chunk 1", source=[3, 4], destination=[3, 4]))


def test_a_page_that_was_sent_again_before_the_first_was_read_of_is_no_fault(arm, pair):
    armed, both = arm("assert"), pair()
    grown(both)
    read(both[1], 2)
    assert (compared(armed), armed.violations) == (2, [])


def test_what_else_arrived_with_such_a_page_is_still_compared(arm, pair):
    armed, both = arm("sample"), pair()
    armed.companion.digests.suspect()
    grown(both)
    both[1].regions[1][2, 5] ^= 1
    read(both[1], 2)
    (record,) = armed.violations
    assert record["message"].startswith("page 1 of region 1 (at 4) holds other bytes")


def test_of_transfers_with_one_notification_at_a_time_none_is_compared(arm, pair):
    armed, both = arm("assert"), pair()
    handles = [post(both, source=[page], destination=[page]) for page in (1, 2)]
    for handle in handles:
        both[0].finish(handle)
    read(both[1], 2)
    assert (compared(armed), armed.violations) == (0, [])


def test_after_a_post_that_failed_no_notification_is_taken_for_anothers(arm, pair):
    """The initiator has counted one more of this notification than ever arrives."""
    armed, (one, other) = arm("assert"), pair()
    kept = one.agent.agent

    class Fails:
        postXferReq = None  # noqa: N815 (NIXL's name)

        def __getattr__(self, name):
            return getattr(kept, name)

    one.agent.agent = Fails()
    with pytest.raises(TypeError):
        post((one, other))
    one.agent.agent = kept
    for number in range(4):
        fill(one.regions, seed=number)
        arrive((one, other), post((one, other), destination=[number, number + 1, number + 2]))
    assert armed.violations == []
    arrive((one, other), post((one, other), message=b"another"))
    assert compared(armed) == 1


def told_from_afar(armed, other, name, slots, digest):
    """As another process tells that it has written these slots of region 0, and of what digest."""
    (hooks,) = armed.companion.hooks.values()
    target = hooks.watch._target_of(hooks.watch.agent(other.agent))
    base = other.regions[0].ctypes.data
    addresses = np.array([base + 64 * slot for slot in slots], np.uint64)
    rows = Rows(addresses, np.full(len(slots), 64), np.zeros(len(slots), np.uint64))
    target.announced(id_of(name), None, "far", "WRITE", rows)
    target.digested(id_of(name), Moment.POST, np.full(len(slots), digest, np.uint64))
    return target


def test_what_another_process_announces_late_excuses_what_was_found(arm, pair):
    armed, (_, other) = arm("assert"), pair()
    target = told_from_afar(armed, other, "far>d:0#1", [1, 2], 7)
    target.notified("far>d:0#1")
    told_from_afar(armed, other, "far>d:1#1", [2, 1, 5], 8)
    target.settle(wait=False)
    assert (compared(armed), armed.violations) == (1, [])


def test_what_nothing_excuses_is_told_once_all_was_taken(arm, pair):
    armed, (_, other) = arm("assert"), pair()
    target = told_from_afar(armed, other, "far>d:0#1", [1, 2], 7)
    told_from_afar(armed, other, "far>d:1#1", [2], 8)
    target.notified("far>d:0#1")
    assert armed.violations == []
    target.settle(wait=False)
    (record,) = armed.violations
    assert record["message"].startswith("page 0 of region 0 (at 0) holds other bytes")


def test_what_was_read_of_is_over_though_its_initiator_has_not_seen_it(
    arm, pair, torch, monkeypatch
):
    """Initiator and target are threads of one process, and the first is not on its turn."""
    armed, both = arm("assert"), pair()
    one, other = both
    kept = guarded(torch, one), guarded(torch, other)
    stage("store", owner="A", pool=one.name, slots=SOURCE)
    monkeypatch.setattr(armed.flights, "posted", lambda transfer, status: None)
    monkeypatch.setattr(armed.flights, "polled", lambda handle, status: None)
    handles = []
    thread = Thread(target=lambda: handles.append(post(both)))
    thread.start()
    thread.join()
    arrive(both, handles[0])
    stage("read", owner="A", pool=other.name, slots=DESTINATION)
    stage("store", owner="B", pool=other.name, slots=DESTINATION)
    other.deregister(0)
    assert armed.violations == []
    del kept


def test_a_forked_child_has_none_of_what_its_parent_waits_for(arm, pair):
    """Other threads may be in the middle of it, and what was found is the parent's to raise."""
    armed, (one, other) = arm("assert"), pair()
    handle = post((one, other))
    (hooks,) = armed.companion.hooks.values()
    watch, digests = hooks.watch, armed.companion.digests
    held, over = Event(), Event()

    def hold():
        with watch._target_of(watch.agent(other.agent))._lock, digests.late._lock:
            held.set()
            over.wait()

    thread = Thread(target=hold)
    thread.start()
    held.wait()
    digests.keep(Violation("the parent's", {}))
    child = os.fork()
    if child == 0:
        begun = time.monotonic()
        raised = watch.late()
        watch.notified(other.agent, {one.name: [b"room"]})
        waited = time.monotonic() - begun > 4
        os._exit(1 if raised or waited or armed.faults else 0)
    _, status = os.waitpid(child, 0)
    over.set()
    thread.join()
    with pytest.raises(Violation, match="the parent's"):
        one.finish(handle)
    arrive((one, other), handle)
    assert (os.waitstatus_to_exitcode(status), compared(armed)) == (0, 1)


def test_without_a_notification_the_end_is_not_known_and_nothing_is_compared(arm, pair):
    armed, both = arm("assert"), pair()
    arrive(both, post(both, message=b""), notified=False)
    assert (compared(armed), armed.violations) == (0, [])


def test_a_sample_is_one_in_sixteen_and_all_after_something_suspicious(arm, pair):
    armed, both = arm("sample"), pair()
    digests = armed.companion.digests
    rooms = [f"room {number}".encode() for number in range(200)]
    chosen = [room for room in rooms if digests.wants(room)]
    assert 2 <= len(chosen) <= 30
    for room in rooms[:24]:
        arrive(both, post(both, message=room))
    assert compared(armed) == len({*chosen} & {*rooms[:24]})
    before = compared(armed)
    digests.suspect()
    for number in range(8):
        arrive(both, post(both, message=f"another {number}".encode()))
    assert compared(armed) == before + 8
    assert armed.violations == []


def test_samples_are_told_and_not_raised(arm, pair):
    armed, both = arm("sample"), pair()
    armed.companion.digests.suspect()
    handle = post(both)
    both[0].finish(handle)
    both[1].regions[0][6, 0] ^= 1
    arrive(both, handle)
    arrive(both, post(both))
    assert armed.checks == ["arrived-wrong"]


def test_a_violation_makes_everything_be_looked_at(arm, pair):
    armed, both = arm("sample"), pair()
    digests = armed.companion.digests
    assert not all(digests.wants(str(number).encode()) for number in range(64))
    one, other = both
    local = one.prepare(None, rows5(one.regions))
    remote = one.prepare(other, rows5(other.regions))
    one.agent.make_prepped_xfer(
        "WRITE", local, np.array([1, 2], "i4"), remote, np.array([1, 1], "i4"), b""
    )
    assert armed.violations
    assert all(digests.wants(str(number).encode()) for number in range(64))


def test_what_an_unregistered_row_announces_is_not_touched(arm, pair):
    armed, (_, other) = arm("assert"), pair()
    (hooks,) = armed.companion.hooks.values()
    watch = hooks.watch
    target = watch._target_of(watch.agent(other.agent))
    base = other.regions[0].ctypes.data
    for number, (address, length) in enumerate(
        [
            (4096, 64),
            (base - 64, 128),
            (base, 1 << 40),
            (base, -64),
            (2**64 - 64, 64),
            (2**64 - 64, 128),
            (base + 8 * 64 - 1, 64),
            (base, 0),
        ]
    ):
        rows = Rows(
            np.array([base, address], np.uint64), np.array([64, length]), np.zeros(2, np.uint64)
        )
        target.announced(number.to_bytes(16), None, "stranger", "READ", rows)
    counts = armed.companion.digests.counts
    assert counts["announcements refused: memory that is not registered"] == 8
    assert counts["pages digested"] == 0


def guarded(torch, host):
    tensors = {f"layer {n}": torch.from_numpy(part) for n, part in enumerate(host.regions)}
    guard_pool(tensors, name=host.name)
    return tensors


def test_transfers_are_stages_of_the_pages_that_they_move(arm, pair, torch):
    armed, both = arm("sample"), pair()
    armed.companion.digests.suspect()
    one, other = both
    kept = guarded(torch, one), guarded(torch, other)
    stage("store", owner="A", pool=one.name, slots=SOURCE)
    arrive(both, post(both))
    other.regions[1][5, 3] ^= 1
    stage("read", owner="A", pool=other.name, slots=DESTINATION)
    (record,) = armed.violations
    assert record["check"] == "page-changed"
    assert record["message"].startswith(
        "layer 1 slot 5 (page 1 of request A) changed between arrival and read: "
    )
    del kept


def test_what_arrived_wrong_is_told_once_and_not_as_read_early(arm, pair, torch):
    armed, both = arm("sample"), pair()
    armed.companion.digests.suspect()
    one, other = both
    kept = guarded(torch, one), guarded(torch, other)
    stage("store", owner="A", pool=one.name, slots=SOURCE)
    handle = post(both)
    one.finish(handle)
    other.regions[1][5, 3] ^= 1
    arrive(both, handle)
    stage("read", owner="A", pool=other.name, slots=DESTINATION)
    assert armed.checks == ["arrived-wrong"]
    del kept


def test_what_changed_before_the_post_is_told_as_that(arm, pair, torch):
    armed, both = arm("sample"), pair()
    armed.companion.digests.suspect()
    kept = guarded(torch, both[0])
    stage("store", owner="A", pool=both[0].name, slots=SOURCE)
    both[0].regions[2][3, 3] ^= 1
    arrive(both, post(both))
    (record,) = armed.violations
    assert record["message"].startswith(
        "layer 2 slot 3 (page 2 of request A) changed between store and send: "
    )
    del kept


def test_what_is_sent_is_of_whom_the_pages_were_at_the_post(arm, pair, torch):
    """Another request stores into them before the initiator has seen the end."""
    armed, both = arm("sample"), pair()
    armed.companion.digests.suspect()
    one, other = both
    kept = guarded(torch, one), guarded(torch, other)
    stage("store", owner="A", pool=one.name, slots=SOURCE)
    handle = post(both)
    fill(one.regions, seed=1)
    stage("store", owner="D", pool=one.name, slots=SOURCE)
    arrive(both, handle)
    stage("send", owner="D", pool=one.name, slots=SOURCE)
    assert {record["check"] for record in armed.violations} <= {"page-reused", "arrived-wrong"}
    del kept


def test_memory_that_was_given_back_is_not_read(arm, pair):
    armed, (one, other) = arm("sample"), pair()
    armed.companion.digests.suspect()
    local = one.prepare(None, rows5(one.regions))
    remote = one.prepare(other, rows5(other.regions))
    index = indices(starts(one.regions), SOURCE)
    handle = one.agent.make_prepped_xfer("WRITE", local, index, remote, index, b"room")
    one.deregister(1)
    before = armed.companion.digests.counts["pages digested"]
    one.agent.transfer(handle)
    one.finish(handle)
    assert "stale-list" in armed.checks
    assert armed.companion.digests.counts["pages digested"] == before


def test_that_nobody_compares_is_said_once(arm, host, capfd):
    armed = arm("assert")
    one, other = host("p", regions(COUNTS)), host("d", regions(COUNTS))
    one.meet(other, strangers=True)
    for number in range(3):
        one.finish(post((one, other), message=b"room %d" % number))
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "not compared" in line]
    assert line.endswith("not armed with the same KVLINT_DIGEST_KEY")
    assert [n for why, n in armed.companion.digests.counts.items() if "not compared" in why] == [3]
