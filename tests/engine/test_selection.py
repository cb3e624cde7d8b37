import pytest

from kvlint.engine.errors import UsageError
from kvlint.engine.selection import find, select
from tests.samples import rule

RULES = [rule(lambda program: iter(()), code) for code in ("KV101", "KV102", "KV201")]


def codes(chosen=("ALL",), ignored=()):
    return [chosen_rule.code for chosen_rule in select(RULES, chosen, ignored)]


@pytest.mark.parametrize(
    ("chosen", "ignored", "left"),
    [
        (["ALL"], [], ["KV101", "KV102", "KV201"]),
        (["all"], [], ["KV101", "KV102", "KV201"]),
        (["KV1"], [], ["KV101", "KV102"]),
        (["KV1"], ["KV102"], ["KV101"]),
        (["KV101"], ["KV1"], ["KV101"]),
        (["ALL"], ["KV1"], ["KV201"]),
        (["kv101"], ["KV1"], ["KV101"]),
        (["KV102", "KV2"], [], ["KV102", "KV201"]),
    ],
)
def test_the_longer_selector_wins(chosen, ignored, left):
    assert codes(chosen, ignored) == left


@pytest.mark.parametrize("selector", ["KV9", "kv3", "KV1011", "first"])
def test_a_selector_that_matches_nothing_is_refused(selector):
    with pytest.raises(UsageError, match=f"unknown rule '{selector}'"):
        codes([selector])
    with pytest.raises(UsageError, match=f"unknown rule '{selector}'"):
        codes(ignored=[selector])


@pytest.mark.parametrize(
    ("chosen", "ignored"),
    [([], []), (["ALL"], ["ALL"]), (["KV1"], ["KV1"]), (["KV101"], ["kv101"])],
)
def test_selectors_that_leave_nothing_are_refused(chosen, ignored):
    with pytest.raises(UsageError, match="no rule selected"):
        codes(chosen, ignored)


def test_a_name_selects_as_the_full_code_does():
    one, two = RULES[0], rule(lambda program: iter(()), "KV103")
    type(two).name, type(two).preview = "constant-stride-index", True
    assert select([one, two], ["Constant-Stride-Index"], ["KV1"]) == [two]
    assert select([one, two], ["ALL"], ["constant-stride-index"]) == [one]


def test_a_near_miss_gets_a_suggestion():
    with pytest.raises(UsageError, match=r"did you mean KV101\?"):
        codes(["KV111"])


def test_a_preview_rule_runs_only_by_its_full_code():
    preview = rule(lambda program: iter(()), "KV301")
    type(preview).preview = True
    rules = [*RULES, preview]
    assert preview not in select(rules, ["ALL"], [])
    with pytest.raises(UsageError, match="no rule selected"):
        select(rules, ["KV3"], [])
    assert select(rules, ["KV301"], []) == [preview]


def test_a_rule_is_found_by_code_and_by_name_in_any_case():
    assert find(RULES, "kv102") is RULES[1]
    assert find(RULES, "Sample-Rule") is RULES[0]
    with pytest.raises(UsageError, match=r"did you mean KV201\?"):
        find(RULES, "KV211")
