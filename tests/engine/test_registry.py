import inspect
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kvlint.rules
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
        RegistryError, match=r"^kvlint\.rules\.a:1: KV101 is the code of rules\.a:1, too$"
    ):
        collect([module("rules.a", "KV101"), module("kvlint.rules.a", "KV101")])


@pytest.mark.parametrize(
    ("codes", "message"), [((), "holds no rule"), (("KV101", "KV102"), "a second rule")]
)
def test_a_rule_file_holds_one_rule(codes, message):
    with pytest.raises(RegistryError, match=rf"^rules\.a:1: {message}: "):
        collect([module("rules.a", *codes)])


CODELESS = """from kvlint.rule import Rule

class Codeless(Rule):
    def check(self, program):
        yield from ()
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef f(:\n", "2: invalid syntax"),
        ("x = 1\n\ny = z\n", "3: NameError: name 'z' is not defined"),
        ("import kvlint.nowhere\n", "1: ModuleNotFoundError: No module named 'kvlint.nowhere'"),
        ("x = 1\n", "1: holds no rule: no class derived from Rule that has a `check`"),
        (CODELESS, "3: Codeless has no code"),
        (CODELESS + '    code = "KV101"\n', "3: KV101 is the code of {first}, too"),
    ],
    ids=["syntax", "name", "import", "no rule", "no code", "code taken"],
)
def test_a_broken_rule_file_is_one_line_with_its_place(tmp_path, monkeypatch, text, message):
    first = all_rules()[0]
    written = Path(inspect.getfile(type(first))).resolve()
    line = inspect.getsourcelines(type(first))[1]
    (tmp_path / "zz_broken.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kvlint.rules, "__path__", [*kvlint.rules.__path__, str(tmp_path)])
    all_rules.cache_clear()
    try:
        with pytest.raises(RegistryError) as error:
            all_rules()
    finally:
        all_rules.cache_clear()
        sys.modules.pop("kvlint.rules.zz_broken", None)
    expected = message.format(first=f"{os.path.relpath(written)}:{line}")
    assert str(error.value) == f"zz_broken.py:{expected}"


def test_what_a_rule_file_imports_from_another_is_not_its_rule():
    one, two = module("rules.a", "KV101"), module("rules.b", "KV102")
    two.RuleKV101 = one.RuleKV101
    assert len(collect([one, two])) == 2


def test_each_rule_is_named_after_its_file():
    for found in all_rules():
        assert type(found).__module__ == f"kvlint.rules.{found.name.replace('-', '_')}"
