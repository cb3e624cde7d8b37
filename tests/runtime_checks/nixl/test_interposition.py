"""Around NIXL's methods nothing changes but what is found: arguments, results, errors, identity."""

import inspect
import time

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint import runtime_checks
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.hosts import fill, indices, regions, rows3, rows5, starts


@pytest.fixture
def make_pair(host):
    """Two hosts that know each other, with three regions each."""

    def make():
        one, other = host("here", regions([6, 6, 4])), host("there", regions([6, 6, 4]))
        fill(one.regions)
        one.meet(other)
        other.meet(one)
        return one, other

    return make


@pytest.fixture
def pair(make_pair):
    return make_pair()


def lists(pair, rows=rows5):
    one, other = pair
    return one.prepare(None, rows(one.regions)), one.prepare(other, rows(other.regions))


CHOSEN = [2, 0]


def chosen(pair):
    return indices(starts(pair[0].regions), CHOSEN)


def arrived(pair):
    return all(
        (got[CHOSEN] == sent[CHOSEN]).all()
        for sent, got in zip(pair[0].regions, pair[1].regions, strict=True)
    )


def send(pair, rows=rows5):
    one = pair[0]
    local, remote = lists(pair, rows)
    handle = one.agent.make_prepped_xfer("WRITE", local, chosen(pair), remote, chosen(pair), b"m")
    one.agent.transfer(handle)
    one.finish(handle)
    handle.release()


def test_every_hooked_method_keeps_its_signature_and_name(nixl, arm):
    classes = ("nixl_agent", "nixl_xfer_handle", "nixl_prepped_dlist_handle")
    before = {
        (name, method): (inspect.signature(value), value.__name__, value.__doc__)
        for name in classes
        for method, value in vars(getattr(nixl, name)).items()
        if inspect.isfunction(value)
    }
    arm()
    names = [name.split(".") for name in runtime_checks.status()["hooks"]]
    hooked = [tuple(name) for name in names if name[0] in classes]
    assert len(hooked) > 20
    for name, method in hooked:
        now = vars(getattr(nixl, name))[method]
        assert (inspect.signature(now), now.__name__, now.__doc__) == before[name, method]


def test_every_argument_may_be_given_by_name(nixl, arm, pair):
    armed, (one, other) = arm("assert"), pair
    agent = one.agent
    extra = np.zeros(64, np.uint8)
    piece = agent.get_reg_descs(descs=[(extra.ctypes.data, 64, 0, "")], mem_type="DRAM")
    agent.register_memory(reg_list=piece, mem_type="DRAM", backends=[])
    agent.remove_remote_agent(agent=other.name)
    agent.add_remote_agent(metadata=other.agent.get_agent_metadata())
    agent.get_partial_agent_metadata(descs=piece, inc_conn_info=True, backends=[])
    rows = rows3(other.regions)
    local = agent.prep_xfer_dlist(agent_name="", xfer_list=rows3(one.regions), mem_type="DRAM")
    remote = agent.prep_xfer_dlist(
        agent_name=other.name,
        xfer_list=agent.get_xfer_descs(descs=rows, mem_type="DRAM"),
        backends=["UCX"],
    )
    handle = agent.make_prepped_xfer(
        operation="WRITE",
        local_xfer_side=local,
        local_indices=chosen(pair),
        remote_xfer_side=remote,
        remote_indices=chosen(pair),
        notif_msg=b"m",
        backends=[],
        skip_desc_merge=True,
    )
    agent.estimate_xfer_cost(req_handle=handle)
    agent.query_xfer_backend(handle=handle)
    agent.transfer(handle=handle, notif_msg=b"other")
    while agent.check_xfer_state(handle=handle) != "DONE":
        pass
    assert arrived(pair)
    agent.release_xfer_handle(handle=handle)
    whole = agent.initialize_xfer(
        operation="READ",
        local_descs=agent.get_xfer_descs(rows3(one.regions), "DRAM"),
        remote_descs=agent.get_xfer_descs(rows, "DRAM"),
        remote_agent=other.name,
        notif_msg=b"",
        backends=[],
    )
    agent.transfer(handle=whole)
    agent.deregister_memory(dereg_list=piece, backends=[])
    other.agent.get_new_notifs(backends=[])
    other.agent.update_notifs(backends=[])
    other.agent.check_remote_xfer_done(
        remote_agent_name=one.name, lookup_tag=b"o", backends=[], tag_is_prefix=True
    )
    assert armed.checks == []


