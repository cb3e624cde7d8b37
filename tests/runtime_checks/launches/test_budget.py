"""A share of the time, and no more."""

from kvlint.runtime_checks.launches.budget import Budget


def test_what_was_spent_is_waited_for():
    now = [100.0]
    budget = Budget(0.01, lambda: now[0])
    assert budget.allows()
    budget.spend(0.02)
    now[0] += 1.9
    assert not budget.allows()
    now[0] += 0.2
    assert budget.allows()
