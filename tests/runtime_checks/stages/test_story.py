"""What processes have noted, put together: which page of which request changed first, and where."""

import json

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.reading import put_together
from kvlint.runtime_checks.recorded import record_of
from kvlint.runtime_checks.stages.ledger import Ledger
from kvlint.runtime_checks.stages.records import A_LINE, entries, newest
from kvlint.runtime_checks.stages.story import changes
from kvlint.runtime_checks.telling import tell, tell_as_json
from tests.runtime_checks.layouts import QUICK
from tests.runtime_checks.stages.pages import memory, note

PREFILL, DECODE = memory("prefill"), memory("decode", at=2 << 20)
SECOND = 10**9


def left(pid, *notes, seed=7, run="r"):
    """The records of a process that has noted these."""
    ledger = Ledger()
    for one in notes:
        ledger.note(one)
    return [
        {"schema": 1, "run": run, "pid": pid, **json.loads(json.dumps(entry))}
        for entry in entries(ledger.notes(), seed)
    ]


def at(second, *what, **how):
    return note(*what, **how, time=second * SECOND)


RIGHT = [
    *left(
        1,
        at(1, "store", "A", PREFILL, [3, 4], [11, 12]),
        at(2, "send", "A", PREFILL, [3, 4], [11, 12]),
    ),
    *left(
        2,
        at(3, "arrival", "A", DECODE, [8, 9], [11, 12]),
        at(4, "read", "A", DECODE, [8, 9], [11, 12]),
    ),
]


def told(*records):
    return list(tell(put_together([], [], records)))


def test_right_pages_are_silent():
    assert told(*RIGHT) == ["no violations, 0 transfers recorded"]


def test_the_first_stage_at_which_a_page_differs_is_told_with_what_it_holds():
    prefill = left(
        4711,
        at(1, "store", "A", PREFILL, [3, 4], [11, 12]),
        at(2, "send", "A", PREFILL, [3, 4], [11, 12]),
    )
    decode = left(
        4712,
        at(3, "arrival", "A", DECODE, [8, 9], [[11, 12], [1011, 12]]),
        at(4, "read", "A", DECODE, [8, 9], [[11, 12], [1011, 77]]),
    )
    assert told(*decode, *prefill) == [
        "request A, layer 1 key, page 1: first differs at arrival (decode, process 4712)",
        "  store      prefill slot 4, process 4711          00000000000003f4",
        "  send       prefill slot 4, process 4711          00000000000003f4",
        "  arrival    decode slot 9, process 4712           000000000000000c  first differs",
        "  there it holds what belongs to page 1, layer 0 key",
        "",
        "no violations, 0 transfers recorded, pages of 1 request changed",
    ]
    (line,) = tell_as_json(put_together([], [], [*decode, *prefill]))
    (one,) = json.loads(line)["changes"]
    assert one["steps"][-1] == {
        "stage": "arrival",
        "pool": "decode",
        "region": "layer 1 key",
        "slot": 9,
        "time": 3 * SECOND,
        "digest": "000000000000000c",
        "run": "r",
        "pid": 4712,
    }
    assert one["holds"] == {"owner": "A", "region": "layer 0 key", "page": 1}


def test_who_was_put_in_its_place_is_told():
    records = left(
        1,
        at(1, "store", "A", PREFILL, [3, 4], [11, 12]),
        at(2, "store", "B", PREFILL, [4], [21], first=5),
        at(3, "send", "A", PREFILL, [3, 4], [11, 21]),
    )
    (change,) = changes(records).found[:1]
    assert change.writer == ("B", "store", 5)
    assert change.holder == ("B", "layer 0 key", 5)
    assert change.pages == 2
    assert "  in between, page 5 of request B was put in its place, at store" in told(*records)


def test_what_was_read_where_it_had_not_arrived_was_read_early():
    prefill = left(1, at(1, "send", "A", PREFILL, [3], [11]))
    decode = left(2, at(2, "read", "A", DECODE, [8], [0]), at(3, "arrival", "A", DECODE, [8], [11]))
    (change,) = changes([*prefill, *decode]).found
    assert (change.early, change.here.stage, change.pages) == (True, "read", 2)
    assert "  it was read before an arrival of it was noted" in told(*prefill, *decode)


def test_a_second_turn_is_compared_with_its_own_send():
    prefill = left(
        1,
        *(
            at(second, stage, "A", PREFILL, [3], [digest])
            for second, stage, digest in (
                (1, "store", 11),
                (2, "send", 11),
                (5, "store", 12),
                (6, "send", 12),
            )
        ),
    )
    decode = left(
        2,
        at(3, "arrival", "A", DECODE, [8], [11]),
        at(4, "read", "A", DECODE, [8], [11]),
        at(7, "arrival", "A", DECODE, [9], [12]),
        at(8, "read", "A", DECODE, [9], [12]),
    )
    assert changes([*prefill, *decode]).found == []


