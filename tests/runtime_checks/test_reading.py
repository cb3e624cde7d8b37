"""What several processes have left, put together; what cannot be read costs no more than itself."""

import json
import os
import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvlint.runtime_checks.reading import Process, armed_processes, put_together, read
from kvlint.runtime_checks.recorded import record_of
from kvlint.runtime_checks.telling import tell

AT = 1_790_000_000_000_000_000
ID = "prefill>decode:00aa#1"


def violation(number=1, pid=1, **more):
    return {
        "schema": 1,
        "run": "r",
        "pid": pid,
        "time": "2026-09-21T14:13:20.000003Z",
        "number": number,
        "check": "column",
        "code": "KV103",
        "mode": "log",
        "agent": "prefill",
        "peer": "decode",
        "message": "region 3 gets slot 4, region 0 slot 7",
        "formula": "descriptors before region i = i * S",
        "values": {"region 3": 4, "region 0": 7},
        "side": "remote",
        "region": 3,
        "layer": 1,
        "slot": 4,
        "byte": 1024,
        "sites": [{"call": "make_prepped_xfer", "stack": ["a.py:1 in main", "a.py:7 in send"]}],
        "transfer": ID,
        "history": [],
        "count": 1,
        **more,
    }


def repeat(of, count, pid=1):
    return {"schema": 1, "run": "r", "pid": pid, "time": "", "repeat_of": of, "count": count}


def transfer(name=ID, at=AT, agent="prefill", peer="decode", **more):
    return {
        "schema": 1,
        "run": "r",
        "pid": 1,
        "kind": "transfer",
        "id": name,
        "agent": agent,
        "peer": peer,
        "operation": "WRITE",
        "state": "done",
        "made": at,
        "posted": at + 1000,
        "ended": at + 9000,
        "local": {"list": 1, "descriptors": 24, "groups": [{"slots": 9, "first": [5, 6]}]},
        **more,
    }


def notified(name=ID, at=AT, agent="decode", peer="prefill", run="r"):
    return {
        "schema": 1,
        "run": run,
        "pid": 2,
        "kind": "notified",
        "id": name,
        "agent": agent,
        "peer": peer,
        "time": at,
    }


def write(folder, name, *records):
    text = "".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in records)
    (folder / name).write_text(text)


def test_both_sides_of_a_transfer_are_one_story_in_order_of_time():
    story = put_together([violation()], [transfer(), notified(at=AT + 5000)])
    (merged,) = story.transfers
    assert [(e.agent, e.what) for e in merged.events] == [
        ("prefill", "made"),
        ("prefill", "posted"),
        ("decode", "notified"),
        ("prefill", "done"),
    ]
    assert story.violations[0].around == (merged,)


def test_two_runs_with_the_same_messages_are_two_stories():
    later = AT + 10**12
    entries = [
        notified(at=AT + 5000, run="of another host"),
        transfer(),
        notified(at=AT + 6000, run="s"),
        transfer(at=later, run="s"),
    ]
    first, second = put_together([violation(run="s")], entries).transfers
    assert [event.what for event in first.events] == ["made", "posted", "notified", "done"]
    assert [event.what for event in second.events] == ["notified", "made", "posted", "done"]
    (seen,) = put_together([violation(run="s")], entries).violations
    assert seen.around == (first, second)
    assert "  > prefill>decode:00aa#1" in list(tell(put_together([violation(run="s")], entries)))


def test_what_only_the_target_has_seen_is_told():
    (merged,) = put_together([], [notified(), notified(at=AT + 1)]).transfers
    assert [event.agent for event in merged.events] == ["decode", "decode"]


def test_a_step_that_has_not_happened_is_no_event():
    story = put_together([], [transfer(state="moving", ended=None), {"kind": "list", "number": 1}])
    assert [event.what for event in story.transfers[0].events] == ["made", "posted"]


def test_a_repeat_raises_the_count_of_its_own_process():
    story = put_together([violation(), repeat(1, 2), repeat(1, 8), violation(pid=2)], [])
    assert sorted((s.record["pid"], s.count) for s in story.violations) == [(1, 8), (2, 1)]


