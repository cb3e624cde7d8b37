import pytest

from kvlint.analysis.vocabulary import apis, nouns, use
from kvlint.analysis.vocabulary.own import Own
from kvlint.engine.registry import all_rules
from kvlint.engine.triggers import speaker
from tests.samples import rule


@pytest.fixture(autouse=True)
def _own_names():
    yield
    use(Own())


def test_a_file_speaks_by_the_vocabulary():
    speaks = speaker(all_rules())
    assert speaks(b"x = pool.data_ptr()")
    assert not speaks(b"x = 1")
    for call in apis().transports.keys() - nouns().ambiguous:
        assert speaks(f"agent.{call}(x)".encode())


def test_a_project_adds_its_names_and_a_rule_its_words():
    assert not speaker(all_rules())(b"bs_per_pool = 1")
    use(Own(slots=("bs_per_pool",)))
    assert speaker(all_rules())(b"bs_per_pool = 1")
    one = rule(lambda program: iter(()))
    assert not speaker([one])(b"lease.seconds")
    type(one).triggers = frozenset({"lease"})
    assert speaker([one])(b"lease.seconds")


@pytest.mark.parametrize("rule_", all_rules(), ids=lambda rule_: rule_.code)
def test_what_a_rule_reports_is_in_a_file_that_speaks(rule_):
    assert speaker([rule_])(rule_.BAD.encode())
