"""Channels of agents of one process, on real NIXL: what an engine sees of them is nothing."""

import gc
import os
import threading
import weakref

import pytest

from kvlint.runtime_checks.exchange import channel as channels
from kvlint.runtime_checks.exchange.channel import Channel
from kvlint.runtime_checks.exchange.messages import Stage
from kvlint.runtime_checks.exchange.records import MOST_PARTS, ROOM
from tests.runtime_checks.exchange.letters import rows, tags, told_rows
from tests.runtime_checks.hosts import Host, fill, indices, regions, rows3, starts

KEY = b"of this run"
TRANSFER = bytes(range(16))


@pytest.fixture(scope="module")
def bindings(nixl):
    return nixl.nixlBind


@pytest.fixture(scope="module")
def hosts(nixl):
    """An armed pair, and peers that are plain or of another run. They are made once, an agent
    takes half a second; each test has channels of its own."""
    made = {}
    for name in ("here", "there", "plain"):
        made[name] = Host(name, regions([8, 8]), thread=False)
        made[name].register()
    return made


@pytest.fixture
def pair(hosts, bindings):
    """Channels of both, which know each other."""
    both = [Channel(hosts[name].agent, bindings, KEY) for name in ("here", "there")]
    assert [channel.open() for channel in both] == [None, None]
    both[0]._mailbox.counts.clear()
    hosts["here"].meet(hosts["there"], hosts["plain"])
    yield both
    for channel in both:
        channel.close()
    for name in ("there", "plain"):
        hosts["here"].agent.remove_remote_agent(hosts[name].name)


@pytest.fixture
def deliver(hosts, pair):
    """All messages that come, with the peers' progress."""

    def deliver(count):
        found = []
        for _ in range(10_000):
            found += pair[1].receive()
            pair[0].receive()
            hosts["there"].agent.agent.getNotifs({}, [])
            if len(found) >= count:
                break
        return found

    return deliver


@pytest.mark.parametrize("count", [0, 1, 490, 7808])
def test_what_is_told_arrives(pair, deliver, count):
    there = pair[1].name
    assert pair[0].announce(there, TRANSFER, "READ", rows(count))
    assert pair[0].digested(there, TRANSFER, Stage.COMPLETION, tags(count))
    first, second = deliver(2)
    assert (first.sender.name, first.receiver, first.transfer) == (pair[0].name, there, TRANSFER)
    assert (first.operation, told_rows(first.rows)) == ("READ", told_rows(rows(count)))
    assert (second.receiver, second.transfer, second.stage) == (there, TRANSFER, Stage.COMPLETION)
    assert second.tags.tolist() == tags(count).tolist()


def test_round_the_ring_and_on_no_record_is_lost(pair, deliver):
    for number in range(220):
        assert pair[0].announce(pair[1].name, number.to_bytes(16), "WRITE", rows(7808))
        (message,) = deliver(1)
        assert message.transfer == number.to_bytes(16)
        assert told_rows(message.rows) == told_rows(rows(7808))
    counts = pair[1].counts
    assert {name: count for name, count in counts.items() if count} == {
        "sent": 220,
        "received": 220,
    }


def test_a_plain_peer_is_sent_nothing(hosts, pair):
    here, plain = pair[0], hosts["plain"].name
    assert (here.armed(pair[1].name), here.armed(plain)) == (True, False)
    assert not here.announce(plain, TRANSFER, "WRITE", rows(3))
    assert not here.digested(plain, TRANSFER, Stage.POST, tags(3))
    assert here.counts == {"plain": 2}
    assert not here.armed("nobody")
    assert not here.armed(here.name)


def test_a_peer_of_another_run_is_plain(hosts, pair, bindings):
    other = Host("other", regions([1]), thread=False)
    another = Channel(other.agent, bindings, b"of another run")
    assert another.open() is None
    hosts["here"].meet(other)
    assert not pair[0].armed(other.name)
    other.meet(hosts["there"])
    assert not another.armed(pair[1].name)
    hosts["here"].agent.remove_remote_agent(other.name)


def test_the_engine_sees_no_notification_and_its_own_transfers_as_ever(hosts, pair, deliver):
    here, there = hosts["here"], hosts["there"]
    fill(here.regions)
    lists = here.prepare(None, rows3(here.regions)), here.prepare(there, rows3(there.regions))
    pages = indices(starts(here.regions), range(8))
    pair[0].announce(there.name, TRANSFER, "WRITE", rows(16))
    handle = here.agent.make_prepped_xfer("WRITE", lists[0], pages, lists[1], pages, b"done")
    here.agent.transfer(handle)
    pair[0].digested(there.name, TRANSFER, Stage.POST, tags(16))
    seen = []
    while here.agent.check_xfer_state(handle) != "DONE" or not seen:
        seen += [one for one in (there.agent.get_new_notifs(), here.agent.get_new_notifs()) if one]
    handle.release()
    assert seen == [{here.name: [b"done"]}]
    assert len(deliver(2)) == 2
    assert [host.agent.get_new_notifs() for host in (there, here)] == [{}, {}]
    assert all((a == b).all() for a, b in zip(here.regions, there.regions, strict=True))


