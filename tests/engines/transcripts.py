"""Commands that a document shows together with what they print.

They stand in fenced blocks of `console`, each after a prompt, its output below: after `$`, what
is run beside the document; after `(sglang 0.5.21) $`, what is run where that release is installed.
A line that ends in a backslash goes on in the next.
Of standard error only what kvlint says is shown, since engines and transports say much.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^(?:\((\S+ \S+)\) )?\$ (.*(?:(?<=\\)\n.*)*)$", re.MULTILINE)
# What differs from run to run: processes, names of runs, times.
_PASSING = re.compile(r"(?<=process )\d+|(?<=pid=)\d+|\b[0-9a-f]{8}-\d+\b|\d{4}-\d\d-\d\dT[\d:.]+Z")


@dataclass(frozen=True)
class Command:
    """`within` is the release that it needs ("sglang 0.5.21"), None for kvlint alone."""

    line: str
    within: str | None
    prints: str

    @property
    def lasting(self) -> str:
        return lasting(self.prints)


def lasting(printed: str) -> str:
    """What another run prints just as well."""
    return _PASSING.sub("*", printed)


def commands(text: str) -> list[Command]:
    """All that the document shows, in order."""
    return [
        Command(prompt[2], prompt[1], block[prompt.end() + 1 : end])
        for block in _BLOCK.findall(text)
        for prompt, end in _parts(block)
    ]


def rewritten(text: str, run: Callable[[Command], str]) -> str:
    """The document with what `run` says that each command prints. What would print the same but
    for process numbers and times stays."""

    def block(found: re.Match[str]) -> str:
        parts = []
        for prompt, end in _parts(found[0]):
            shown = found[0][prompt.end() + 1 : end]
            printed = run(Command(prompt[2], prompt[1], shown))
            parts += [prompt[0], "\n", shown if lasting(printed) == lasting(shown) else printed]
        return "".join(parts)

    return _BLOCK.sub(block, text)


def _parts(block: str) -> list[tuple[re.Match[str], int]]:
    """Each prompt, and where what is printed after it ends."""
    prompts = list(_PROMPT.finditer(block))
    ends = [prompt.start() for prompt in prompts[1:]] + [len(block)]
    return list(zip(prompts, ends, strict=True))
