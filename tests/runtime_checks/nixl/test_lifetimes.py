"""What ends too early or never, and what must not be told: handles, tensors, threads, a long life.

Transfers that are really in flight are in `asynchronous.py`, a process that moves bytes by TCP.
"""

import gc
import json
import os
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint.runtime_checks import locks
from tests.runtime_checks.hosts import fill, indices, regions, rows3, rows5
from tests.runtime_checks.programs import WITHOUT_TORCH

ROOT = Path(__file__).parents[3]


@pytest.fixture
def pair(nixl, host):
    def make():
        one, other = host("here", regions([6, 6])), host("there", regions([6, 6]))
        fill(one.regions)
        one.meet(other)
        other.meet(one)
        local, remote = (
            one.prepare(None, rows5(one.regions)),
            one.prepare(other, rows5(other.regions)),
        )
        return one, other, local, remote

    return make


CALLS = {
    "transfer": lambda agent, handle: agent.transfer(handle),
    "check_xfer_state": lambda agent, handle: agent.check_xfer_state(handle),
    "get_xfer_telemetry": lambda agent, handle: agent.get_xfer_telemetry(handle),
    "query_xfer_backend": lambda agent, handle: agent.query_xfer_backend(handle),
    "estimate_xfer_cost": lambda agent, handle: agent.estimate_xfer_cost(handle),
}


@pytest.mark.parametrize("mode", ["log", "assert", "paranoid"])
def test_a_released_handle_is_refused_and_crashes_nothing(nixl, arm, pair, mode):
    armed = arm(mode)
    one, _, local, remote = pair()
    agent = one.agent
    handle = agent.make_prepped_xfer("WRITE", local, [0, 6], remote, [1, 7], b"m")
    agent.transfer(handle)
    one.finish(handle)
    agent.release_xfer_handle(handle)
    agent.release_xfer_handle(handle)
    for name, call in CALLS.items():
        with pytest.raises(nixl.nixlBind.nixlInvalidParamError) as refused:
            call(agent, handle)
        assert f"kvlint: {name} is given the handle of transfer" in refused.value.__notes__[0]
    agent.release_dlist_handle(local)
    for sides in ((local, [0], remote, [0]), (remote, [0], local, [0])):
        with pytest.raises(nixl.nixlBind.nixlInvalidParamError):
            agent.make_prepped_xfer("WRITE", *sides)
    assert armed.checks == ["released-handle"] * 7


def test_what_is_released_after_its_end_or_never_posted_is_right(arm, pair):
    armed = arm("assert")
    one, other, local, remote = pair()
    unposted = one.agent.make_prepped_xfer("WRITE", local, [0, 6], remote, [1, 7])
    del unposted
    for how in ("release", "del"):
        handle = one.agent.make_prepped_xfer("WRITE", local, [0, 6], remote, [1, 7])
        for _ in range(3):
            one.agent.transfer(handle)
            one.finish(handle)
        if how == "release":
            handle.release()
        del handle
    del local, remote
    assert armed.checks == []
    assert len(armed.flights._in_flight) == 0
    assert not armed.flights._transfers
    assert not armed.flights._sides
    assert other.agent is not None


@pytest.mark.parametrize("mode", ["log", "assert"])
@pytest.mark.parametrize("kept", ["nothing", "view", "other tensor", "array"])
def test_a_collected_tensor_is_told_and_what_keeps_its_memory_is_not(arm, pair, torch, kept, mode):
    armed = arm(mode)
    one, _other, _local, remote = pair()
    array = np.zeros(640, np.uint8)
    tensor = torch.from_numpy(array) if kept == "array" else torch.zeros(640, dtype=torch.uint8)
    registered = one.agent.register_memory(tensor)
    own = one.agent.prep_xfer_dlist(
        "", np.array([[tensor.data_ptr(), 64, 0, 64, 6]], np.uint64), "DRAM"
    )
    keeper = {"view": tensor[10:20], "other tensor": tensor.view(10, 64)}.get(kept)
    del tensor
    gc.collect()
    handle = one.agent.make_prepped_xfer("READ", own, [1], remote, [1])
    post = lambda: one.agent.transfer(handle)  # noqa: E731
    if kept == "nothing" and mode == "assert":
        with pytest.raises(RuntimeError, match="the tensor registered for local region 0"):
            post()
    elif kept != "nothing":
        # With nothing kept the bytes would land in memory that is another's.
        post()
    assert armed.checks == (["collected-memory"] if kept == "nothing" and mode == "assert" else [])
    del keeper
    assert registered is not None


