"""Each record is taken once, in whatever order they come, and what never came is counted."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.exchange import assembly
from kvlint.runtime_checks.exchange.assembly import Assembly, Sequence
from kvlint.runtime_checks.exchange.messages import Kind, Sender
from kvlint.runtime_checks.exchange.records import decode, number_of
from tests.runtime_checks.exchange.letters import (
    KEY,
    UNHURRIED,
    announced,
    digested,
    in_records,
    told,
)


def parts(message, sequence=0):
    return [decode(record, KEY) for record in in_records(message, sequence)]


@pytest.fixture
def counts():
    return Counter()


@pytest.fixture
def desk(counts):
    made = Assembly(counts)
    made.receivers[number_of("decode", KEY)] = "decode"
    return made


def taken(desk, records):
    found = [desk.take(record) for record in records]
    return [told(message) for message in found if message is not None]


@UNHURRIED
@given(st.lists(st.integers(0, 40), max_size=80))
def test_the_numbers_that_are_missing_are_those_never_seen(numbers):
    sequence, seen, missing = Sequence(), set(), 0
    for number in numbers:
        change = sequence.take(number)
        assert (change is None) == (number in seen)
        seen.add(number)
        missing += change or 0
        assert missing == max(seen) + 1 - len(seen)


def test_what_came_too_long_ago_to_know_is_refused():
    sequence = Sequence()
    assert sequence.take(assembly.WINDOW + 10) == assembly.WINDOW + 10
    assert sequence.take(11) == -1
    assert sequence.take(9) is None


@UNHURRIED
@given(st.permutations(range(7)))
def test_parts_in_any_order_are_one_message(order):
    counts = Counter()
    desk = Assembly(counts)
    desk.receivers[number_of("decode", KEY)] = "decode"
    message = announced(3000)
    records = parts(message)
    assert len(records) == 7
    assert taken(desk, [records[at] for at in order]) == [told(message)]
    assert (counts["received"], counts["lost"]) == (1, 0)


def test_messages_of_two_transfers_and_two_senders_are_not_mixed_up(desk, counts):
    other = Sender("prefill", 8)
    messages = [announced(1000), announced(600, sender=other), digested(900, sender=other)]
    one, two = parts(messages[0]), parts(messages[1])
    three = parts(messages[2], len(two))
    mixed = [one[0], two[0], three[0], one[1], two[1], three[1], one[2]]
    found = taken(desk, mixed)
    assert sorted(found, key=str) == sorted(map(told, messages), key=str)


def test_a_record_that_comes_again_is_refused(desk, counts):
    records = parts(digested(3))
    assert len(taken(desk, records)) == 1
    assert taken(desk, records) == []
    assert counts["refused.replay"] == 1


def test_a_record_for_somebody_else_is_refused(desk, counts):
    assert taken(desk, parts(digested(3, to="elsewhere"))) == []
    assert counts["refused.receiver"] == 1


def test_a_message_that_lost_a_part_is_dropped_when_newer_ones_have_come(desk, counts):
    sequence = 0
    for transfer in range(assembly.PARTIAL_OF_ONE + 1):
        records = parts(announced(1000, transfer=transfer), sequence)
        taken(desk, records[:-1])
        sequence += len(records)
    assert counts["lost"] == assembly.PARTIAL_OF_ONE
    assert counts["dropped.incomplete"] == 1


def test_unfinished_messages_of_many_senders_have_an_end(desk, counts, monkeypatch):
    monkeypatch.setattr(assembly, "PARTIAL_BYTES", 1 << 20)
    for number in range(100):
        taken(desk, parts(announced(6000, sender=Sender("prefill", number)))[:-1])
    held = sum(len(partial.data) for partial in desk._partial.values())
    assert held <= 1 << 20
    assert counts["dropped.incomplete"] == 100 - len(desk._partial)


def test_a_second_part_of_another_length_is_refused(desk, counts):
    first, second = parts(announced(1000))[0], parts(announced(600))[1]
    assert taken(desk, [first, second]) == []
    assert counts["refused.part"] == 1


def test_bytes_that_are_no_message_are_refused(desk, counts):
    (record,) = parts(digested(3))
    assert taken(desk, [record._replace(kind=Kind.ROWS)]) == []
    assert counts["refused.message"] == 1
