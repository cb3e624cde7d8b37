"""What is missing of what is required: known by name, by state, and by what was imported."""

from types import ModuleType

import pytest

from kvlint.runtime_checks.requiring import check_names, missing, never_met
from kvlint.runtime_checks.settings import SettingsError

POOL = "engine.Pool.get_infos"
OTHER = "engine.Other.get_infos"


@pytest.fixture
def module():
    """A module with the class `Pool` of its own, and one that it has from elsewhere."""
    made = ModuleType("engine.pools")
    made.Pool = type("Pool", (), {"__module__": made.__name__})
    made.Other = type("Other", (), {"__module__": "engine.others"})
    return made


def test_what_is_installed_is_not_missing(module):
    assert missing((POOL,), {POOL: "installed"}, [module]) == []
    assert never_met((POOL,), {POOL: "installed"}) == []


def test_a_hook_whose_class_was_met_without_it_is_missing(module):
    assert missing((POOL,), {}, [module]) == [POOL]


def test_a_hook_whose_class_was_not_met_may_come(module):
    assert missing((OTHER,), {POOL: "installed"}, [module]) == []
    assert never_met((OTHER, POOL), {POOL: "installed"}) == [OTHER]


def test_what_could_not_be_put_is_missing_wherever_its_class_is():
    states = {POOL: "missing: this version has none"}
    assert missing((POOL,), states, []) == missing(("all",), states, []) == [POOL]
    assert never_met((POOL,), states) == never_met(("all",), states) == []


def test_of_all_there_must_be_one():
    assert never_met(("all",), {}) == ["all"]
    assert missing(("all",), {}, []) == []


def test_hooks_in_triton_can_be_required_and_are_not_all_that_there_is():
    launches = "triton.CompiledKernel.launch_metadata"
    check_names([launches], nixl=True)
    with pytest.raises(SettingsError, match="where only KVLINT_CAPTURE is set"):
        check_names([launches], nixl=False)
    with pytest.raises(SettingsError, match=f"did you mean {launches}"):
        check_names(["triton.CompiledKernel.launch_metadat"], nixl=True)
    assert never_met(("all",), {launches: "installed"}) == ["all"]
    assert never_met((launches,), {}) == [launches]
