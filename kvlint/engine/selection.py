"""Which rules run: codes and prefixes of codes, as Ruff's `--select` and `--ignore` take them."""

import difflib
from collections.abc import Sequence

from kvlint.engine.errors import UsageError
from kvlint.rule import Rule

EVERYTHING = "ALL"


def select(rules: Sequence[Rule], chosen: Sequence[str], ignored: Sequence[str]) -> list[Rule]:
    """The rules that the selectors leave, in order.

    A selector is a code or the beginning of one, or ALL; no `chosen` means ALL. Where both
    lists match a rule, the longer selector wins, and `ignored` wins a draw. A preview rule runs
    only when its full code is chosen. Raises UsageError for a selector that matches no rule.
    """
    for selector in (*chosen, *ignored):
        if not any(_matches(selector, rule) for rule in rules):
            raise UsageError(_unknown(selector, rules))
    return [rule for rule in rules if _runs(rule, chosen or [EVERYTHING], ignored)]


def find(rules: Sequence[Rule], wanted: str) -> Rule:
    """The rule with this code or name, in any case. Raises UsageError."""
    for rule in rules:
        if wanted.lower() in (rule.code.lower(), rule.name):
            return rule
    raise UsageError(_unknown(wanted, rules))


def _runs(rule: Rule, chosen: Sequence[str], ignored: Sequence[str]) -> bool:
    if rule.preview and rule.code not in chosen:
        return False
    return _weight(rule, chosen) > _weight(rule, ignored)


def _weight(rule: Rule, selectors: Sequence[str]) -> int:
    """How closely the best selector describes the rule; -1: not at all."""
    matching = (s for s in selectors if _matches(s, rule))
    return max((0 if s == EVERYTHING else len(s) for s in matching), default=-1)


def _matches(selector: str, rule: Rule) -> bool:
    return selector == EVERYTHING or (selector != "" and rule.code.startswith(selector))


def _unknown(wanted: str, rules: Sequence[Rule]) -> str:
    by_spelling = {rule.code: rule.code for rule in rules} | {
        rule.name: rule.code for rule in rules
    }
    close = difflib.get_close_matches(wanted.upper(), [rule.code for rule in rules], n=1)
    close += difflib.get_close_matches(wanted.lower(), [rule.name for rule in rules], n=1)
    if close:
        return f"unknown rule {wanted!r}; did you mean {by_spelling[close[0]]}?"
    return f"unknown rule {wanted!r}; `kvlint rules` lists them"
