"""The drawn time line: each transfer where it can be told apart, else in columns."""

import pytest

from kvlint.runtime_checks.page.markup import make
from kvlint.runtime_checks.page.timeline import MOST_BARS, MOST_RUNS, around, duration, timelines
from kvlint.runtime_checks.reading import put_together
from tests.runtime_checks.test_reading import AT, notified, transfer, violation

MS = 10**6


def drawn(violations, entries, told=()):
    return make("div", *timelines(put_together(violations, entries), told))


def classes(element):
    return [one.get("class") for one in element.iter() if one.get("class")]


def texts(element):
    return ["".join(one.itertext()) for one in element.iter("text")]


def test_a_bar_goes_from_posted_to_ended_and_the_rest_is_beside_it():
    root = drawn([], [transfer(), notified(at=AT + 10000)])
    (bar,) = [one for one in root.iter("g") if one.get("class") == "bar done"]
    rect = bar.find("rect")
    whole = 1104 - 24
    assert float(rect.get("x")) == pytest.approx(12 + whole * 1 / 10, abs=0.01)
    assert float(rect.get("width")) == pytest.approx(whole * 8 / 10, abs=0.01)
    assert [line.get("class") for line in bar.findall("line")] == ["made", "notified"]
    assert bar.find("title").text == (
        "prefill>decode:00aa#1, made at 0 s, posted at 1 µs, done at 9 µs, "
        "the target was notified at 10 µs"
    )
    assert texts(root)[0] == "prefill → decode1 transfer, 1 done"


def test_thousands_of_transfers_are_columns_with_what_failed():
    entries = [
        transfer(f"t{n}", AT + n * MS, state="failed" if n >= 2000 else "done")
        for n in range(MOST_BARS * 10)
    ]
    root = drawn([], entries)
    found = [one for one in root.iter("g") if one.get("class") == "column"]
    assert len(found) == 160
    assert "15 transfers began here" in [one.find("title").text for one in found]
    assert found[-1].find("title").text.endswith("did not end as done")
    assert not [name for name in classes(root) if name.startswith("bar")]
    assert "2,400 transfers, 2,000 done, 400 failed" in texts(root)[0]
    (more,) = [one.text for one in root.iter("p") if one.get("class") == "more"]
    assert more == "… and 2,200 more transfers are not shown here."


def test_violations_that_would_lie_on_one_another_are_one_mark():
    times = [0, 1, 400_000, 800_000, 800_001, 800_002]
    found = [
        violation(number=n, time=f"2026-09-21T14:13:20.{at:06}Z") for n, at in enumerate(times, 1)
    ]
    root = drawn(found, [], told={3, 5})
    marks = [one for one in root.iter("g") if one.get("class") == "mark"]
    assert [one.find("text").text for one in marks] == ["1, 2", "3", "4 and 2 more"]
    assert [one.get("href") for one in root.iter("a")] == ["#violation-3", "#violation-5"]


def test_runs_have_a_line_each_the_last_first():
    entries = [transfer(f"t{n}", AT + n * 10**12, run=f"r{n}", pid=n) for n in range(MOST_RUNS + 2)]
    root = drawn([], entries)
    heads = [one.text for one in root.iter("h3")]
    assert heads == [f"Run r{n}" for n in reversed(range(2, MOST_RUNS + 2))]
    assert "… and 2 more runs are not shown here." in [one.text for one in root.iter("p")]


def test_around_a_violation_is_a_line_of_its_own():
    entries = [transfer(f"prefill>decode:{n}", AT + n * 1000) for n in range(40)]
    (seen,) = put_together([violation(transfer="prefill>decode:10")], entries).violations
    assert len([name for name in classes(around(seen, 1)) if name == "bar done"]) == 7
    (alone,) = put_together([violation()], []).violations
    assert around(alone, 1) is None


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (0, "0 s"),
        (7, "7 µs"),
        (12_345, "12.3 ms"),
        (3_000_000, "3 s"),
        (125_000_000, "2 min 5 s"),
        (7_500_000_000, "2 h 5 min"),
    ],
)
def test_a_duration_is_told_in_its_own_unit(time, told):
    assert duration(time) == told
