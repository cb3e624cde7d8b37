"""Transfers by the agents they are between, on one clock."""

from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.page.lanes import MOST_LANES, columns, line_of, stacked
from kvlint.runtime_checks.reading import put_together
from tests.runtime_checks.test_reading import AT, notified, transfer, violation

MS = 10**6


def line(violations, entries):
    story = put_together(violations, entries)
    return line_of(story.transfers, list(enumerate(story.violations, 1)))


def test_times_are_microseconds_since_the_first():
    found = line([], [transfer(), notified(at=AT + 5000), transfer("x>y:1", AT + MS, "x", "y")])
    first, second = found.lanes
    (bar,) = first.bars
    assert (first.mover, first.peer) == ("prefill", "decode")
    assert (bar.made, bar.posted, bar.notified, bar.ended, bar.state) == (0, 1, 5, 9, "done")
    assert (second.bars[0].begin, found.span) == (1000, 1009)
    assert found.begin == "2026-09-21T14:13:20.000000+00:00"


def test_what_only_the_target_saw_is_in_the_lane_of_who_moved_it():
    (lane,) = line([], [notified()]).lanes
    assert (lane.mover, lane.peer, lane.bars[0].state) == ("prefill", "decode", "")


def test_a_violation_is_in_the_lane_of_its_agents_whoever_found_it():
    found = line(
        [violation(), violation(number=2, agent="decode", peer="prefill"), violation(agent="z")],
        [transfer()],
    )
    assert [(lane.mover, [mark.number for mark in lane.marks]) for lane in found.lanes] == [
        ("prefill", [1, 2]),
        ("z", [3]),
    ]


def test_lanes_with_violations_come_first_and_some_are_left_out():
    entries = [transfer(f"t{n}", AT, f"a{n:02}", "decode") for n in range(MOST_LANES + 3)]
    found = line([violation(agent="a26")], entries)
    assert len(found.lanes) == MOST_LANES
    assert (found.lanes[0].mover, found.lanes[1].mover) == ("a26", "a00")
    assert len(found.others) == 3


def test_what_has_no_time_is_counted():
    timeless = transfer(made=None, posted=None, ended=None)
    found = line([violation(time="soon")], [timeless, transfer("x>y:1")])
    assert (len(found.lanes), found.untimed) == (1, 2)
    assert line([violation(time=None)], []).begin == ""


def test_bars_of_one_row_keep_apart():
    entries = [transfer(f"t{n}", AT + n * 3000) for n in range(5)]
    (lane,) = line([], entries).lanes
    assert [[bar.begin for bar in row] for row in stacked(lane.bars, 0)] == [
        [0, 9],
        [3, 12],
        [6],
    ]


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=50), st.integers(1, 40))
def test_each_transfer_is_in_one_column(times, count):
    entries = [transfer(f"t{n}", AT + at, state="failed") for n, at in enumerate(times)]
    found = line([], entries)
    parts = columns(found.lanes[0].bars, found.span, count)
    assert len(parts) == count
    assert parts[0][0] >= 1
    assert sum(begun for begun, _ in parts) == sum(wrong for _, wrong in parts) == len(times)


@given(st.lists(st.text(max_size=30) | st.datetimes().map(str), max_size=5))
def test_any_text_may_be_a_time(times):
    found = line([violation(time=time) for time in times], [transfer()])
    assert found.span >= 0
