"""Plain tensors as a pool: what each is as a region, and what makes none."""

from typing import Any

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from kvlint.runtime_checks.pools.checking import faults
from kvlint.runtime_checks.pools.own import PoolError, pool_of


def told(given: Any, **how: Any) -> list[tuple[str, int | None]]:
    breaches = [breach for _, breach in faults(pool_of(given, **how).settled())]
    return [(breach.check.name, breach.place and breach.place.region) for breach in breaches]


def test_keys_and_values_that_take_turns_in_memory_are_regions_of_their_own(torch):
    both = torch.zeros((64, 2, 16, 8))
    pool = pool_of({"key": both[:, 0], "value": both[:, 1]})
    assert [(c.item_length, c.moved, c.length) for c in pool.claims] == [(1024, 512, 65024)] * 2
    assert list(faults(pool.settled())) == []
    assert told([both[::2], both[1::2]]) == []
    assert told([both[:32], both[32:]]) == []
    # A page of several rows of the one holds rows of the other.
    assert told({"key": both[:, 0], "value": both[:, 1]}, slot_rows=4) == [("region-overlap", 1)]


def test_a_tensor_of_which_no_row_is_one_run_makes_no_region(torch):
    assert told([torch.zeros(8), torch.zeros((4, 8)).t()]) == [("slot-layout", 1)]
    assert told(torch.zeros((4, 8), dtype=torch.uint8).t()) == [("slot-layout", 0)]
    assert told(torch.zeros((1, 8)).expand(4, 8)) == [("slot-layout", 0)]


def test_tensors_without_memory_are_passed_over(torch):
    whole = torch.zeros((4, 8))
    nothing = [torch.zeros((0, 8)), torch.zeros((4, 8), device="meta"), whole.to_sparse()]
    (claim,) = pool_of([*nothing, whole]).claims
    assert claim.address == whole.data_ptr()


class Answers:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def get_contiguous_buf_infos(self) -> Any:
        return self._answer


@pytest.mark.parametrize(
    "answer", [None, 3, ([1], [2]), ([1], [2], 3), ([1, 2], [2], [3]), ([None], [1], [1])]
)
def test_an_answer_that_is_no_three_lists_of_integers_is_one_line(torch, answer):
    with pytest.raises(PoolError, match=r"^[^\n]+$"):
        pool_of(Answers(answer))


@pytest.mark.parametrize("one", [None, (1, 2), ("a", "b", "c"), (float("inf"), 1, 1)])
def test_what_is_said_is_three_integers_a_region(torch, one):
    with pytest.raises(PoolError, match=r"three integers"):
        pool_of(torch.zeros((4, 8)), said=[one])


def test_integers_of_numpy_and_torch_are_integers(torch):
    import numpy as np

    tensor = torch.zeros((4, 8))
    said = (torch.tensor(tensor.data_ptr()), np.int64(tensor.nbytes), np.uint8(32))
    assert told(tensor, said=[said]) == []
    assert told(tensor, said=[(*said[:2], np.uint8(64))]) == [("item-length", 0)]


@pytest.mark.parametrize(
    ("address", "length", "item_length", "check"),
    [
        (0, -128, 32, "pool-length"),
        (0, 1 << 64, 32, "pool-length"),
        (-(1 << 64), 128, 32, "pool-memory"),
        (1 << 64, 128, 32, "pool-memory"),
        (0, 128, -32, "item-length"),
        (0, 128, 1 << 64, "item-length"),
    ],
)
def test_numbers_that_no_memory_has_are_told(torch, address, length, item_length, check):
    tensor = torch.zeros((4, 8))
    said = [(tensor.data_ptr() + address, length, item_length)]
    assert told(tensor, said=said) == [(check, 0)]
