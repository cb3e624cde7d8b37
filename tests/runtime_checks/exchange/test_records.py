"""Records: what is sealed comes out as it went in, and nothing else comes out at all."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.exchange.messages import Sender
from kvlint.runtime_checks.exchange.records import (
    BODY,
    MOST_PARTS,
    RECORD,
    ROOM,
    Record,
    decode,
    encode,
    parts_of,
)
from tests.runtime_checks.exchange.letters import (
    KEY,
    UNHURRIED,
    announced,
    digested,
    in_records,
    sealed_again,
)

KIND_AT, DETAIL_AT, PART_AT, TOTAL_AT = 6, 7, 48, 52


@UNHURRIED
@given(
    st.sampled_from([announced, digested]),
    st.integers(0, 2000),
    st.integers(0, (1 << 64) - 1000),
    st.builds(Sender, st.text(max_size=60), st.integers(0, (1 << 64) - 1)),
)
def test_a_message_is_whole_again_from_its_records(make, count, sequence, sender):
    message = make(count, sender=sender)
    records = [decode(record, KEY) for record in in_records(message, sequence)]
    assert all(isinstance(record, Record) for record in records)
    assert [record.part for record in records] == list(range(len(records)))
    assert [record.sequence - sequence for record in records] == list(range(len(records)))
    assert {record.transfer for record in records} == {message.transfer}
    assert {record.sender.number for record in records} == {sender.number}
    assert {(record.kind, record.detail) for record in records} == {(message.kind, message.detail)}
    assert b"".join(record.data for record in records) == message.pack()


def test_a_name_is_cut_to_its_place_and_no_surrogate_stops_it():
    for name, kept in (("a" * 60, "a" * 48), ("\udcff", "?"), ("", "")):
        record = decode(in_records(digested(1, sender=Sender(name, 1)))[0], KEY)
        assert record.sender == Sender(kept, 1)


@UNHURRIED
@given(st.integers(0, RECORD * 8 - 1))
def test_a_record_with_one_other_bit_is_none(bit):
    record = bytearray(in_records(announced(3))[0])
    record[bit // 8] ^= 1 << bit % 8
    assert isinstance(decode(bytes(record), KEY), str)


@UNHURRIED
@given(st.integers(0, 1 << 32))
def test_bytes_that_nobody_sealed_are_none(seed):
    noise = np.random.default_rng(seed).bytes(RECORD)
    assert isinstance(decode(noise, KEY), str)
    head = in_records(announced(3))[0][:112]
    assert decode(head + noise[112:], KEY) == "seal"


def test_another_key_another_size_another_version():
    record = in_records(announced(3))[0]
    assert decode(record, b"another") == "seal"
    assert decode(record[:-1], KEY) == "size"
    assert decode(sealed_again(record[:4] + b"\2\0" + record[6:]), KEY) == "version"
    assert decode(bytes(RECORD), KEY) == "magic"


@UNHURRIED
@given(
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(0, (1 << 32) - 1) | st.integers(0, 1000),
    st.integers(0, (1 << 32) - 1) | st.integers(0, MOST_PARTS * ROOM),
)
def test_fields_that_make_no_sense_are_refused_though_they_are_sealed(kind, detail, part, total):
    record = bytearray(in_records(announced(3))[0])
    record[KIND_AT], record[DETAIL_AT] = kind, detail
    struct.pack_into("<II", record, PART_AT, part, total)
    found = decode(sealed_again(bytes(record)), KEY)
    if (kind, detail) not in [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]:
        assert found == "kind"
    elif parts_of(total) > MOST_PARTS or part >= parts_of(total):
        assert found == "part"
    else:
        assert len(found.data) == min(ROOM, total - part * ROOM)


def test_the_largest_message_and_one_that_is_larger():
    most = bytes(MOST_PARTS * ROOM)
    assert sum(len(record) for record in encode(digested(0), most, 0, KEY)) == MOST_PARTS * RECORD
    with pytest.raises(ValueError, match=f"{len(most) + 1} bytes are 897 records"):
        list(encode(digested(0), most + b"\0", 0, KEY))


def test_the_key_does_not_travel():
    key = bytes(range(200, 232))
    (record,) = in_records(announced(100), 0, key)
    assert all(key[at : at + 4] not in record for at in range(28))
    assert len(record) == BODY + 16