def test_the_companion_sees_none_of_it(arm, bindings, pair, deliver, hosts):
    armed = arm("assert")
    host = Host("watched", regions([4]), thread=False)
    host.register()
    channel = Channel(host.agent, bindings, KEY)
    assert channel.open() is None
    host.meet(hosts["there"])
    assert channel.announce(pair[1].name, TRANSFER, "WRITE", rows(500))
    (message,) = deliver(1)
    assert message.sender.name == host.name
    (hooks,) = armed.companion.hooks.values()
    region = host.regions[0]
    assert hooks.watch.registered_by(host.name) == [("DRAM", region.ctypes.data, region.nbytes, 0)]
    assert armed.policy.transfers.total() == 0
    assert [entry.to_dict()["kind"] for entry in armed.policy.recorder.entries()] == []
    assert armed.violations == []
    host.agent.remove_remote_agent(pair[1].name)


def test_metadata_have_one_more_registration(nixl, bindings):
    host = Host("grows", regions([1, 1]), thread=False)
    lengths = []
    for region in host.regions:
        host.register_bytes(region.ctypes.data, region.nbytes)
        lengths.append(len(host.agent.get_agent_metadata()))
    channel = Channel(host.agent, bindings, KEY)
    channel.open()
    lengths.append(len(host.agent.get_agent_metadata()))
    assert lengths[2] - lengths[1] == lengths[1] - lengths[0]
    channel.close()


def test_a_peer_that_gives_out_a_part_of_its_metadata_is_plain(hosts, pair, bindings):
    part = Host("part", regions([1]), thread=False)
    part.register()
    channel = Channel(part.agent, bindings, KEY)
    channel.open()
    given = part.agent.get_partial_agent_metadata(part.registered[0], inc_conn_info=True)
    hosts["here"].agent.add_remote_agent(given)
    assert not pair[0].armed(part.name)
    hosts["here"].agent.add_remote_agent(part.agent.get_agent_metadata())
    assert pair[0].armed(part.name)
    hosts["here"].agent.remove_remote_agent(part.name)
    channel.close()


def test_an_agent_gets_its_mailbox_with_its_first_back_end_that_writes_to_peers(nixl, bindings):
    agent = nixl.nixl_agent("late", nixl.nixl_agent_config(backends=[]))
    channel = Channel(agent, bindings, KEY)
    for backend in (None, "POSIX"):
        if backend is not None:
            agent.create_backend(backend)
        assert channel.open() == "late: no back end that writes to peers is there yet"
        assert not channel.armed("anybody")
        assert channel.receive() == []
    agent.create_backend("UCX")
    assert channel.open() is None
    channel.close()


def test_where_the_address_is_taken_a_line_says_so(hosts, bindings, monkeypatch):
    taken = Channel(hosts["here"].agent, bindings, KEY)
    taken.open()
    monkeypatch.setattr("kvlint.runtime_checks.exchange.mailbox._MAILBOXES", {})
    channel = Channel(hosts["there"].agent, bindings, KEY)
    line = channel.open()
    assert line.startswith(f"{hosts['there'].name}: memory at 0x4")
    assert line.endswith(" is taken")
    assert not channel.announce(hosts["here"].name, TRANSFER, "WRITE", rows(1))
    taken.close()


def test_a_message_that_is_too_large_is_dropped_and_counted(pair, deliver):
    most = MOST_PARTS * ROOM // 8
    assert not pair[0].digested(pair[1].name, TRANSFER, Stage.POST, tags(most + 1))
    assert pair[0].counts == {"dropped.too-large": 1}
    assert pair[0].digested(pair[1].name, TRANSFER, Stage.POST, tags(most))
    (message,) = deliver(1)
    assert message.tags.tolist() == tags(most).tolist()


def test_a_closed_channel_is_still_and_its_peers_may_write_on(hosts, pair, bindings, deliver):
    here, there = pair
    there.close()
    assert there.receive() == []
    assert here.armed(there.name)
    assert here.announce(there.name, TRANSFER, "WRITE", rows(500))
    assert [here.receive() for _ in range(20)] == [[]] * 20
    assert not there.announce(here.name, TRANSFER, "WRITE", rows(3))
    again = Channel(hosts["there"].agent, bindings, KEY)
    assert again.open() is None
    here.digested(there.name, TRANSFER, Stage.POST, tags(9))
    found = []
    while not found:
        found = again.receive()
    assert [message.tags.tolist() for message in found] == [tags(9).tolist()]
    again.close()


