"""Which files are worth reading: the others cost a search and no more."""

from collections.abc import Callable, Sequence

from kvlint.analysis.vocabulary import triggers
from kvlint.rule import Rule


def spoken(text: str) -> int:
    """How many of the vocabulary's triggers a text holds."""
    return sum(word in text for word in triggers())


def speaker(rules: Sequence[Rule]) -> Callable[[bytes], bool]:
    """Whether a file's content speaks of what the vocabulary or one of the rules is about."""
    words = triggers().union(*(rule.triggers for rule in rules))
    # One that holds another says nothing besides it.
    shortest = {word for word in words if not any(o != word and o in word for o in words)}
    wanted = sorted(word.encode() for word in shortest)

    def speaks(content: bytes) -> bool:
        return any(word in content for word in wanted)

    return speaks
