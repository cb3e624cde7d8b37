"""What a message says is what comes out of its bytes, or nothing does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.digests.rows import Rows
from kvlint.runtime_checks.exchange.messages import Announced, Kind, Stage, unpack
from tests.runtime_checks.exchange.letters import (
    SENDER,
    UNHURRIED,
    announced,
    digested,
    told,
    told_rows,
)

U64 = st.integers(0, (1 << 64) - 1)
ROWS = st.lists(st.tuples(U64, st.integers(0, (1 << 63) - 1), st.integers(0, 3)), max_size=40)


def again(message, data=None):
    kind, detail = message.kind, message.detail
    data = message.pack() if data is None else data
    return unpack(message.sender, message.receiver, message.transfer, kind, detail, data)


@UNHURRIED
@given(ROWS, st.sampled_from(["READ", "WRITE"]))
def test_rows_are_the_same_again_in_their_order(given, operation):
    kinds = (np.uint64, np.int64, np.uint64)
    columns = [np.array([row[n] for row in given], kind) for n, kind in enumerate(kinds)]
    message = Announced(SENDER, "decode", bytes(16), operation, Rows(*columns))
    assert told(again(message)) == told(message)


@pytest.mark.parametrize("count", [0, 1, 7808])
def test_tags_are_the_same_again(count):
    assert told(again(digested(count))) == told(digested(count))


def test_the_rows_of_a_region_are_eight_bytes_each():
    assert len(announced(7808).pack()) == 8 + 61 * 24 + 7808 * 8


@UNHURRIED
@given(st.binary(max_size=200), st.sampled_from(Kind))
def test_other_bytes_are_a_message_or_none_and_never_more_than_they_hold(data, kind):
    found = unpack(SENDER, "decode", bytes(16), kind, 0, data)
    if found is None:
        return
    if isinstance(found, Announced):
        lengths = {len(column) for column in told_rows(found.rows)}
        assert lengths == {len(found.rows)}
        assert len(found.rows) * 8 <= len(data)
    else:
        assert (found.stage, found.tags.tobytes()) == (Stage.POST, data)


RUN = np.dtype("<u8,<i8,<i8")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 7,
        (1 << 63).to_bytes(8, "little"),
        (1).to_bytes(8, "little") + bytes(23),
        (0).to_bytes(8, "little") + bytes(8),
        *(
            len(counts).to_bytes(8, "little")
            + np.array([(1, 1, count) for count in counts], RUN).tobytes()
            + bytes(24)
            for counts in ([2], [4], [-1, 4], [0, 3], [1 << 62, -(1 << 62), 3])
        ),
    ],
)
def test_counts_that_are_not_those_of_the_addresses_are_no_rows(data):
    assert again(announced(0), data) is None