def test_a_subclass_and_an_alias_taken_before_are_checked_too(nixl, arm, pair):
    from nixl._api import nixl_agent as alias

    class Engine(alias):
        def make_prepped_xfer(self, *args, **kwargs):
            return super().make_prepped_xfer(*args, **kwargs)

        def get_xfer_descs(self, descs, mem_type=None):
            return super().get_xfer_descs(np.array(descs.tolist(), np.uint64), mem_type)

    armed = arm("assert")
    engine = Engine("engine", nixl.nixl_agent_config(backends=["UCX"]))
    one, other = pair
    for part in one.regions:
        engine.register_memory([(part.ctypes.data, part.nbytes, 0, "")], "DRAM")
    engine.add_remote_agent(other.agent.get_agent_metadata())
    local = engine.prep_xfer_dlist("", rows3(one.regions), "DRAM")
    remote = engine.prep_xfer_dlist(other.name, rows3(other.regions), "DRAM")
    handle = engine.make_prepped_xfer("WRITE", local, chosen(pair), remote, chosen(pair))
    engine.transfer(handle)
    with pytest.raises(Violation):
        engine.make_prepped_xfer("WRITE", local, [0, 7, 12], remote, [0, 6, 12])
    assert armed.checks == ["column"]


def test_undone_under_another_wrapper_the_methods_are_nixls_own_again(nixl, arm, request):
    own = vars(nixl.nixl_agent)["transfer"]
    armed = arm("assert")
    pair = request.getfixturevalue("pair")
    hooked, calls = vars(nixl.nixl_agent)["transfer"], []

    def wrapper(self, *args, **kwargs):
        calls.append(args)
        return hooked(self, *args, **kwargs)

    nixl.nixl_agent.transfer = wrapper
    try:
        local, remote = lists(pair)
        bad = [0, 7, 12], [0, 6, 12]
        with pytest.raises(Violation):
            pair[0].agent.make_prepped_xfer("WRITE", local, bad[0], remote, bad[1])
        runtime_checks.disarm()
        handle = pair[0].agent.make_prepped_xfer("WRITE", local, bad[0], remote, bad[1])
        pair[0].agent.transfer(handle)
        assert len(calls) == 1
        assert vars(nixl.nixl_agent)["transfer"] is wrapper
        again = arm("assert")
        send(pair)
        assert len(calls) == 2
        assert (armed.checks, again.checks) == (["column"], [])
        runtime_checks.disarm()
        assert vars(nixl.nixl_agent)["transfer"] is wrapper
    finally:
        nixl.nixl_agent.transfer = own


@pytest.mark.parametrize("mode", ["log", "assert", "paranoid"])
def test_what_was_made_before_is_used_in_silence(arm, pair, mode):
    local, remote = lists(pair)
    handle = pair[0].agent.make_prepped_xfer("WRITE", local, chosen(pair), remote, chosen(pair))
    armed = arm(mode)
    pair[0].agent.transfer(handle)
    pair[0].finish(handle)
    handle.release()
    again = pair[0].agent.make_prepped_xfer("READ", local, [0, 6, 13], remote, [1, 8, 12])
    pair[0].agent.transfer(again)
    pair[0].finish(again)
    # Registrations from before are not known, so what lies in none of those since is not, either.
    pair[0].deregister(0)
    pair[0].register_bytes(pair[0].regions[0].ctypes.data, pair[0].regions[0].nbytes)
    send(pair)
    assert armed.checks == []