def test_a_process_that_is_armed_once_more_counts_anew():
    records = [violation(), repeat(1, 4), violation(message="another"), repeat(1, 2)]
    story = put_together(records, [])
    assert [s.count for s in story.violations] == [4, 2]


def test_around_a_violation_are_the_transfers_of_the_same_agents():
    entries = [transfer(f"prefill>decode:{n}", AT + n) for n in range(20)]
    entries += [transfer("x>y:1", AT + 10, agent="x", peer="y")]
    (seen,) = put_together([violation(transfer="prefill>decode:10")], entries).violations
    assert [t.id for t in seen.around] == [f"prefill>decode:{n}" for n in range(7, 14)]


def test_around_a_violation_without_a_transfer_are_those_before_and_after_it():
    entries = [transfer(f"prefill>decode:{n}", AT + n * 1000) for n in range(20)]
    (seen,) = put_together([violation(transfer=None)], entries).violations
    assert [t.id for t in seen.around] == [f"prefill>decode:{n}" for n in range(1, 7)]


def test_what_a_process_says_at_its_end_is_how_often_it_was():
    (seen,) = put_together(
        [violation(), repeat(1, 4), repeat(1, 7) | {"final": True}], []
    ).violations
    assert (seen.count, seen.exact) == (7, True)
    text = "\n".join(tell(put_together([violation(), repeat(1, 7) | {"final": True}], [])))
    assert "seen     7 times, first" in text


def test_the_text_tells_both_values_the_place_the_calls_and_both_parties():
    story = put_together(
        [violation(), repeat(1, 4)], [transfer(), notified(at=AT + 5000), notified("x>y:1")]
    )
    assert list(tell(story)) == [
        "violation 1 of 1: column [KV103]",
        "  region 3 gets slot 4, region 0 slot 7",
        "  seen     at least 4 times, first 2026-09-21T14:13:20.000003Z, mode log, "
        "process 1 of run r",
        "  agent    prefill, peer decode",
        "  assumes  descriptors before region i = i * S",
        "  values   region 3 = 4, region 0 = 7",
        "  place    remote side, region 3, layer 1, slot 4, byte 1024",
        "  make_prepped_xfer called in",
        "    a.py:1 in main",
        "    a.py:7 in send",
        "  transfers around it",
        "  > prefill>decode:00aa#1",
        "      2026-09-21T14:13:20.000000Z  prefill       made      operation WRITE, "
        "peer decode, local list 1 (24 descriptors; slots 5 6 ...)",
        "      2026-09-21T14:13:20.000001Z  prefill       posted",
        "      2026-09-21T14:13:20.000005Z  decode        notified  peer prefill",
        "      2026-09-21T14:13:20.000009Z  prefill       done",
        "    x>y:1",
        "      2026-09-21T14:13:20.000000Z  decode        notified  peer prefill",
        "",
        "1 violation, 2 transfers recorded",
    ]


def test_all_processes_of_a_folder_are_read_or_those_of_one_run(tmp_path):
    write(tmp_path, "violations-r-1.jsonl", violation())
    write(tmp_path, "violations-r-2.1.jsonl", violation(pid=2))
    write(tmp_path, "violations-s-1.jsonl", violation(run="s"))
    write(tmp_path, "transfers-r-1.jsonl", transfer())
    write(tmp_path, "transfers-r-2.jsonl", notified())
    write(tmp_path, "other.txt", "not ours\n")
    everything, one = read(tmp_path), read(tmp_path, "r")
    assert (len(everything.violations), len(one.violations)) == (3, 2)
    assert [len(t.events) for t in one.transfers] == [4]
    assert everything.unread == []


def test_a_line_that_breaks_off_costs_itself(tmp_path):
    write(tmp_path, "violations-r-1.jsonl", violation(), '{"schema": 1, "che')
    story = read(tmp_path)
    assert len(story.violations) == 1
    assert story.unread == ["violations-r-1.jsonl: the last line breaks off"]


def test_lines_of_others_are_counted_and_left_out(tmp_path):
    deep = "[" * 100_000 + "\n"
    huge = '"' + "x" * (9 << 20) + '"\n'
    others = ["\x00\n", "[]\n", "{}\n", '{"schema": 2}\n', deep, huge]
    write(tmp_path, "violations-r-1.jsonl", *others, violation())
    story = read(tmp_path)
    assert len(story.violations) == 1
    (problem,) = story.unread
    assert problem == (
        "violations-r-1.jsonl: 6 lines are not evidence of this version (first at line 1)"
    )


