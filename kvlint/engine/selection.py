"""Which rules run: codes, prefixes of codes and names, as `--select` and `--ignore` take them."""

from collections.abc import Sequence

from kvlint.engine.errors import UsageError
from kvlint.rule import Rule

EVERYTHING = "ALL"

_NOT_AT_ALL = -1


def select(rules: Sequence[Rule], chosen: Sequence[str], ignored: Sequence[str]) -> list[Rule]:
    """The rules that the selectors leave, in order.

    A selector is a code or the beginning of one, a name, which stands for the full code, or
    ALL, each in any case. Where both lists match a rule, the longer selector wins, and `ignored`
    wins a draw. A preview rule runs only when its full code is chosen. Raises UsageError for a
    selector that matches no rule, and when no rule is left.
    """
    for selector in (*chosen, *ignored):
        matching(rules, selector)
    left = running(rules, chosen, ignored)
    if not left:
        raise UsageError("no rule selected; `kvlint rules` lists them")
    return left


def running(rules: Sequence[Rule], chosen: Sequence[str], ignored: Sequence[str]) -> list[Rule]:
    """As `select`, for selectors that are known to match: none left is an answer, too."""
    return [rule for rule in rules if _runs(rule, chosen, ignored)]


def matching(rules: Sequence[Rule], selector: str) -> list[Rule]:
    """The rules that a selector means. Raises UsageError where there are none."""
    found = [rule for rule in rules if _closeness(selector, rule) != _NOT_AT_ALL]
    if not found:
        raise UsageError(_unknown(selector, rules))
    return found


def find(rules: Sequence[Rule], wanted: str) -> Rule:
    """The rule with this code or name, in full and in any case. Raises UsageError."""
    for rule in rules:
        if wanted.lower() in (rule.code.lower(), rule.name):
            return rule
    codes = [rule.code for rule in rules if wanted and rule.code.startswith(wanted.upper())]
    if codes:
        raise UsageError(f"{wanted!r} only begins {', '.join(codes)}: write the code in full")
    raise UsageError(_unknown(wanted, rules))


def _runs(rule: Rule, chosen: Sequence[str], ignored: Sequence[str]) -> bool:
    closest = _closest(rule, chosen)
    if rule.preview and closest < len(rule.code):
        return False
    return closest > _closest(rule, ignored)


def _closest(rule: Rule, selectors: Sequence[str]) -> int:
    return max((_closeness(selector, rule) for selector in selectors), default=_NOT_AT_ALL)


def _closeness(selector: str, rule: Rule) -> int:
    """How much of the rule's code the selector says."""
    wanted = selector.upper()
    if wanted == EVERYTHING:
        return 0
    if wanted == rule.name.upper():
        return len(rule.code)
    return len(wanted) if wanted and rule.code.startswith(wanted) else _NOT_AT_ALL


def _unknown(wanted: str, rules: Sequence[Rule]) -> str:
    import difflib  # for mistakes only

    by_spelling = {rule.code: rule.code for rule in rules} | {
        rule.name: rule.code for rule in rules
    }
    close = difflib.get_close_matches(wanted.upper(), [rule.code for rule in rules], n=1)
    close += difflib.get_close_matches(wanted.lower(), [rule.name for rule in rules], n=1)
    if close:
        return f"unknown rule {wanted!r}; did you mean {by_spelling[close[0]]}?"
    return f"unknown rule {wanted!r}; `kvlint rules` lists them"
