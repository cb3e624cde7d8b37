"""The mailbox in memory that anybody may write: what was sealed is found, all else is counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.exchange import mailbox
from kvlint.runtime_checks.exchange.messages import Sender
from kvlint.runtime_checks.exchange.records import BODY, RECORD, SEAL, STAMP
from kvlint.runtime_checks.exchange.region import CELLS
from tests.runtime_checks.exchange.letters import (
    UNHURRIED,
    Box,
    announced,
    digested,
    in_records,
    told,
)


@pytest.fixture
def box():
    return Box("decode")


def test_nothing_comes_of_nothing(box):
    assert box.receive() == []
    assert box.counts == {}


def test_messages_of_one_sender_come_in_its_order(box):
    sent = [digested(600, transfer=number) for number in range(20)]
    for number, message in enumerate(sent):
        box.send(message, 2 * number, cell=CELLS - 9 + 2 * number)
    assert box.receive() == list(map(told, sent))


@pytest.mark.parametrize("cell", [0, 17, CELLS - 3])
def test_a_message_is_found_wherever_it_lies_also_round_the_ring(box, cell):
    message = announced(3000)
    assert box.send(message, cell=cell) == 7
    assert box.receive() == [told(message)]
    assert box.receive() == []
    assert box.counts == {"received": 1}


def test_messages_for_two_agents_of_one_process_name_theirs():
    box = Box("decode", "second")
    messages = [digested(3), digested(5, to="second", transfer=2)]
    for at, message in enumerate(messages):
        box.send(message, cell=at)
    assert sorted(box.receive(), key=str) == sorted(map(told, messages), key=str)


def test_what_a_dismissed_agent_gets_is_refused(box):
    box.mailbox.admit("second")
    box.mailbox.dismiss("decode")
    box.send(digested(3))
    assert box.wait() == []
    assert box.counts == {"refused.receiver": 1}


def test_a_long_message_takes_several_calls_and_no_clock(box):
    message = digested(496 * 300)
    assert box.send(message) == 300
    assert [box.receive(), box.receive()] == [[], []]
    assert box.receive() == [told(message)]


def test_a_record_that_comes_in_pieces_is_taken_when_it_is_whole(box):
    record = in_records(digested(400))[0]
    stamp = record[BODY : BODY + STAMP]
    for written in (0, 8, 2000, BODY, RECORD - 8):
        box.write(record[:written].ljust(RECORD, b"\0"), 3, stamp)
        assert box.receive() == []
        box.clock.now += 0.03
    box.write(record, 3, stamp)
    box.clock.now += 0.3
    assert box.receive() == [told(digested(400))]
    assert box.counts == {"received": 1}


def test_a_record_whose_stamp_comes_last_is_taken_then(box):
    first, second = (in_records(digested(9, transfer=n), n)[0] for n in (0, 1))
    box.write(first, 3)
    assert box.receive() == [told(digested(9, transfer=0))]
    box.write(second, 3, first[BODY : BODY + STAMP])
    assert box.receive() == []
    box.write(second, 3)
    assert box.receive() == [told(digested(9, transfer=1))]


def test_a_stamp_that_its_record_never_follows_is_refused_once(box):
    record = in_records(digested(9))[0]
    box.write(record, 3)
    assert len(box.receive()) == 1
    box.write(record, 3, b"another!")
    assert box.wait() == []
    assert box.counts == {"received": 1, "refused.torn": 1}


def test_a_half_record_is_refused_once_and_not_before_its_time(box):
    record = in_records(digested(400))[0]
    box.write(record[:2000].ljust(RECORD, b"\0"), 3, record[BODY : BODY + STAMP])
    began = box.clock.now
    while not box.counts:
        box.receive()
        box.clock.now += 0.001
    assert box.clock.now - began > 0.25
    assert box.wait() == []
    assert box.counts == {"refused.seal": 1}


def test_a_replay_is_refused_in_the_same_cell_and_in_another(box):
    record = in_records(digested(9))[0]
    box.write(record, 3)
    assert len(box.receive()) == 1
    box.write(record, 50)
    assert box.wait() == []
    box.write(bytes(RECORD), 3)
    box.receive()
    box.write(record, 3)
    assert box.wait() == []
    assert box.counts["received"] == 1
    assert box.counts["refused.replay"] == 1


def test_a_message_written_over_before_it_was_read_is_lost_and_the_next_comes(box):
    count, sequence = 400, 0
    for transfer in range(CELLS + 100):
        sequence += box.send(digested(count, transfer=transfer), sequence, cell=sequence)
    found = []
    while more := box.receive():
        found += more
    assert len(found) == CELLS
    assert told(digested(count, transfer=CELLS + 99)) in found
    assert told(digested(count, transfer=99)) not in found
    assert box.counts == {"received": CELLS, "lost": 100}


def test_a_flood_of_some_cells_hides_no_other(box):
    box.send(digested(9), cell=2000)
    noise = np.random.default_rng(0)
    found = []
    for _ in range(CELLS // mailbox.AT_ONCE + 1):
        for cell in range(1000):
            box.write(bytes(RECORD), cell, noise.bytes(8))
        found += box.receive()
    assert found == [told(digested(9))]


def test_a_flood_without_end_closes_the_mailbox(box, monkeypatch):
    monkeypatch.setattr(mailbox, "MOST_REFUSED", 300)
    noise = np.random.default_rng(0)
    while box.mailbox.live:
        for cell in range(100):
            box.write(bytes(RECORD), cell, noise.bytes(8))
        box.receive()
    assert box.counts["closed"] == 1
    box.send(digested(9), cell=2000)
    assert box.wait() == []


def test_what_stands_there_when_the_first_agent_comes_is_no_news(box):
    box.mailbox.dismiss("decode")
    box.send(digested(9))
    box.mailbox.admit("decode")
    assert box.wait() == []
    assert box.counts == {}


RECORDS = in_records(announced(500))
SHORTENED = st.integers(0, RECORD).map(lambda n: RECORDS[0][:n].ljust(RECORD, b"\0"))
NOISE = st.integers(0, 1 << 32).map(lambda seed: np.random.default_rng(seed).bytes(RECORD))
HOSTILE = st.one_of(
    NOISE,
    st.binary(min_size=SEAL, max_size=SEAL).map(lambda seal: RECORDS[0][:BODY] + seal),
    SHORTENED,
    st.sampled_from(RECORDS),
)


@UNHURRIED
@given(
    st.lists(
        st.tuples(HOSTILE, st.integers(0, 40), st.none() | st.binary(min_size=8, max_size=8)),
        max_size=30,
    )
)
def test_a_peer_without_the_key_makes_no_message_and_stops_none(writes):
    box = Box("decode")
    right, early = announced(1000, sender=Sender("prefill", 9)), []
    for at, (record, cell, stamp) in enumerate(writes):
        box.write(record, cell, stamp)
        if at % 3 == 0:
            early += box.receive()
    box.send(right, cell=100)
    found = early + box.wait()
    assert told(right) in found
    # Sealed records are their sender's message, once, whoever has put them there.
    assert [message for message in found if message != told(right)] in ([], [told(announced(500))])