def test_a_peer_whose_metadata_are_gone_is_plain(hosts, pair):
    here, there = hosts["here"], hosts["there"]
    here.agent.remove_remote_agent(there.name)
    assert not pair[0].announce(there.name, TRANSFER, "WRITE", rows(3))
    here.meet(there)
    pair[0].forget(there.name)
    assert pair[0].announce(there.name, TRANSFER, "WRITE", rows(3))


def test_an_agent_lives_no_longer_for_its_channel(nixl, bindings):
    agent = nixl.nixl_agent("brief", nixl.nixl_agent_config(enable_prog_thread=False))
    channel = Channel(agent, bindings, KEY)
    assert channel.open() is None
    raw = weakref.ref(agent.agent)
    del agent
    gc.collect()
    assert raw() is None
    assert not channel.announce("anybody", TRANSFER, "WRITE", rows(3))
    assert channel.receive() == []
    assert channel.open() == "brief: the agent is gone"


def test_networks_are_names_of_back_ends_of_nixl(nixl):
    agent = nixl.nixl_agent("names", nixl.nixl_agent_config(backends=[]))
    assert set(channels.NETWORKS) <= set(agent.get_plugin_list())


def test_a_peer_that_was_forgotten_is_told_under_another_number(pair, deliver):
    here, there = pair
    numbers = []
    for _ in range(2):
        here.digested(there.name, TRANSFER, Stage.POST, tags(9))
        (message,) = deliver(1)
        numbers.append(message.sender.number)
        here.forget(there.name)
    assert numbers[0] != numbers[1]
    assert there.counts.get("lost", 0) == 0


def test_threads_of_an_engine_may_send_and_receive_at_the_same_time(nixl, bindings):
    strict = nixl.nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT
    how = nixl.nixl_agent_config(enable_prog_thread=False, sync_mode=strict)
    agents = [nixl.nixl_agent(name, how) for name in ("many", "few")]
    here, there = (Channel(agent, bindings, KEY) for agent in agents)
    assert [here.open(), there.open()] == [None, None]
    here._mailbox.counts.clear()
    agents[0].add_remote_agent(agents[1].get_agent_metadata())
    told, sending = [], threading.Event()

    def send(thread):
        for number in range(50):
            transfer = bytes([thread, number]) + bytes(14)
            assert here.digested("few", transfer, Stage.POST, tags(600, number))

    def receive():
        while not sending.is_set() or len(told) < 200:
            told.extend(there.receive())

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    readers = [threading.Thread(target=receive) for _ in range(2)]
    for thread in threads + readers:
        thread.start()
    for thread in threads:
        thread.join()
    sending.set()
    for thread in readers:
        thread.join()
    found = sorted((one.transfer[0], one.transfer[1], one.tags.tolist()) for one in told)
    wanted = [(t, n, tags(600, n).tolist()) for t in range(4) for n in range(50)]
    assert found == wanted
    assert there.counts["sent"] == there.counts["received"] == 200
    here.close()
    there.close()


def test_a_forked_child_sends_nothing_and_reads_nothing(pair, deliver):
    here, there = pair
    here.digested(there.name, TRANSFER, Stage.POST, tags(9))
    child = os.fork()
    if not child:
        status = 1
        try:
            silent = not here.announce(there.name, TRANSFER, "WRITE", rows(3))
            silent = silent and there.receive() == [] and not here.armed(there.name)
            here.close()
            again = there.open()
            status = 0 if silent and (again is None or "gone" in again) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    (message,) = deliver(1)
    assert message.tags.tolist() == tags(9).tolist()
    assert here.counts["sent"] == 1


def test_among_several_back_ends_and_with_telemetry(nixl, bindings, hosts, pair, deliver):
    how = nixl.nixl_agent_config(
        backends=["POSIX", "UCX"], enable_prog_thread=False, capture_telemetry=True
    )
    host = Host.__new__(Host)
    host.name, host.regions, host.registered = "several", regions([4]), []
    host.agent = nixl.nixl_agent("several", how)
    channel = Channel(host.agent, bindings, KEY)
    assert channel.open() is None
    host.register()
    there = hosts["there"]
    host.meet(there)
    assert channel.announce(there.name, TRANSFER, "WRITE", rows(500))
    lists = host.prepare(None, rows3(host.regions)), host.prepare(there, rows3(there.regions))
    handle = host.agent.make_prepped_xfer("WRITE", lists[0], [0, 1], lists[1], [2, 3])
    host.agent.transfer(handle)
    host.finish(handle, there)
    assert host.agent.get_xfer_telemetry(handle).totalBytes == 2 * 64
    (message,) = deliver(1)
    assert (message.sender.name, told_rows(message.rows)) == ("several", told_rows(rows(500)))
    handle.release()
    channel.close()
    host.agent.remove_remote_agent(there.name)
