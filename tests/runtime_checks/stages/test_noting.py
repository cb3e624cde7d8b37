"""Stages of real pools of torch tensors in host memory, over real NIXL where pages travel."""

import json
import sys

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")
pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

import numpy as np

from kvlint import runtime_checks
from kvlint.runtime_checks.violations import Violation

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="process_vm_readv is Linux's")


@pytest.fixture
def pool(torch):
    """16 slots in each of two layers' keys and values, no two alike."""

    def make(name="pool"):
        tensors = {
            f"layer {layer} {role}": torch.arange(n * 512, n * 512 + 512).reshape(16, 4, 8)
            for n, (layer, role) in enumerate([(0, "key"), (0, "value"), (1, "key")])
        }
        runtime_checks.guard_pool(tensors, name=name)
        return tensors

    return make


def checks():
    from kvlint.runtime_checks import arming

    return [record["check"] for record in arming._armed.policy.violations]


def test_a_page_that_changes_is_raised_at_the_stage_that_finds_it(pool):
    runtime_checks.arm("assert")
    tensors = pool()
    runtime_checks.stage("store", owner="A", slots=[5, 3, 6])
    runtime_checks.stage("send", owner="A", slots=[3], first=1)
    tensors["layer 1 key"][6, 2, 1] += 1
    expected = (
        r"layer 1 key slot 6 \(page 2 of request A\) changed between store and send: "
        r"from [0-9a-f]{16} to [0-9a-f]{16}$"
    )
    with pytest.raises(Violation, match=expected) as raised:
        runtime_checks.stage("send", owner="A", slots=np.array([5, 3, 6], np.int32))
    record = raised.value.record
    assert (record["check"], record["region_name"], record["slot"]) == (
        "page-changed",
        "layer 1 key",
        6,
    )
    assert [site["call"] for site in record["sites"]] == ["stage store", "stage send"]
    assert "test_a_page_that_changes" in record["sites"][1]["stack"][-1]
    runtime_checks.stage("send", owner="A", slots=[5, 3, 6])
    assert checks() == ["page-changed"]


def test_pages_are_followed_from_pool_to_pool(pool, torch):
    runtime_checks.arm("paranoid")
    prefill, decode = pool("prefill"), pool("decode")
    runtime_checks.stage("store", owner="A", pool="prefill", slots=torch.tensor([5, 3]))
    for name in prefill:
        decode[name][[8, 9]] = prefill[name][[5, 3]]
    runtime_checks.stage("arrival", owner="A", pool="decode", slots=[8, 9])
    decode["layer 0 value"][9] = prefill["layer 1 key"][5]
    with pytest.raises(Violation, match="it holds what belongs to page 0 of layer 1 key"):
        runtime_checks.stage("read", owner="A", pool="decode", slots=[8, 9])
    assert checks() == ["page-misplaced"]