REFUSED = {
    "out of region": (
        lambda a, b: a.prepare(b, rows5(b.regions, [6, 8, 4])),
        "nixlNotFoundError",
        "remote region 1 is given 8 slots, registration 1 (384 bytes) ends after 6",
    ),
    "unregistered": (
        lambda a, b: a.prepare(None, np.array([[1 << 40, 64, 0]], np.uint64)),
        "nixlNotFoundError",
        "local region 0 lies in no registered memory: it begins",
    ),
    "wrong device": (
        lambda a, b: a.prepare(None, rows5(a.regions) + np.array([0, 0, 1, 0, 0], np.uint64)),
        "nixlNotFoundError",
        "on device 1",
    ),
    "index range": (
        lambda a, b: a.agent.make_prepped_xfer("READ", *_sides(a, b, [16], [0])),
        "nixlInvalidParamError",
        "local index 16 (at 0) is not in the list of 16 descriptors",
    ),
    "unequal counts": (
        lambda a, b: a.agent.make_prepped_xfer("READ", *_sides(a, b, [0, 6], [0])),
        "nixlInvalidParamError",
        "2 local indices and 1 remote ones",
    ),
    "other descriptors": (
        lambda a, b: a.agent.initialize_xfer(
            "WRITE",
            a.agent.get_xfer_descs(rows3(a.regions), "DRAM"),
            a.agent.get_xfer_descs(rows3(b.regions) + np.array([1 << 40, 0, 0], np.uint64), "DRAM"),
            b.name,
        ),
        "nixlNotFoundError",
        "lies in no registered memory",
    ),
}


def _sides(one, other, ours, theirs):
    local, remote = lists((one, other))
    return local, np.array(ours, np.int32), remote, np.array(theirs, np.int32)


