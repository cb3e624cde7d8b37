"""What code led to NIXL's calls: each different stack once, counted, and bounded."""

import sys
import threading

from kvlint.runtime_checks.callers import Callers
from kvlint.runtime_checks.launches.budget import Budget
from kvlint.runtime_checks.stacks import Stack, here
from tests.runtime_checks.breaches import lines


def stack(callers=("send",)):
    """Of functions that call each other, the last of which takes it."""
    source = "".join(f"def {name}(*rest): return rest[0](*rest[1:])\n" for name in callers)
    namespace = {}
    exec(compile(source, "engine.py", "exec"), namespace)
    first, *rest = (namespace[name] for name in callers)
    return first(*rest, here)


def told(callers):
    return [(one.call, one.count, one.stack.lines()[-1:]) for one in callers.entries()]


def test_calls_from_one_place_are_one_entry_and_counted():
    callers, place = Callers(), stack(("main", "send"))
    for agent in ("prefill", "prefill", "decode"):
        callers.count("make_prepped_xfer", Stack(tuple(place.frames)), agent, ("column",), (1, 2))
    (one,) = callers.entries()
    assert one.to_dict() == {
        "kind": "called",
        "call": "make_prepped_xfer",
        "stack": place.lines(),
        "count": 3,
        "checked": {"column": 3},
        "agents": ["prefill", "decode"],
        "lists": [1, 2],
    }
    assert one.stack.lines()[-2:] == ["engine.py:1 in main", "engine.py:2 in send"]


def test_another_call_or_another_way_there_is_another_entry():
    callers, ways = Callers(), [stack(("a", "send")), stack(("b", "send"))]
    for way in (*ways, *ways):
        callers.count("make_prepped_xfer", way, "a")
    callers.count("prep_xfer_dlist", ways[0], "a")
    assert [(one.call, one.count) for one in callers.entries()] == [
        ("make_prepped_xfer", 2),
        ("make_prepped_xfer", 2),
        ("prep_xfer_dlist", 1),
    ]


def test_a_check_counts_where_it_has_looked():
    callers, place = Callers(), stack()
    for checks in (("column", "pairing"), ("column",), ()):
        callers.count("make_prepped_xfer", place, "a", checks)
    (one,) = callers.entries()
    assert (one.count, one.checks()) == (3, {"column": 2, "pairing": 1})


def test_what_is_beyond_the_table_is_counted_without_a_place():
    callers = Callers(most=2)
    ways = [stack((f"f{number}",)) for number in range(5)]
    for way in (*ways, *ways):
        callers.count("make_prepped_xfer", way, "a")
    callers.count("prep_xfer_dlist", ways[3], "a")
    assert told(callers) == [
        ("make_prepped_xfer", 2, ["engine.py:1 in f0"]),
        ("make_prepped_xfer", 2, ["engine.py:1 in f1"]),
        ("make_prepped_xfer", 6, []),
        ("prep_xfer_dlist", 1, []),
    ]


def test_names_of_agents_and_lists_are_bounded():
    callers, place = Callers(), stack()
    for number in range(1000):
        callers.count("prep_xfer_dlist", place, f"agent {number}", (), (number,))
    (one,) = callers.entries()
    assert (one.count, len(one.agents), len(one.lists)) == (1000, 64, 64)


def test_threads_count_together():
    callers, ways = Callers(), [stack(("a",)), stack(("b",))]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        def run(way):
            for _ in range(5000):
                callers.count("make_prepped_xfer", way, "a", ("column",))

        threads = [threading.Thread(target=run, args=(ways[n % 2],)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert sorted(one.count for one in callers.entries()) == [10000, 10000]


def test_they_are_dumped_with_the_ring_and_a_child_begins_anew(policy, tmp_path):
    judged = policy()
    judged.callers.count("make_prepped_xfer", stack(), "a")
    judged.dump()
    (record,) = lines(tmp_path / "report", "calls")
    assert (record["run"], record["pid"], record["count"]) == ("r", judged.pid, 1)
    judged.start_afresh()
    assert judged.callers.entries() == []


def test_what_is_new_is_written_at_once_and_then_as_its_number_doubles(
    policy, tmp_path, monkeypatch
):
    monkeypatch.setattr("kvlint.runtime_checks.policy.WRITING", 1e9)
    judged, ways, seen = policy(), [stack(("a",)), stack(("b",))], []
    for way in (0, 0, 0, 0, 0, 1):
        judged.called("make_prepped_xfer", ways[way], "a")
        seen.append([record["count"] for record in lines(tmp_path / "report", "calls")])
    assert seen == [[1], [2], [2], [4], [4], [5, 1]]


def test_writing_takes_a_share_of_the_time_and_what_is_due_is_written_later(policy, tmp_path):
    judged, now = policy(), [0.0]
    judged._budget = Budget(0.01, lambda: now[0])
    judged.called("register_memory", stack(("a",)), "a")
    judged._budget.spend(1.0)
    judged.called("prep_xfer_dlist", stack(("b",)), "a")
    assert len(lines(tmp_path / "report", "calls")) == 1
    now[0] = 200.0
    judged.called("register_memory", stack(("c",)), "a")
    assert len(lines(tmp_path / "report", "calls")) == 3


def test_a_folder_that_is_full_costs_the_file_and_no_call(policy, tmp_path):
    judged = policy()
    (tmp_path / "report").rmdir()
    judged.called("register_memory", stack(), "a")
    judged.called("register_memory", stack(("b",)), "a")
    assert judged.faults == {"evidence": 1}
    assert len(judged.callers.entries()) == 2


def test_without_calls_there_is_no_file(policy, tmp_path):
    policy().dump()
    assert not list((tmp_path / "report").glob("calls*"))


def test_a_full_table_of_deep_stacks_stays_within_its_bound(policy, tmp_path, monkeypatch):
    monkeypatch.setattr("kvlint.runtime_checks.evidence.CALLS", 4000)
    judged = policy()
    for number in range(100):
        judged.callers.count("make_prepped_xfer", stack((f"f{number}",)), "a")
    judged.dump()
    (path,) = (tmp_path / "report").glob("calls*")
    assert 0 < path.stat().st_size <= 4000
    assert judged.faults == {}
