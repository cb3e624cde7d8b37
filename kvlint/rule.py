"""What every rule is: one class in one file of `kvlint.rules`, documented by its docstring.

A new rule is a new file; nothing else is edited. The README shows a complete one. This module,
and what a rule imports when it is loaded, stay clear of the parser: `kvlint rules` and
`kvlint explain` only read documents.
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvlint.findings import Claim, Confidence, Severity

if TYPE_CHECKING:
    from kvlint.analysis.link import Program

# The headings of a rule's docstring, each written as `## Heading`: all of them, in this order.
# Each has text below it; under "Example" and "Use instead", which stand for BAD and GOOD, it may
# be missing. "References" holds a link that starts with https://.
HEADINGS = (
    "What it assumes",
    "Why it breaks",
    "Example",
    "Use instead",
    "How kvlint decides",
    "References",
)

_HEADING = re.compile(r"^## (.+?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Documentation:
    """A rule's docstring, taken apart: its first paragraph and its sections by heading."""

    summary: str
    sections: Mapping[str, str]


def parse_documentation(docstring: str) -> Documentation:
    """Split a docstring at its `## ` headings; their order is kept.

    Raises ValueError when a heading occurs twice.
    """
    opening, *rest = _HEADING.split(inspect.cleandoc(docstring))
    sections: dict[str, str] = {}
    for title, text in zip(rest[::2], rest[1::2], strict=True):
        if title in sections:
            raise ValueError(f"the heading {title!r} occurs twice")
        sections[title] = text.strip()
    summary = " ".join(opening.strip().split("\n\n")[0].split())
    return Documentation(summary=summary, sections=sections)


class Rule(ABC):
    """Base of all rules.

    `BAD` and `GOOD` are small modules that tests run: the rule reports the first, by default,
    and no rule reports the second. `BAD` holds one of the words of cache memory without which
    no file is read (`triggers` in `kvlint/analysis/vocabulary/nouns.toml`), `data_ptr` or
    `num_slots` for example, or one of the rule's own `triggers`. `preview` rules are off until
    selected by their full code or name.
    """

    # KV9xx is never used by the project: these codes are free for rules of one's own.
    code: ClassVar[str]
    severity: ClassVar[Severity]
    confidence: ClassVar[Confidence] = Confidence.HIGH
    since: ClassVar[str]
    preview: ClassVar[bool] = False
    triggers: ClassVar[frozenset[str]] = frozenset()
    BAD: ClassVar[str]
    GOOD: ClassVar[str]

    # From the file's name: rules/first_region_stands_for_all.py is first-region-stands-for-all.
    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__module__.rpartition(".")[2].replace("_", "-")

    @abstractmethod
    def check(self, program: "Program") -> Iterator[Claim]:
        """Yield a claim for every place that makes this rule's assumption.

        A rule asks the program and never sees a syntax tree; what it yields is decided
        elsewhere, so guards are handed over in the claim, not judged here. It is asked once for
        each file (`program.starts()` names it), and only claims at places in that file are heard.
        """

    @classmethod
    def documentation(cls) -> Documentation:
        return parse_documentation(cls.__doc__ or "")