@pytest.mark.parametrize("mode", ["log", "assert"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_nixl_refuses_keeps_its_type_and_gains_a_note(nixl, arm, host, what, mode):
    call, kind, note = REFUSED[what]
    arm(mode)
    one, other = host("here", regions([6, 6, 4])), host("there", regions([6, 6, 4]))
    one.meet(other)
    with pytest.raises(getattr(nixl.nixlBind, kind)) as refused:
        call(one, other)
    assert type(refused.value) is getattr(nixl.nixlBind, kind)
    assert any(note in line for line in refused.value.__notes__), refused.value.__notes__


HOSTILE = {
    "prep of nothing": lambda a, s: a.prep_xfer_dlist("", None, "DRAM"),
    "prep of an empty list": lambda a, s: a.prep_xfer_dlist("", [], "DRAM"),
    "prep of text": lambda a, s: a.prep_xfer_dlist("", "abc", "DRAM"),
    "prep without a kind": lambda a, s: a.prep_xfer_dlist("", s.rows),
    "prep of another kind": lambda a, s: a.prep_xfer_dlist("", s.rows, "GPU"),
    "prep of no kind": lambda a, s: a.prep_xfer_dlist("", s.rows, 7),
    "remote prep of no kind": lambda a, s: a.prep_xfer_dlist(s.peer, s.rows, "GPU"),
    "prep of a wrong shape": lambda a, s: a.prep_xfer_dlist(
        "", np.zeros((2, 4), np.uint64), "DRAM"
    ),
    "prep of an odd type": lambda a, s: a.prep_xfer_dlist("", s.rows.astype(float), "DRAM"),
    "prep of columns": lambda a, s: a.prep_xfer_dlist("", np.asfortranarray(s.rows), "DRAM"),
    "prep of no slots": lambda a, s: a.prep_xfer_dlist("", s.rows * [1, 1, 1, 1, 0], "DRAM"),
    "prep of no stride": lambda a, s: a.prep_xfer_dlist("", s.rows * [1, 1, 1, 0, 1], "DRAM"),
    "prep of no bytes": lambda a, s: a.prep_xfer_dlist("", s.rows * [1, 0, 1, 1, 1], "DRAM"),
    "prep of no rows": lambda a, s: a.prep_xfer_dlist("", s.rows[:0], "DRAM"),
    "prep of a device": lambda a, s: a.prep_xfer_dlist("", np.add(s.rows, [0, 0, 9, 0, 0]), "DRAM"),
    "prep of slots of no bytes": lambda a, s: a.prep_xfer_dlist("", s.slots * [1, 0, 1], "DRAM"),
    "prep of slots of floats": lambda a, s: a.prep_xfer_dlist("", s.slots.astype(float), "DRAM"),
    "prep of short slots": lambda a, s: a.prep_xfer_dlist("", s.slots.astype("u4"), "DRAM"),
    "prep of swapped slots": lambda a, s: a.prep_xfer_dlist("", s.slots.astype(">u8"), "DRAM"),
    "description of no bytes": lambda a, s: a.get_xfer_descs(s.slots * [1, 0, 1], "DRAM"),
    "prep for nobody": lambda a, s: a.prep_xfer_dlist("nobody", s.rows, "DRAM"),
    "prep for no name": lambda a, s: a.prep_xfer_dlist(None, s.rows, "DRAM"),
    "prep of registrations": lambda a, s: a.prep_xfer_dlist("", s.registered, "DRAM"),
    "make of nothing": lambda a, s: a.make_prepped_xfer("WRITE", None, [0], None, [0]),
    "make of numbers": lambda a, s: a.make_prepped_xfer("WRITE", 1, [0], 2, [0]),
    "make of no operation": lambda a, s: a.make_prepped_xfer("write", s.local, [0], s.remote, [0]),
    "make without indices": lambda a, s: a.make_prepped_xfer("READ", s.local, None, s.remote, None),
    "make of text": lambda a, s: a.make_prepped_xfer("READ", s.local, "0", s.remote, "0"),
    "make of nan": lambda a, s: a.make_prepped_xfer(
        "READ", s.local, np.array([np.nan]), s.remote, np.array([np.nan])
    ),
    "make of empty sets": lambda a, s: a.make_prepped_xfer("READ", s.local, [], s.remote, []),
    "make of empty arrays": lambda a, s: a.make_prepped_xfer(
        "READ", s.local, np.array([], np.int32), s.remote, np.array([], np.int32)
    ),
    "make of tables": lambda a, s: a.make_prepped_xfer(
        "READ", s.local, np.zeros((2, 2), np.int32), s.remote, np.zeros((2, 2), np.int32)
    ),
    "make with sides swapped": lambda a, s: a.make_prepped_xfer(
        "READ", s.remote, [0], s.local, [0]
    ),
    "make with odd messages": lambda a, s: a.make_prepped_xfer(
        "READ", s.local, [0], s.remote, [0], 5
    ),
    "make with too many": lambda a, s: a.make_prepped_xfer(
        "READ", s.local, [0], s.remote, [0], b"", [], False, 1
    ),
    "make with too few": lambda a, s: a.make_prepped_xfer("READ", s.local),
    "make with unknown names": lambda a, s: a.make_prepped_xfer(
        "READ", s.local, [0], s.remote, [0], nonsense=1
    ),
    "initialize of nothing": lambda a, s: a.initialize_xfer("READ", None, None, s.peer),
    "initialize of rows": lambda a, s: a.initialize_xfer("READ", s.rows, s.rows, s.peer),
    "initialize for nobody": lambda a, s: a.initialize_xfer("READ", s.described, s.described, "x"),
    "transfer of nothing": lambda a, s: a.transfer(None),
    "check of nothing": lambda a, s: a.check_xfer_state(None),
    "check before the post": lambda a, s: a.check_xfer_state(s.made),
    "release of nothing": lambda a, s: a.release_xfer_handle(None),
    "telemetry without any": lambda a, s: a.get_xfer_telemetry(s.made),
    "deregister of nothing": lambda a, s: a.deregister_memory(None),
    "deregister of rows": lambda a, s: a.deregister_memory(s.described),
    "register of nothing": lambda a, s: a.register_memory(None),
    "register of text": lambda a, s: a.register_memory("abc", "DRAM"),
    "register of an empty list": lambda a, s: a.register_memory([], "DRAM"),
    "metadata of nothing": lambda a, s: a.add_remote_agent(None),
    "metadata of noise": lambda a, s: a.add_remote_agent(b"noise"),
    "removal of nobody": lambda a, s: a.remove_remote_agent("nobody"),
    "removal of no name": lambda a, s: a.remove_remote_agent(None),
    "notifications of no backend": lambda a, s: a.get_new_notifs(["nonsense"]),
    "done of nothing": lambda a, s: a.check_remote_xfer_done("nobody", None),
}


class Scene:
    def __init__(self, pair):
        one, other = pair
        self.peer, self.rows = other.name, rows5(one.regions)
        self.slots = rows3(one.regions)
        self.local, self.remote = lists(pair)
        self.registered = one.registered[0]
        self.described = one.agent.get_xfer_descs(rows3(one.regions), "DRAM")
        self.made = one.agent.make_prepped_xfer("READ", self.local, [0], self.remote, [0])


def outcome(call, pair):
    try:
        return type(call(pair[0].agent, Scene(pair)))
    except Exception as error:
        # What pybind says that it was invoked with differs from call to call.
        return type(error), str(error).partition("Invoked with")[0].replace(pair[1].name, "")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_arguments_end_as_without_the_companion_and_switch_nothing_off(arm, make_pair):
    before, pair = {}, make_pair()
    for what, call in HOSTILE.items():
        before[what] = outcome(call, pair)
    armed = arm("log")
    pair = make_pair()
    for what, call in HOSTILE.items():
        assert (what, outcome(call, pair)) == (what, before[what])
        assert (what, armed.faults) == (what, {})
    send(pair)
    assert arrived(pair)


WITHIN = [
    # First, while both sides still count the same notifications.
    "target.arrived_wrong",
    "target.pages_at",
    "target.Target.digested",
    "target.Target.notified",
    "target.Target.announced",
    "watch.Watch.born",
    "watch.Watch.published",
    "watch.Watch.loaded",
    "watch.Watch.dropped",
    "watch.Watch.described",
    "watch.Watch.rows_made",
    "watch.Watch.registered",
    "watch.Watch.deregistering",
    "watch.Watch.deregistered",
    "watch.Watch.prepare",
    "watch.Watch.prepared",
    "watch.Watch.forget_list",
    "watch.Watch.making",
    "watch.Watch.notified",
    "watch.Watch.unread",
    "making.select",
    "making.as_guessed",
    "making.mispaired",
    "making.unequal_counts",
    "making.written_twice",
    "making.Making.check",
    "flights.Flights.made",
    "flights.Flights.posting",
    "flights.Flights.posted",
    "flights.Flights.polled",
    "flights.Flights.releasing",
    "flights.Flights.released",
    "flights.Flights.forget",
    "flights.Flights.deregistering",
    "flights.InFlight.clash",
    "flights.InFlight.enter",
    "flights.InFlight.leave",
    "initiator.Initiator.posting",
    "initiator.Initiator.ended",
    "initiator.pages_of",
    "initiator.rows_of",
    "initiator.source_changed",
    "watch.Watch.late",
    "watch.Watch.target",
    "lifetimes.stale",
    "lifetimes.collected",
    "lifetimes.deregistered",
    "preparing.run_into_next",
    "preparing.declared_for",
    "preparing.cut",
    "agents.Agents.of",
]
# Not reached by right transfers that end at once.
QUIET = {"watch.Watch.unread", "watch.Watch.born", "lifetimes.deregistered", "lifetimes.collected"}


def test_whatever_fails_in_the_companion_nixl_goes_on_unchanged(arm, make_pair, monkeypatch):
    armed = arm("paranoid", faults=True)
    one, other = pair = make_pair()

    def fail(*_, **__):
        raise ZeroDivisionError

    for within in WITHIN:
        other.agent.get_new_notifs()
        fill(one.regions, seed=len(within))
        with monkeypatch.context() as patched:
            patched.setattr(f"kvlint.runtime_checks.nixl.{within}", fail)
            one.agent.remove_remote_agent(other.name)
            one.meet(other)
            send(pair)
            send(pair, rows3)
            whole = one.agent.initialize_xfer(
                "WRITE",
                one.agent.get_xfer_descs(rows3(one.regions), "DRAM"),
                one.agent.get_xfer_descs(rows3(other.regions), "DRAM"),
                other.name,
                b"whole",
            )
            one.agent.transfer(whole)
            one.finish(whole)
            del whole
            assert (within, arrived(pair)) == (within, True)
            texts, end = [], time.monotonic() + 10
            while len(texts) < 3 and time.monotonic() < end:
                texts += other.agent.get_new_notifs().get(one.name, [])
            assert (within, texts) == (within, [b"m", b"m", b"whole"])
            part = one.regions[0]
            one.deregister(0)
            one.register_bytes(part.ctypes.data, part.nbytes)
            one.registered.insert(0, one.registered.pop())
        if within not in QUIET:
            assert (within, bool(armed.faults)) == (within, True)
        armed.forget_faults()
    assert armed.checks == []
