"""Comments addressed to kvlint, `# kvlint: ignore[KV103] reason`, read out of a file's text.

Which statement a comment speaks of is decided here, by Python's own tokens; what it silences,
in `kvlint.engine.suppressions`. A statement is a logical line: a call with all its lines, the
header of a function, class or block (decorators belong to it), never the block under it.
"""

import io
import re
import tokenize
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from kvlint.findings import Directive, Span

MARK = "kvlint:"  # in any case, as the words after it

# One comment can hold several, ours behind one for another tool.
_ADDRESSED = re.compile(r"(?:^|(?<=\s))#\s*kvlint:", re.IGNORECASE)
_NEXT = re.compile(r"\s#\s")
_IGNORE = re.compile(r"\s*(ignore(?:-file)?)\b\s*(?:\[([^\[\]]*)\])?", re.IGNORECASE)
_CODE = re.compile(r"[^\s,]+")
_LIKE_A_CODE = re.compile(r"\bKV\d+\b", re.IGNORECASE)


def directives(path: str, text: str) -> list[Directive]:
    """What the comments of `text` tell kvlint, malformed ones included, in order.

    Strings that look like such a comment are none. A text that cannot be told apart into
    tokens tells nothing.
    """
    if MARK not in text.lower():
        return []
    try:
        return list(_found(path, text))
    except (tokenize.TokenError, SyntaxError):  # Python's parser has said it already, or will
        return []


def _found(path: str, text: str) -> Iterator[Directive]:
    # Lines and columns as the analysis counts them: any line end is one.
    text = io.StringIO(text, newline=None).read()
    written = text.split("\n")
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    statements = list(_statements(tokens))
    last = tokens[-1].end[0]
    for token in tokens:
        if token.type != tokenize.COMMENT:
            continue
        alone = not written[token.start[0] - 1][: token.start[1]].strip()
        begins = [hit.start() for hit in _ADDRESSED.finditer(token.string)]
        for start, end in pairwise([*begins, len(token.string)]):
            other = _NEXT.search(token.string, start + 1, end)
            part = token.string[start : other.start() if other else end].rstrip()
            line, column = token.start[0], token.start[1] + start + 1
            lines = _spoken_of(statements, line, alone)
            yield _directive(part, path, line, column, alone, lines, last)


def _directive(
    part: str, path: str, line: int, column: int, alone: bool, lines: tuple[int, int], last: int
) -> Directive:
    """`part` is one comment as it is written, from its `#` on."""

    def span(start: int, end: int) -> Span:
        return Span(path, line, column + start, line, column + end)

    whole = span(0, len(part))

    def malformed(why: str) -> Directive:
        return Directive(whole, lines, error=why)

    mark = _ADDRESSED.match(part)
    body = mark.end() if mark else 0
    read = _IGNORE.match(part, body)
    if read is None:
        return malformed(f"not understood; write `{_meant(part, body)}`")
    kind, codes = read[1].lower(), read[2]
    if codes is None:
        unclosed = part[read.end() :].lstrip().startswith("[")
        what = "its bracket is not closed" if unclosed else "it names no rule in brackets"
        return malformed(f"{what}; write `{_meant(part, body, kind)}`")
    written = [
        (hit.group(), span(read.start(2) + hit.start(), read.start(2) + hit.end()))
        for hit in _CODE.finditer(codes)
    ]
    if not written:
        return malformed(f"it names no rule in brackets; write `{_meant(part, body, kind)}`")
    reason = part[read.end() :].strip(" \t:;,-\N{EN DASH}\N{EM DASH}")
    if not any(map(str.isalnum, reason)):
        return malformed(f"it gives no reason; write `# kvlint: {kind}[{codes}] reason`")
    if kind == "ignore":
        return Directive(whole, lines, tuple(written), reason)
    if not alone:
        return malformed(f"`{kind}` needs a line of its own, or use `ignore` for this statement")
    return Directive(whole, (1, last), tuple(written), reason, whole_file=True)


def _meant(part: str, body: int, kind: str = "ignore") -> str:
    """How a comment is written, with the codes that this one holds from `body` on."""
    codes = dict.fromkeys(hit.group().upper() for hit in _LIKE_A_CODE.finditer(part, body))
    return f"# kvlint: {kind}[{', '.join(codes) or 'KV103'}] reason"


def _spoken_of(statements: list[tuple[int, int]], line: int, alone: bool) -> tuple[int, int]:
    """Lines of the statement that a comment in `line` stands in, or else, where it stands alone,
    of the next one."""
    at = bisect_left(statements, line, key=lambda statement: statement[1])
    if at < len(statements):
        first, last = statements[at]
        if alone or first <= line:
            return first, last
    return line, line


def _statements(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, int]]:
    """First and last line of each logical line, decorators with what they decorate."""
    outside = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
    first: int | None = None
    fresh, decorator = True, False
    for token in tokens:
        if token.type in outside:
            continue
        if fresh:
            first = token.start[0] if first is None else first
            fresh, decorator = False, token.string == "@"
        if token.type == tokenize.NEWLINE:
            fresh = True
            if not decorator and first is not None:
                yield first, token.start[0]
                first = None
