"""Lists in every form that NIXL takes, of own memory, of a peer here and of one elsewhere."""

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint import runtime_checks
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.hosts import Host, indices, neighbours, regions, rows3, rows5, starts
from tests.runtime_checks.programs import WITHOUT_TORCH

ROOT = Path(__file__).parents[3]


def _pickled(agent, rows):
    made = agent.get_xfer_descs(rows, "DRAM")
    return agent.deserialize_descs(agent.get_serialized_descs(made))


def _changed(agent, rows):
    made = agent.get_xfer_descs(np.concatenate((rows[:2], rows[:1], rows[3:])), "DRAM")
    made[2] = tuple(int(number) for number in rows[2])
    return made


def _grown(agent, rows):
    made = agent.get_xfer_descs(rows[:-1], "DRAM")
    made.append(tuple(int(number) for number in rows[-1]))
    return made


FORMS = {
    "rows": lambda agent, rows: rows,
    "signed rows": lambda agent, rows: rows.astype(np.int64),
    "tuples": lambda agent, rows: [tuple(int(n) for n in row) for row in rows],
    "object of rows": lambda agent, rows: agent.get_xfer_descs(rows, "DRAM"),
    "object of tuples": lambda agent, rows: agent.get_xfer_descs(
        [tuple(int(n) for n in row) for row in rows], "DRAM"
    ),
    "pickled object": _pickled,
    "changed object": _changed,
    "grown object": _grown,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_list_is_read_as_it_is(arm, host, form):
    armed = arm()
    one, other = host("here", regions([4, 4, 3])), host("there", regions([4, 4, 3]))
    one.meet(other)
    own = rows3(one.regions)
    local = one.prepare(None, FORMS[form](one.agent, own))
    remote = one.prepare(other, FORMS[form](one.agent, rows3(other.regions)))
    right = indices([0, 4], [1, 3])
    one.agent.make_prepped_xfer("READ", local, right, remote, right)
    assert armed.checks == []
    one.agent.make_prepped_xfer("READ", local, right, remote, right[[0, 1, 2, 0]])
    (record,) = armed.violations
    assert (record["check"], record["side"]) == ("column", "remote")


def test_an_object_that_changed_since_it_was_read_is_read_again(arm, host):
    armed = arm()
    one, other = host("here", regions([4, 4])), host("there", regions([4, 4]))
    one.meet(other)
    rows = rows3(other.regions)
    described = one.agent.get_xfer_descs(rows, "DRAM")
    one.prepare(other, described)
    described[2] = tuple(int(number) for number in rows[7])
    again = one.prepare(other, described)
    local = one.prepare(None, rows3(one.regions))
    one.agent.make_prepped_xfer("WRITE", local, [2, 7], again, [2, 7])
    assert "duplicate-destination" in armed.checks


@pytest.mark.parametrize("many", [False, True])
def test_tensors_are_lists_of_one_slot_each(arm, host, torch, many):
    armed = arm()
    one, other = host("here", []), host("there", [])
    tensors = [torch.zeros(64, dtype=torch.uint8) for _ in range(2)]
    given = tensors if many else tensors[0]
    for member in (one, other):
        member.agent.register_memory(given)
    one.meet(other)
    every = list(range(2 if many else 1))
    local, remote = one.prepare(None, given, None), one.prepare(other, given, None)
    handle = one.agent.make_prepped_xfer("WRITE", local, every, remote, every)
    one.agent.transfer(handle)
    one.finish(handle)
    assert armed.checks == []


@pytest.mark.parametrize("name", ["text", "bytes", "own", "own bytes", "NIXL_INIT_AGENT"])
def test_an_agent_may_be_named_in_every_way(arm, host, name):
    arm("assert")
    one, other = host("here", regions([4, 4])), host("there", regions([4, 4]))
    added = one.agent.add_remote_agent(other.agent.get_agent_metadata())
    away = {"text": other.name, "bytes": added, "own": one.name, "own bytes": one.name.encode()}
    target = one if name.startswith("own") else other
    given = away.get(name)
    if given is None:
        local = one.agent.prep_xfer_dlist(name, rows5(one.regions), "DRAM")
        given = other.name
    else:
        local = one.prepare(None, rows5(one.regions))
    remote = one.agent.prep_xfer_dlist(given, rows5(target.regions), "DRAM")
    one.agent.make_prepped_xfer("WRITE", local, [0, 4], remote, [1, 5])
    with pytest.raises(Violation, match="remote index"):
        one.agent.make_prepped_xfer("WRITE", local, [0, 4], remote, [1, 6])


def test_what_is_found_while_preparing_is_raised_at_first_use(arm, host, monkeypatch):
    armed = arm("assert")
    one, other = host("here", neighbours([4, 4])), host("there", [])
    memory = neighbours([4, 4])
    other.register_bytes(memory[0].ctypes.data, memory[0].nbytes + memory[1].nbytes)
    one.meet(other)
    local = one.prepare(None, rows5(one.regions))
    remote = one.prepare(other, rows5(memory, [5, 4]))
    assert armed.checks == ["out-of-region"]
    for _ in range(2):
        with pytest.raises(Violation, match="is given 5 slots"):
            one.agent.make_prepped_xfer("WRITE", local, [0, 4], remote, [0, 5])
    runtime_checks.disarm()
    monkeypatch.setenv("KVLINT_STRICT_PREPARE", "1")
    arm("assert")
    again = host("again", [])
    again.meet(other)
    with pytest.raises(Violation, match="is given 5 slots"):
        again.prepare(other, rows5(memory, [5, 4]))


ELSEWHERE = """
import json, sys
import numpy as np
from tests.runtime_checks.hosts import Host, neighbours, regions
host = Host("away", regions([4, 4, 3]) + neighbours([4, 4]))
host.register()
extra = np.zeros((6, 64), np.uint8)
def tell():
    parts = [(r.ctypes.data, *r.shape) for r in [*host.regions, extra]]
    print(json.dumps([host.name, host.agent.get_agent_metadata().hex(), parts]), flush=True)
tell()
for line in sys.stdin:
    if line.startswith("deregister"):
        host.deregister(int(line.split()[1]))
    tell()
"""


class Away:
    """A host in another process, of which nothing is known but its metadata."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WITHOUT_TORCH + ELSEWHERE],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "UCX_LOG_LEVEL": "fatal"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.read()

    def read(self):
        line = next(line for line in self.process.stdout if line.startswith("["))
        self.name, metadata, self.parts = json.loads(line)
        self.metadata = bytes.fromhex(metadata)

    def deregister(self, number):
        self.process.stdin.write(f"deregister {number}\n")
        self.process.stdin.flush()
        self.read()

    def rows(self, which, counts=None):
        parts = [self.parts[number] for number in which]
        counts = counts or [slots for _, slots, _ in parts]
        return np.array(
            [(a, length, 0, length, n) for (a, _, length), n in zip(parts, counts, strict=True)],
            np.uint64,
        )


@pytest.fixture(scope="module")
def elsewhere(nixl):
    away = Away()
    yield away
    away.process.kill()
    away.process.communicate()


@pytest.fixture
def visitor(arm, nixl, elsewhere):
    arm("log")
    one = Host("visitor", regions([4, 4, 3, 4, 4]))
    one.register()
    one.agent.add_remote_agent(elsewhere.metadata)
    return one


def each_slot(rows):
    return np.array(
        [
            (a + n * stride, length, d)
            for a, length, d, stride, count in rows.tolist()
            for n in range(count)
        ],
        np.uint64,
    )


def test_the_regions_of_a_peer_elsewhere_are_asked_for(visitor, elsewhere, arm):
    armed = arm()
    local = visitor.prepare(None, rows5(visitor.regions))
    strided = elsewhere.rows(range(5))
    for rows in (strided, each_slot(strided)):
        remote = visitor.agent.prep_xfer_dlist(elsewhere.name, rows, "DRAM")
        right = indices(starts(visitor.regions), [1, 2])
        handle = visitor.agent.make_prepped_xfer("WRITE", local, right, remote, right)
        visitor.agent.transfer(handle)
        visitor.finish(handle)
        assert armed.checks == []
        visitor.agent.make_prepped_xfer("WRITE", local, right, remote, right[::-1].copy())
        assert set(armed.checks) == {"pairing"}
        armed.policy.violations.clear()


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        (lambda away: away.rows([0, 1], [4, 6]), "remote region 1 is given 6 slots, what away"),
        (lambda away: away.rows([0, 5]), "remote region 1 lies in no memory that away"),
    ],
)
def test_what_a_peer_elsewhere_has_not_registered_is_noted(nixl, visitor, elsewhere, rows, note):
    with pytest.raises(nixl.nixlBind.nixlNotFoundError) as refused:
        visitor.agent.prep_xfer_dlist(elsewhere.name, rows(elsewhere), "DRAM")
    assert note in refused.value.__notes__[0]


def test_an_agent_ends_when_the_program_lets_it_go(visitor, elsewhere):
    local = visitor.prepare(None, rows5(visitor.regions[:2]))
    remote = visitor.agent.prep_xfer_dlist(elsewhere.name, elsewhere.rows([0, 1]), "DRAM")
    handle = visitor.agent.make_prepped_xfer("WRITE", local, [0, 4], remote, [0, 4])
    visitor.agent.transfer(handle)
    visitor.finish(handle)
    inner = weakref.ref(visitor.agent.agent)
    del local, remote, handle
    visitor.agent = None
    gc.collect()
    assert inner() is None


def test_newer_metadata_of_a_peer_elsewhere_says_that_a_list_is_stale(visitor, elsewhere, arm):
    armed = arm()
    local = visitor.prepare(None, rows5(visitor.regions[:2]))
    remote = visitor.agent.prep_xfer_dlist(elsewhere.name, elsewhere.rows([0, 1]), "DRAM")
    first = visitor.agent.make_prepped_xfer("WRITE", local, [0, 4], remote, [0, 4])
    visitor.agent.transfer(first)
    visitor.finish(first)
    elsewhere.deregister(1)
    visitor.agent.remove_remote_agent(elsewhere.name)
    visitor.agent.add_remote_agent(elsewhere.metadata)
    with pytest.raises(Exception, match="NOT_FOUND"):
        visitor.agent.make_prepped_xfer("WRITE", local, [0, 4], remote, [0, 4])
    assert set(armed.checks) == {"stale-list"}
    assert "remote region 1" in armed.violations[0]["message"]