def test_what_raises_in_other_modes_is_silent_where_nothing_is_armed_or_no_bytes_are_read():
    runtime_checks.stage("nothing", owner="A", slots=[1])
    runtime_checks.arm("log")
    runtime_checks.stage("nothing", owner="A", slots=[1])
    from kvlint.runtime_checks import arming

    assert arming._armed._stages is None


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"name": "stored"}, "unknown stage: stored; there are store, write-back, load-back, "),
        ({"slots": [16]}, r"slot 16 \(at 0\) is not in pool pool: .* more than 16 slots"),
        ({"slots": [3, -1]}, r"slot -1 \(at 1\) is not in pool"),
        ({"slots": [1.5]}, "slots are integers in one dimension"),
        ({"slots": [[1]]}, "slots are integers in one dimension"),
        ({"slots": "3"}, "slots are integers in one dimension"),
        ({"slots": None}, "slots are integers in one dimension"),
        ({"pool": "kv"}, "no pool is named kv: guard_pool declares one"),
        ({"agent": "decode"}, "no pool of agent decode is named pool: guard_pool declares one"),
        ({"pool": "kv" * 5000}, "no pool is named (kv){100}: guard_pool declares one"),
        ({"agent": 7}, "no pool of agent 7 is named pool: guard_pool declares one"),
        ({"owner": 7}, "an owner is a request's id"),
        ({"owner": ""}, "an owner is a request's id"),
        ({"first": -1}, "first is the number of a page"),
        ({"first": 1.0}, "first is the number of a page"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(pool, what, message):
    runtime_checks.arm("assert")
    _kept = pool()
    given = {"name": "store", "owner": "A", "slots": [1]} | what
    with pytest.raises(ValueError, match=message) as raised:
        runtime_checks.stage(given.pop("name"), **given)
    assert "\n" not in str(raised.value)


def test_a_requests_id_may_be_whatever_its_client_has_sent(pool, tmp_path):
    """JSON has halves of characters, which UTF-8 has not."""
    runtime_checks.arm("assert", report=tmp_path)
    tensors = pool()
    for owner in "\udc80", "\0", "a\nb\x1b[31m":
        runtime_checks.stage("store", owner=owner, slots=[1])
        tensors["layer 1 key"][1] += 1
        with pytest.raises(Violation, match="changed between store and read"):
            runtime_checks.stage("read", owner=owner, slots=[1])
    assert runtime_checks.status()["tool_errors"] == {}
    runtime_checks.disarm()
    assert len(list(tmp_path.glob("stages-*"))) == 1


def test_slots_on_a_device_are_refused(pool, torch):
    runtime_checks.arm("assert")
    _kept = pool()
    with pytest.raises(ValueError, match="slots are on meta: reading them waits for it"):
        runtime_checks.stage("store", owner="A", slots=torch.zeros(2, device="meta"))


def test_two_agents_with_pools_of_one_name_must_be_told_apart(pool, torch):
    runtime_checks.arm("assert")
    tensors = {agent: [torch.zeros(4, 8)] for agent in ("prefill", "decode")}
    for agent, of_agent in tensors.items():
        runtime_checks.guard_pool(of_agent, name="kv", agent=agent)
    with pytest.raises(ValueError, match="pool kv is one of agents prefill and decode"):
        runtime_checks.stage("store", owner="A", pool="kv", slots=[1])
    runtime_checks.stage("store", owner="A", pool="kv", slots=[1], agent="decode")


def test_memory_that_is_gone_is_no_pool(pool):
    runtime_checks.arm("assert")
    tensors = pool()
    runtime_checks.stage("store", owner="A", slots=[1])
    del tensors
    with pytest.raises(ValueError, match="no pool is named pool"):
        runtime_checks.stage("store", owner="A", slots=[1])


def test_a_sample_of_requests_is_looked_at_and_what_others_store_is_nobodys(pool, monkeypatch):
    runtime_checks.arm("sample")
    from kvlint.runtime_checks import arming

    tensors, companion = pool(), arming._armed
    chosen, other = "", ""
    for number in range(1000):
        owner = f"request {number}"
        if companion.digests.wants(owner.encode()):
            chosen = chosen or owner
        else:
            other = other or owner
    runtime_checks.stage("store", owner=chosen, slots=[3, 4])
    tensors["layer 0 key"][3] += 1
    runtime_checks.stage("store", owner=other, slots=[3])
    runtime_checks.stage("read", owner=other, slots=[3])
    assert [note.owner for note in companion.stages.ledger.notes()] == [chosen]
    # A prefix that both share: the slot is known to hold something else by now.
    monkeypatch.setattr(companion.digests, "wants", lambda owner: True)
    runtime_checks.stage("read", owner="third", slots=[3])
    assert checks() == []
    runtime_checks.stage("send", owner=chosen, slots=[3, 4])
    assert checks() == ["page-changed"]


def test_an_owner_that_stored_unseen_has_nothing_to_be_compared_with(pool, monkeypatch):
    runtime_checks.arm("assert")
    from kvlint.runtime_checks import arming

    tensors, digests = pool(), arming._armed.digests
    runtime_checks.stage("store", owner="A", slots=[3])
    tensors["layer 0 key"][3] += 1
    with monkeypatch.context() as unseen:
        unseen.setattr(digests, "wants", lambda owner: False)
        runtime_checks.stage("store", owner="A", slots=[3])
    runtime_checks.stage("send", owner="A", slots=[3])
    assert checks() == []


class Slow:
    """Digests that are there when it is said so, as those of a device are."""

    done = False

    def __init__(self, pending):
        self._pending = pending

    def ready(self):
        return Slow.done

    def digests(self):
        return self._pending.digests()


@pytest.fixture
def slow(monkeypatch):
    from kvlint.runtime_checks.digests.digester import Digester

    start = Digester.start
    monkeypatch.setattr(Slow, "done", False)
    monkeypatch.setattr(Digester, "start", lambda self, pages: Slow(start(self, pages)))


def test_what_comes_late_is_raised_by_a_later_stage(pool, slow):
    runtime_checks.arm("assert")
    tensors = pool()
    runtime_checks.stage("store", owner="A", slots=[3])
    tensors["layer 0 key"][3] += 1
    runtime_checks.stage("send", owner="A", slots=[3])
    assert checks() == []
    Slow.done = True
    with pytest.raises(Violation, match="changed between store and send"):
        runtime_checks.stage("store", owner="B", slots=[5])
    runtime_checks.stage("store", owner="C", slots=[6])
    assert checks() == ["page-changed"]


def test_whose_pages_lie_somewhere_is_known_once_a_device_has_answered(pool, slow):
    from kvlint.runtime_checks import arming

    runtime_checks.arm("sample")
    arming._armed.digests.suspect()
    tensors = pool()
    runtime_checks.stage("store", owner="A", slots=[3])
    stages = arming._armed.stages
    memory = stages._memories.named("pool", None)
    assert stages.owners(memory, np.array([3])) == []
    Slow.done = True
    (owned,) = stages.owners(memory, np.array([3]))
    assert owned.owner == "A"
    del tensors


def test_what_is_late_at_the_end_is_waited_for(pool, slow, tmp_path):
    runtime_checks.arm("assert", report=tmp_path)
    tensors = pool()
    runtime_checks.stage("store", owner="A", slots=[3])
    tensors["layer 0 key"][3] += 1
    runtime_checks.stage("send", owner="A", slots=[3])
    runtime_checks.disarm()
    (path,) = tmp_path.glob("violations-*.jsonl")
    assert json.loads(path.read_text())["check"] == "page-changed"


def test_after_a_stage_was_lost_nothing_from_before_it_is_held_against_a_page(
    pool, slow, monkeypatch
):
    runtime_checks.arm("assert")
    from kvlint.runtime_checks import arming
    from kvlint.runtime_checks.digests import late

    tensors = pool()
    runtime_checks.stage("store", owner="A", slots=[3])
    tensors["layer 0 key"][3] += 1
    with monkeypatch.context() as full:
        full.setattr(late, "MOST", 1)
        runtime_checks.stage("store", owner="A", slots=[3])
    assert arming._armed.digests.late.dropped == 1
    runtime_checks.stage("send", owner="A", slots=[3])
    Slow.done = True
    runtime_checks.stage("read", owner="A", slots=[3])
    assert checks() == []


def test_the_ledger_is_in_the_folder_and_holds_no_bytes_and_no_addresses(pool, tmp_path):
    runtime_checks.arm("assert", report=tmp_path)
    tensors = pool()
    runtime_checks.stage("store", owner="A", slots=[3, 4])
    address = tensors["layer 0 key"].data_ptr()
    runtime_checks.disarm()
    (path,) = tmp_path.glob("stages-*.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    kinds = [json.loads(line)["kind"] for line in text.splitlines()]
    assert kinds == ["pool", "stage"]
    assert str(address) not in text


def test_a_file_of_stages_stays_small(pool, tmp_path, monkeypatch):
    from kvlint.runtime_checks import evidence

    monkeypatch.setattr(evidence, "RING", 4000)
    runtime_checks.arm("assert", report=tmp_path)
    _kept = pool()
    for number in range(50):
        runtime_checks.stage("store", owner=f"R{number}", slots=[3, 4])
    runtime_checks.disarm()
    (path,) = tmp_path.glob("stages-*.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert path.stat().st_size <= 4000
    assert records[0]["kind"] == "pool"
    assert [record["owner"] for record in records[1:]] == [
        f"R{number}" for number in range(51 - len(records), 50)
    ]


def test_a_pool_where_another_one_was_has_nothing_of_it(torch):
    runtime_checks.arm("assert")
    memory = torch.zeros(16, 64, dtype=torch.uint8)
    runtime_checks.guard_pool({"key": memory}, name="kv")
    runtime_checks.stage("store", owner="A", pool="kv", slots=[3])
    # As if the first one had been given back, and this one were where it was.
    runtime_checks.guard_pool({"key": memory}, name="kv")
    memory[3] += 1
    runtime_checks.stage("read", owner="B", pool="kv", slots=[3])
    assert checks() == []


def test_whose_pages_a_transfer_moves_is_asked_of_pools_that_are_there(torch):
    runtime_checks.arm("assert")
    from kvlint.runtime_checks import arming

    stages = arming._armed.stages
    memory = torch.zeros(16, 64, dtype=torch.uint8)
    runtime_checks.guard_pool({"key": memory}, name="kv")
    runtime_checks.stage("store", owner="A", pool="kv", slots=[3, 4])
    ((_, pages),) = stages._memories.named("kv", None).pages(np.array([4, 3, 9]))
    (owned,) = stages.sent(pages, arming._armed.digests.begin(pages).digests())
    assert (owned.owner, owned.positions.tolist(), owned.ordinals.tolist()) == ("A", [0, 1], [1, 0])
    kept = memory.untyped_storage()
    del memory
    del kept
    assert stages.sent(pages, np.zeros(3, np.uint64)) == []
    assert checks() == []
