"""Records: what is sealed comes out as it went in, and nothing else comes out at all."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.exchange.records import (
    BODY,
    MOST_PARTS,
    RECORD,
    Kind,
    Record,
    Sender,
    decode,
    encode,
    parts_of,
    room_of,
)
from tests.runtime_checks.exchange.letters import KEY, announced, digested, sealed_again

KIND_AT, DETAIL_AT, PART_AT, TOTAL_AT = 6, 7, 48, 52


@given(
    st.sampled_from([announced, digested]),
    st.integers(0, 1200),
    st.integers(0, (1 << 64) - 1000),
    st.builds(Sender, st.text(max_size=60), st.integers(0, (1 << 64) - 1)),
)
def test_a_message_is_whole_again_from_its_records(make, count, sequence, sender):
    message = make(count, sender=sender)
    records = [decode(record.tobytes(), KEY) for record in encode(message, sequence, KEY)]
    assert all(isinstance(record, Record) for record in records)
    assert [record.part for record in records] == list(range(records[0].parts))
    assert [record.sequence - sequence for record in records] == list(range(len(records)))
    assert {record.transfer for record in records} == {message.transfer}
    assert {record.sender.number for record in records} == {sender.number}
    entries = message.rows if make is announced else message.tags
    assert np.concatenate([record.entries for record in records]).tolist() == entries.tolist()


def test_a_name_is_cut_to_its_place_and_no_surrogate_stops_it():
    for name, kept in (("a" * 60, "a" * 48), ("\udcff", "?"), ("", "")):
        record = decode(encode(digested(1, sender=Sender(name, 1)), 0, KEY)[0].tobytes(), KEY)
        assert record.sender == Sender(kept, 1)


@given(st.integers(0, RECORD * 8 - 1))
def test_a_record_with_one_other_bit_is_none(bit):
    record = bytearray(encode(announced(3), 5, KEY)[0].tobytes())
    record[bit // 8] ^= 1 << bit % 8
    assert isinstance(decode(bytes(record), KEY), str)


@given(st.integers(0, 1 << 32))
def test_bytes_that_nobody_sealed_are_none(seed):
    noise = np.random.default_rng(seed).bytes(RECORD)
    assert isinstance(decode(noise, KEY), str)
    head = encode(announced(3), 5, KEY)[0].tobytes()[:112]
    assert decode(head + noise[112:], KEY) == "seal"


def test_another_key_another_size_another_version():
    record = encode(announced(3), 5, KEY)[0].tobytes()
    assert decode(record, b"another") == "seal"
    assert decode(record[:-1], KEY) == "size"
    assert decode(sealed_again(record[:4] + b"\2\0" + record[6:]), KEY) == "version"
    assert decode(bytes(RECORD), KEY) == "magic"


@given(st.integers(0, 255), st.integers(0, 255), *[st.integers(0, (1 << 32) - 1)] * 2)
def test_fields_that_make_no_sense_are_refused_though_they_are_sealed(kind, detail, part, total):
    record = bytearray(encode(announced(3), 5, KEY)[0].tobytes())
    record[KIND_AT], record[DETAIL_AT] = kind, detail
    struct.pack_into("<II", record, PART_AT, part, total)
    found = decode(sealed_again(bytes(record)), KEY)
    if kind not in (1, 2) or detail > 1:
        assert found == "kind"
    elif parts_of(Kind(kind), total) > MOST_PARTS or part >= parts_of(Kind(kind), total):
        assert found == "part"
    else:
        room = room_of(Kind(kind))
        assert len(found.entries) == min(room, total - part * room)


@pytest.mark.parametrize(("kind", "make"), [(Kind.ROWS, announced), (Kind.DIGESTS, digested)])
def test_the_largest_message_and_one_that_is_larger(kind, make):
    most = MOST_PARTS * room_of(kind)
    assert len(encode(make(most), 0, KEY)) == MOST_PARTS
    with pytest.raises(ValueError, match=f"{most + 1} entries are 897 records"):
        encode(make(most + 1), 0, KEY)


def test_the_key_does_not_travel():
    key = bytes(range(200, 232))
    record = encode(announced(100), 0, key)[0].tobytes()
    assert all(key[at : at + 4] not in record for at in range(28))
    assert len(record) == BODY + 16