def test_links_pipes_and_folders_are_not_read(tmp_path):
    write(tmp_path, "elsewhere", violation())
    (tmp_path / "violations-r-1.jsonl").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "violations-r-2.jsonl").mkdir()
    os.mkfifo(tmp_path / "violations-r-3.jsonl")
    story = read(tmp_path)
    assert story.violations == []
    assert len(story.unread) == 3


def test_what_is_written_cannot_leave_its_line():
    story = put_together([violation(message="a\n\x1b[2Jb")], [])
    assert "  a\\n\\x1b[2Jb" in list(tell(story))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
# Drawing them takes long on a machine that does other things as well, and that says nothing.
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEYS = st.sampled_from([*violation(), *transfer(), "time", "repeat_of", "kind"])


def sound(kind, records):
    """Those that a file would give."""
    found = (record_of(json.dumps(record).encode(), kind) for record in records)
    return [record for record in found if record is not None]


OBJECTS = st.lists(st.dictionaries(KEYS, JSON, max_size=5), max_size=4)


@SLOW
@given(OBJECTS, OBJECTS)
def test_any_objects_can_be_told(violations, entries):
    entries = [{"id": "x", **entry, "kind": "transfer"} for entry in entries]
    for line in tell(put_together(sound("violations", violations), sound("transfers", entries))):
        assert line.isprintable()


@SLOW
@given(st.dictionaries(KEYS, JSON, max_size=3))
def test_a_violation_with_odd_values_is_told(odd):
    violations = sound("violations", [violation(**odd)])
    assert list(tell(put_together(violations, sound("transfers", [transfer(**odd)]))))


def test_processes_tell_whether_they_were_hooked(tmp_path):
    write(tmp_path, "armed-r-1.json", {"pid": 1, "status": "installed", "switched_off": {"x": "y"}})
    write(tmp_path, "armed-r-2.json", {"pid": 2, "status": "waiting for nixl"})
    write(tmp_path, "armed-r-3.json", {"pid": 3, "status": "not installed"})
    write(tmp_path, "armed-s-4.json", {"pid": 4, "status": "installed"})
    assert armed_processes(tmp_path, "r") == [
        Process(1, met=True, hooked=True, switched_off=("x",)),
        Process(2, met=False, hooked=False, switched_off=()),
        Process(3, met=True, hooked=False, switched_off=()),
    ]


def test_a_folder_of_many_processes_is_told_in_time():
    found, entries = [], []
    for pid in range(1, 17):
        names = [f"a>b:{pid}-{number}" for number in range(1000)]
        entries += [transfer(n, AT + at, "a", "b", pid=pid) for at, n in enumerate(names)]
        found += [violation(at, pid, agent="a", peer="b", transfer=names[5]) for at in range(500)]
    before = time.process_time()
    story = put_together(found, entries)
    assert all(len(seen.around) == 7 for seen in story.violations)
    assert time.process_time() - before < 20


def test_processes_tell_their_mode_their_versions_and_what_they_made(tmp_path):
    armed = {
        "status": "installed",
        "pid": 1,
        "run": "r",
        "mode": "log",
        "versions": {"nixl": "1.5.2"},
    }
    write(tmp_path, "armed-r-1.json", armed | {"transfers": {"WRITE": 3, "READ": 2}})
    write(tmp_path, "armed-s-2.json", {"status": "", "versions": 7, "transfers": []})
    first, second = armed_processes(tmp_path)
    assert (first.run, first.mode, first.transfers) == ("r", "log", 5)
    assert first.versions == {"nixl": "1.5.2"}
    assert (second.mode, second.versions, second.transfers) == ("", {}, 0)


def test_lists_are_part_of_the_story():
    regions = [{"slots": 4, "length": 256, "stride": 256}]
    listed = {"run": "r", "pid": 1, "kind": "list", "number": 3, "regions": regions}
    story = put_together([], [transfer(), listed])
    assert [(one.number, len(one.regions)) for one in story.lists] == [(3, 1)]
