from types import ModuleType

import pytest

from kvlint.engine.registry import RegistryError, all_rules, collect
from tests.samples import rule


def module(name, *codes):
    made = ModuleType(name)
    for code in codes:
        sample = type(rule(lambda program: iter(()), code))
        sample.__module__ = name
        setattr(made, f"Rule{code}", sample)
    return made


def test_rules_come_in_the_order_of_their_codes():
    found = collect([module("rules.z", "KV102"), module("rules.a", "KV201"), module("m", "KV101")])
    assert [r.code for r in found] == ["KV101", "KV102", "KV201"]


def test_two_rules_with_one_code_are_refused_by_name():
    with pytest.raises(
        RegistryError, match=r"KV101 is claimed by both rules\.a and kvlint\.rules\.a"
    ):
        collect([module("rules.a", "KV101"), module("kvlint.rules.a", "KV101")])


@pytest.mark.parametrize("codes", [(), ("KV101", "KV102")])
def test_a_rule_file_holds_one_rule(codes):
    with pytest.raises(
        RegistryError, match=rf"rules\.a must define one rule, it defines {len(codes)}"
    ):
        collect([module("rules.a", *codes)])


def test_what_a_rule_file_imports_from_another_is_not_its_rule():
    one, two = module("rules.a", "KV101"), module("rules.b", "KV102")
    two.RuleKV101 = one.RuleKV101
    assert len(collect([one, two])) == 2


def test_each_rule_is_named_after_its_file():
    for found in all_rules():
        assert type(found).__module__ == f"kvlint.rules.{found.name.replace('-', '_')}"
