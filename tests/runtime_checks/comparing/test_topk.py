"""Overlap of top-k entries: ties, short rows, and what counts as an exchange."""

import itertools

import pytest

pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")

import torch
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.comparing import cases, compare
from kvlint.runtime_checks.comparing.topk import chosen_overlap, overlap
from tests.runtime_checks.layouts import QUICK

INF = float("inf")


def share(scores, right, k, room=0.0):
    rows = (torch.tensor([row], dtype=torch.float64) for row in (scores, right))
    return float(overlap(*rows, k, torch.tensor([room], dtype=torch.float64))[0])


@pytest.mark.parametrize(
    ("scores", "right", "k", "expected"),
    [
        ([3, 2, 1, 0], [3, 2, 1, 0], 2, 1.0),
        ([30, 20, 1, 0], [3, 2, 1, 0], 2, 1.0),
        ([0, 1, 2, 3], [3, 2, 1, 0], 2, 0.0),
        ([3, 0, 2, 1], [3, 2, 1, 0], 2, 0.5),
        # either of two that are equally good
        ([3, 0, 2, 1], [3, 2, 2, 0], 2, 1.0),
        ([0, 0, 2, 2], [3, 2, 2, 2], 2, 0.5),
        # the kernel's own ties may fall wrong
        ([5, 5, 5, 5], [3, 2, 1, 0], 2, 0.0),
        ([5, 5, 5, 0], [3, 2, 1, 0], 2, 0.5),
        ([5, 4, 4, 0], [3, 2, 2, 0], 2, 1.0),
        # rows with fewer entries than k
        ([3, 2, -INF, -INF], [3, 2, -INF, -INF], 3, 1.0),
        ([3, -INF, 2, -INF], [3, 2, -INF, -INF], 3, 0.5),
        ([-INF] * 4, [-INF] * 4, 3, 1.0),
        ([float("nan"), 2, 1, 0], [3, 2, 1, 0], 1, 0.0),
    ],
)
def test_share_of_the_right_entries(scores, right, k, expected):
    assert share(scores, right, k) == expected


def test_scores_that_the_tolerance_does_not_tell_apart_may_be_exchanged():
    assert share([3, 1, 2, 0], [3, 2.00, 1.99, 0], 2) == 0.5
    assert share([3, 1, 2, 0], [3, 2.00, 1.99, 0], 2, room=0.02) == 1.0


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [([0, 1], 1.0), ([1, 0], 1.0), ([0, 0], 0.5), ([0, -1], 0.5), ([0, 9], 0.5), ([2, 3], 0.0)],
)
def test_indices_that_a_kernel_chose(chosen, expected):
    right = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    assert float(chosen_overlap(torch.tensor([chosen]), right, 2, torch.zeros(1))[0]) == expected


@QUICK
@given(st.data())
def test_it_is_what_the_worst_choice_among_the_kernels_ties_has(data):
    """Any small rows with many ties, against every choice that there is."""
    length, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    numbers = st.lists(st.sampled_from([-INF, 0, 1, 2, 3]), min_size=length, max_size=length)
    scores, right = data.draw(numbers), data.draw(numbers)
    room = data.draw(st.sampled_from([0, 1]))
    count = min(k, sum(score > -INF for score in right))
    assert share(scores, right, k, room) == (worst(scores, right, count, room) if count else 1)


def worst(scores, right, count, room):
    """By trying: entries of -inf are never chosen, and better ones before worse."""
    last = sorted(right)[-count]
    best = {i for i, score in enumerate(right) if score > last + room}
    equal = {i for i, score in enumerate(right) if abs(score - last) <= room} - {
        i for i, score in enumerate(right) if score == -INF
    }
    order = sorted((i for i, score in enumerate(scores) if score > -INF), key=lambda i: -scores[i])
    fill = min(count, len(order))
    found = []
    for chosen in itertools.combinations(order, fill):
        rest = [scores[i] for i in order if i not in chosen]
        if fill and rest and min(scores[i] for i in chosen) < max(rest):
            continue
        picked = set(chosen)
        found.append(len(picked & best) + min(len(picked & equal), count - len(best)))
    return min(found) / count


def scored(case):
    return {"scores": case.randn(case.batch, case.longest), "lengths": case.counts()}


def pick(scores, lengths, reverse=False):
    past = torch.arange(scores.shape[1]) >= lengths[:, None]
    scores = scores.masked_fill(past, -torch.inf)
    best = scores.topk(16, dim=1, largest=not reverse)
    return {
        "picked": best.indices.masked_fill(best.values == -torch.inf, -1),
        "scores": scores,
    }


def test_a_kernels_choice_is_judged_by_the_references_scores():
    some = cases(scored, batches=[1, 8], lengths=[40])
    asked = {"top_k": 16, "chosen": {"picked": "scores"}}
    assert compare(pick, pick, some, **asked).right

    def shuffled(scores, lengths):
        found = pick(scores, lengths)
        return found | {"picked": found["picked"].flip(1)}

    assert compare(shuffled, pick, some, **asked).right

    def worst(scores, lengths):
        return pick(scores, lengths) | {"picked": pick(-scores, lengths)["picked"]}

    report = compare(worst, pick, some, **asked)
    assert len(report.wrong) == len(some)
    assert "'picked' row " in str(report)
    assert " of the top 16 are right, 1 are needed" in str(report)