@pytest.mark.parametrize("way", ["get_new_notifs", "update_notifs", "check_remote_xfer_done"])
def test_both_sides_know_a_transfer_by_one_name(arm, pair, way):
    armed = arm()
    one, other, local, remote = pair()
    texts = [b"a", b"b", b"a", b"a", b"c"]
    for text in texts:
        handle = one.agent.make_prepped_xfer("WRITE", local, [0, 6], remote, [0, 6], text)
        one.agent.transfer(handle)
        one.finish(handle)
        handle.release()
    seen = 0
    while seen < len(texts):
        if way == "check_remote_xfer_done":
            seen += other.agent.check_remote_xfer_done(one.name, texts[seen])
        elif way == "update_notifs":
            # What the engine takes out of the collection itself is not counted again.
            seen += len(other.agent.update_notifs().pop(one.name, []))
        else:
            seen += len(other.agent.get_new_notifs().get(one.name, []))
    names = armed.names
    assert len(set(names)) == len(texts)
    assert names[len(texts) :] == names[: len(texts)]


def test_threads_with_agents_of_their_own_and_one_peer_lose_nothing(arm, host):
    armed = arm("assert")
    peer = host("peer", regions([64, 64]))
    hosts = [host("worker", regions([64, 64])) for _ in range(8)]
    for worker in hosts:
        worker.meet(peer)
    failed: list[BaseException] = []

    def work(number, worker):
        try:
            local = worker.prepare(None, rows5(worker.regions))
            remote = worker.prepare(peer, (rows3 if number % 2 else rows5)(peer.regions))
            for turn in range(10):
                slots = [number * 8 + turn % 8]
                chosen = indices([0, 64], slots)
                handle = worker.agent.make_prepped_xfer("WRITE", local, chosen, remote, chosen)
                worker.agent.transfer(handle)
                worker.finish(handle)
                if turn % 8 == number:
                    gc.collect()
        except BaseException as error:
            failed.append(error)

    threads = [
        threading.Thread(target=work, args=(number, worker)) for number, worker in enumerate(hosts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert failed == []
    assert armed.checks == []
    assert armed.policy.transfers == {"WRITE": 80}
    gc.collect()
    assert len(armed.flights._in_flight) == 0
    assert not armed.flights._transfers


def test_a_lock_that_does_not_come_back_changes_no_call(arm, pair, monkeypatch):
    monkeypatch.setattr(locks, "_EACH", 0.01)
    armed = arm("log", faults=True)
    one, _other, local, remote = pair()
    engines, taken = threading.RLock(), threading.Event()

    def interrupted():
        # A destructor of the engine's, in a thread that is in the middle of a check.
        with armed.flights.lock:
            taken.set()
            with engines:
                pass

    other = threading.Thread(target=interrupted)
    with engines:
        other.start()
        assert taken.wait(10)
        handle = one.agent.make_prepped_xfer("WRITE", local, [1, 7], remote, [2, 8])
        one.agent.transfer(handle)
        one.finish(handle)
        handle.release()
    other.join(10)
    assert not other.is_alive()
    assert armed.checks == []


def test_a_forked_child_sees_nothing_of_its_parents_transfers(arm, pair):
    armed = arm("assert")
    one, _, local, remote = pair()
    handle = one.agent.make_prepped_xfer("WRITE", local, [0, 6], remote, [0, 6])
    child = os.fork()
    if not child:
        code = 1
        try:
            flights = armed.flights
            code = 0 if flights.of(handle) is None and len(flights._in_flight) == 0 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert armed.flights.of(handle) is not None


def test_a_long_life_takes_no_memory(arm, pair):
    armed = arm("log")
    one, _other, local, remote = pair()
    piece = np.zeros(4096, np.uint8)

    def live(times):
        for number in range(times):
            handle = one.agent.make_prepped_xfer(
                "WRITE", local, [number % 6, 6 + number % 6], remote, [0, 6]
            )
            one.agent.transfer(handle)
            one.finish(handle)
            handle.release()
            if number % 20 == 0:
                # Stores register for every transfer, and describe it as a whole.
                registered = one.agent.register_memory([(piece.ctypes.data, 4096, 0, "")], "DRAM")
                count = 1 + number % 50
                rows = [(piece.ctypes.data + 64 * at, 64, 0) for at in range(count)]
                described = one.agent.get_xfer_descs(rows, "DRAM")
                own = one.agent.prep_xfer_dlist("", described, "DRAM")
                one.agent.release_dlist_handle(own)
                one.agent.deregister_memory(registered)

    live(500)
    gc.collect()
    before = _resident()
    live(2500)
    gc.collect()
    assert _resident() - before < 16 << 20
    assert armed.checks == []
    watch = armed.companion.hooks.copy().popitem()[1].watch
    assert len(watch._lists) == 2
    assert len(watch.agent(one.agent).registrations.live) == 2
    assert len(watch._rows._known._values) <= 1


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.fixture(scope="module")
def asynchronous(nixl):
    """What each scenario of `asynchronous.py` has found, by its name."""
    pytest.importorskip("wrapt", reason="the wheel wrapt is missing")
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            WITHOUT_TORCH + "import tests.runtime_checks.nixl.asynchronous as a; a.run()",
        ],
        cwd=ROOT,
        env={name: os.environ[name] for name in ("PATH", "UCX_LOG_LEVEL")}
        | {"PYTHONPATH": str(ROOT), "UCX_TLS": "tcp"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


WANTED = {
    "right": [],
    "released": ["released-in-flight"],
    "dropped": ["released-in-flight"],
    "deregistered at the source": ["deregistered-in-flight"],
    "deregistered at the destination": ["deregistered-in-flight"],
    "deregistered elsewhere": [],
    "deregistered afterwards": [],
    "overlapping": ["overlap-in-flight"],
    "overlapping after the other ended": [],
    "apart": [],
    "posted twice": [],
    "source changed": ["source-changed"],
    "source changed before it is posted again": [],
    "source kept": [],
    "never polled at release": ["never-polled"],
    "never polled at exit": ["never-polled"],
    "polled at exit": [],
    "overlapping by another list": ["overlap-in-flight"],
    "dropped while collecting": ["released-in-flight"],
    "stages of right pages": [],
    "stage read in flight": ["early-read"],
    "stage reused in flight": ["page-reused"],
    "stage reused where it comes": ["page-reused"],
    "stage in flight elsewhere": [],
}
# What is said of pages in use: the page and its request, the transfer, whose page it was.
SAID = {
    "stage read in flight": "layer 0 slot 6 (page 1 of request C) is taken at read while transfer "
    "here1>there2:6fb4ae2cb8d0c5a2#2, of which nobody has seen the end, still writes it",
    "stage reused in flight": "layer 0 slot 3 (page 1 of request B) is put there at store while "
    "transfer here1>there2:6fb4ae2cb8d0c5a2#2, of which nobody has seen the end, still reads page "
    "2 of request A, noted there at send",
    "stage reused where it comes": "layer 0 slot 5 (page 0 of request B) is put there at store "
    "while transfer here1>there2:6fb4ae2cb8d0c5a2#2, of which nobody has seen the end, still "
    "writes what is there",
}


@pytest.mark.parametrize("scenario", WANTED)
def test_transfers_in_flight(asynchronous, scenario):
    told = asynchronous[scenario]
    assert (told["found"], told["faults"]) == (WANTED[scenario], {})
    if scenario in SAID:
        (said,) = told["said"]
        assert re.sub(r"\w+>\w+:\w+#", "here1>there2:6fb4ae2cb8d0c5a2#", said) == SAID[scenario]


def test_every_scenario_is_looked_at(asynchronous):
    assert set(asynchronous) == set(WANTED)
