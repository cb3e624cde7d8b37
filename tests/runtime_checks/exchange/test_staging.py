"""Places for records on their way out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.exchange.records import BODY, MOST_PARTS, STAMP, encode
from kvlint.runtime_checks.exchange.region import SIZE, STAGED, Region
from kvlint.runtime_checks.exchange.staging import Staging
from tests.runtime_checks.exchange.letters import KEY, UNHURRIED, announced

REGION = Region(np.zeros(SIZE, np.uint8))


@UNHURRIED
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 300), st.integers(0, 9)), max_size=60))
def test_no_place_is_given_twice(steps):
    staging, taken = Staging(REGION), []
    for back, count, which in steps:
        if back and taken:
            peer, first, count = taken.pop(which % len(taken))
            staging.give_back(peer, first, count)
        else:
            first = staging.take(f"peer{which % 3}", count)
            if first is not None:
                taken.append((f"peer{which % 3}", first, count))
        places = [place for _, first, count in taken for place in range(first, first + count)]
        assert len(places) == len(set(places))
        assert all(place < STAGED for place in places)


def test_a_peer_that_takes_nothing_leaves_places_to_others():
    staging = Staging(REGION)
    assert staging.take("slow", MOST_PARTS) == 0
    assert staging.take("slow", 1) is None
    assert staging.take("quick", STAGED - MOST_PARTS) == MOST_PARTS
    assert staging.take("quick", 1) is None
    staging.give_back("slow", 0, MOST_PARTS)
    assert staging.take("slow", MOST_PARTS) == 0


def test_records_stand_there_with_their_stamps():
    staging, records = Staging(REGION), list(encode(announced(0), bytes(20_000), 0, KEY))
    assert staging.take("other", 3) == 0
    assert staging.take("peer", len(records)) == 3
    staging.fill(3, records)
    assert [REGION.staged[place].tobytes() for place in range(3, 9)] == records
    stamps = [record[BODY : BODY + STAMP] for record in records]
    assert [REGION.staged_stamps[place].tobytes() for place in range(3, 9)] == stamps