def test_clocks_may_differ():
    prefill = left(1, at(9, "send", "A", PREFILL, [3], [11]))
    decode = left(2, at(3, "arrival", "A", DECODE, [8], [12]))
    (change,) = changes([*prefill, *decode]).found
    assert (change.here.stage, change.steps[change.before].stage) == ("arrival", "send")


def test_processes_of_different_seeds_are_not_compared_and_that_is_said():
    prefill = left(1, at(1, "send", "A", PREFILL, [3], [11]), seed=1)
    decode = left(2, at(2, "arrival", "A", DECODE, [8], [99]), seed=2)
    found = changes([*prefill, *decode])
    assert found.found == []
    (line,) = found.apart
    assert line.startswith("request A: processes 1, 2 have different seeds")


def test_pools_of_lists_meet_by_the_place_in_the_list():
    from dataclasses import replace

    one, other = (
        replace(
            of,
            regions=tuple(
                replace(region, name=f"{of.pool}[{n}]", layer=None)
                for n, region in enumerate(of.regions)
            ),
        )
        for of in (PREFILL, DECODE)
    )
    prefill = left(1, at(1, "send", "A", one, [3], [11]))
    decode = left(2, at(2, "arrival", "A", other, [8], [12]))
    (change,) = changes([*prefill, *decode]).found
    assert (change.region, change.pages) == ("decode[0]", 2)


def test_many_pages_are_written_in_lines_of_bounded_length_and_read_again():
    many = memory("many", regions=4, slots=A_LINE)
    digests = range(1, A_LINE + 1)
    prefill = left(1, at(1, "send", "A", many, range(A_LINE), digests))
    assert len(prefill) == 5
    decode = left(2, at(2, "arrival", "A", many, range(A_LINE), [*digests[:-1], 0]))
    (change,) = changes([*prefill, *decode]).found
    assert (change.ordinal, change.pages, change.holder) == (A_LINE - 1, 4, None)


def test_only_the_newest_notes_are_put_into_words():
    notes = [note("store", f"R{n}", PREFILL, range(4), range(4)) for n in range(9)]
    assert newest(notes, 17) == notes[-3:]
    assert newest(notes, 16) == notes[-2:]
    assert newest(notes, 1) == notes[-1:]
    assert newest(notes) == notes
    assert newest([]) == []


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@QUICK
@given(st.data())
def test_what_is_none_of_ours_is_passed_over(data):
    records = [dict(record) for record in RIGHT]
    chosen = data.draw(st.integers(0, len(records) - 1))
    name = data.draw(st.sampled_from(sorted(records[chosen])))
    records[chosen][name] = data.draw(HOSTILE)
    read = [record_of(json.dumps(record).encode(), "stages") for record in records]
    list(tell(put_together([], [], [record for record in read if record is not None])))


def test_a_report_needs_no_numpy():
    import subprocess
    import sys

    program = (
        "import sys; sys.modules['numpy'] = None; import kvlint.runtime_checks.telling as t; "
        "from kvlint.runtime_checks.reading import put_together; "
        "print(*t.tell(put_together([], [])))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "no violations, 0 transfers recorded\n", ran.stderr


def ranks(arrived, read):
    """Two ranks, each of which stores, sends and gets pages of one request by its own processes."""
    pools = [memory("kv", at=number << 20) for number in range(1, 5)]
    sent = [
        record
        for rank, holds in enumerate(([11, 12], [21, 22]))
        for record in left(
            1 + rank,
            at(1 + rank, "store", "A", pools[rank], [3, 4], holds),
            at(3 + rank, "send", "A", pools[rank], [3, 4], holds),
        )
    ]
    came = [
        record
        for rank in range(2)
        for record in left(
            3 + rank,
            at(5 + rank, "arrival", "A", pools[2 + rank], [8, 9], arrived[rank]),
            at(7 + rank, "read", "A", pools[2 + rank], [8, 9], read[rank]),
        )
    ]
    return [*sent, *came]


def test_a_rank_is_not_held_against_anothers_bytes():
    right = ([11, 12], [21, 22])
    assert told(*ranks(right, right)) == ["no violations, 0 transfers recorded"]


def test_what_no_rank_has_sent_is_told_of_its_rank():
    lines = told(*ranks(([11, 12], [21, 22]), ([11, 12], [21, 5])))
    assert "first differs at read (kv, process 4)" in "\n".join(lines)
    lines = told(*ranks(([11, 5], [21, 22]), ([11, 5], [21, 22])))
    assert "first differs at arrival (kv, process 3)" in "\n".join(lines)


def test_ranks_of_one_process_are_told_apart_by_their_pools():
    pools = [memory("kv", at=number << 20) for number in range(1, 3)]
    notes = [
        at(2 * number + rank, stage, "A", pools[rank], [3, 4], holds)
        for number, stage in enumerate(("store", "send", "read"), 1)
        for rank, holds in enumerate(([11, 12], [21, 22]))
    ]
    assert told(*left(1, *notes)) == ["no violations, 0 transfers recorded"]
