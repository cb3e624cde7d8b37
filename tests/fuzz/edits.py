"""Edits of real files at the level of tokens, lines and bytes, drawn from a seeded generator.

Most keep a file parsable, so that what is judged is changed, not only what is refused.
"""

import re
from collections.abc import Callable, Sequence
from random import Random

TOKENS = re.compile(r"\w+|[ \t]+|\n|[^\w\s]|\s")
NAMES = re.compile(r"[A-Za-z_]\w*")
OPERATORS = ["+", "-", "*", "//", "/", "%", "**", "@", "<<", ">>", "==", "<", " in ", " and "]
ODD = ["\x0c", "\t", "\0", "é", "名", "\u2028", "\ufeff", "𝟘", "\\\n", "#", '"""', "'", "f'{", "}"]
CONSTANTS = ["0", "-1", "1", "None", "...", "1 << 70", "1e400", "''", "[]", "{}", "()", "True"]
WRAPS = ["({})", "[{}]", "-{}", "not {}", "(lambda: {})()", "{}[0]", "min({})", "len({})", "{}.x",
         "[{} for _ in range(3)]", "({} if x else {})", "next(iter({}))", "f'{{{}}}'", "(y := {})",
         "sum({})", "zip({}, {})", "*{}", "await {}", "(yield {})"]  # fmt: skip

Edit = Callable[[Random, str, Sequence[str]], str]


def edited(random: Random, text: str, pool: Sequence[str]) -> bytes:
    """The file after one to six edits; `pool` has the texts that others are spliced from."""
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        edit = random.choice(_GENTLE if random.random() < 0.85 else _ROUGH)
        text = edit(random, text, pool)
    return _encoded(random, text)


def _tokens(random: Random, text: str) -> tuple[list[str], int]:
    """The tokens, and the number of one that is no white space."""
    tokens = TOKENS.findall(text) or ["x"]
    solid = [n for n, token in enumerate(tokens) if not token.isspace()] or [0]
    return tokens, random.choice(solid)


def _delete_token(random: Random, text: str, pool: Sequence[str]) -> str:
    tokens, at = _tokens(random, text)
    del tokens[at : at + random.choice((1, 1, 1, 4))]
    return "".join(tokens)


def _double_token(random: Random, text: str, pool: Sequence[str]) -> str:
    tokens, at = _tokens(random, text)
    tokens[at] *= random.choice((2, 2, 3, 150))
    return "".join(tokens)


def _swap_tokens(random: Random, text: str, pool: Sequence[str]) -> str:
    tokens, at = _tokens(random, text)
    _, other = _tokens(random, text)
    tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)


def _odd_token(random: Random, text: str, pool: Sequence[str]) -> str:
    tokens, at = _tokens(random, text)
    tokens[at] = random.choice((random.choice(ODD), random.choice(OPERATORS)))
    return "".join(tokens)


def _other_name(random: Random, text: str, pool: Sequence[str]) -> str:
    """One name for another, here or everywhere: other values meet, helpers call themselves."""
    names = NAMES.findall(text)
    if not names:
        return text
    fresh = random.choice(names if random.random() < 0.8 else NAMES.findall(random.choice(pool)))
    if random.random() < 0.2:
        return re.sub(rf"\b{random.choice(names)}\b", fresh, text)
    places = list(NAMES.finditer(text))
    at = random.choice(places)
    return f"{text[: at.start()]}{fresh}{text[at.end() :]}"


def _other_constant(random: Random, text: str, pool: Sequence[str]) -> str:
    places = list(re.finditer(r"\b(?:\d+|None|True|False)\b", text))
    if not places:
        return text
    at = random.choice(places)
    return f"{text[: at.start()]}{random.choice(CONSTANTS)}{text[at.end() :]}"


def _other_operator(random: Random, text: str, pool: Sequence[str]) -> str:
    places = list(re.finditer(r"(?<=\w) (?:[-+*/%]|//|==|<|>|<=|>=|and|or) (?=\w)", text))
    if not places:
        return text
    at = random.choice(places)
    return f"{text[: at.start()]} {random.choice(OPERATORS)} {text[at.end() :]}"


def _wrapped(random: Random, text: str, pool: Sequence[str]) -> str:
    """An access path as part of another expression, now and then many times over."""
    places = list(re.finditer(r"(?<== )[\w.]+(?:\[\w*\])?|(?<=\()[\w.]+(?=[,)])", text))
    if not places:
        return text
    at = random.choice(places)
    inner = at.group()
    for _ in range(random.choice((1, 1, 1, 2, 5, 20, 150))):
        if len(inner) < 5000:
            inner = random.choice(WRAPS).replace("{}", inner)
    return f"{text[: at.start()]}{inner}{text[at.end() :]}"


def _lines(random: Random, text: str) -> tuple[list[str], slice]:
    lines = text.split("\n")
    first = random.randrange(len(lines))
    return lines, slice(first, first + random.choice((1, 1, 2, 5, 20)))


def _double_lines(random: Random, text: str, pool: Sequence[str]) -> str:
    lines, some = _lines(random, text)
    lines[some] = lines[some] * random.choice((2, 2, 3, 40, 400))
    return "\n".join(lines)


def _delete_lines(random: Random, text: str, pool: Sequence[str]) -> str:
    lines, some = _lines(random, text)
    del lines[some]
    return "\n".join(lines)


def _move_line(random: Random, text: str, pool: Sequence[str]) -> str:
    """To where another line of the same indentation stands."""
    lines, _ = _lines(random, text)
    at = random.randrange(len(lines))
    indent = len(lines[at]) - len(lines[at].lstrip())
    alike = [n for n, line in enumerate(lines) if len(line) - len(line.lstrip()) == indent]
    lines.insert(random.choice(alike), lines.pop(at))
    return "\n".join(lines)


def _indent(random: Random, text: str, pool: Sequence[str]) -> str:
    lines, some = _lines(random, text)
    by = random.choice(("    ", "\t", " "))
    for number in range(*some.indices(len(lines))):
        line = lines[number]
        lines[number] = line.removeprefix(by) if line.startswith(by) else by + line
    return "\n".join(lines)


def _in_a_block(random: Random, text: str, pool: Sequence[str]) -> str:
    lines, some = _lines(random, text)
    head = lines[some.start]
    indent = head[: len(head) - len(head.lstrip())]
    opening = ["if x:", "for x in y:", "while True:", "try:", "with x as y:", "def x(y):",
               "class X(X):", "async def x():", "match x:", "else:", "@x"]  # fmt: skip
    lines[some] = [
        f"{indent}{random.choice(opening)}",
        *(f"    {line}" for line in lines[some]),
    ]
    return "\n".join(lines)


def _splice(random: Random, text: str, pool: Sequence[str]) -> str:
    lines, some = _lines(random, text)
    others, taken = _lines(random, random.choice(pool))
    lines[some] = others[taken]
    return "\n".join(lines)


def _both(random: Random, text: str, pool: Sequence[str]) -> str:
    """Two files in one: names meet that never met."""
    return f"{text}\n{random.choice(pool)}"


def _cut(random: Random, text: str, pool: Sequence[str]) -> str:
    return text[: random.randrange(len(text) + 1)]


def _insert(random: Random, text: str, pool: Sequence[str]) -> str:
    at = random.randrange(len(text) + 1)
    return f"{text[:at]}{random.choice(ODD) * random.choice((1, 1, 3, 120))}{text[at:]}"


_GENTLE: list[Edit] = [
    _other_name, _other_name, _other_name, _other_constant, _other_operator, _wrapped, _wrapped,
    _double_lines, _delete_lines, _move_line, _move_line, _in_a_block,
]  # fmt: skip
_ROUGH: list[Edit] = [
    _delete_token, _double_token, _swap_tokens, _odd_token, _indent, _splice, _both, _cut, _insert,
]  # fmt: skip


def _encoded(random: Random, text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    if random.random() < 0.9:
        return data
    match random.randrange(8):
        case 0:
            return b"# coding: latin-1\n" + text.encode("latin-1", "replace")
        case 1:
            return text.encode("utf-16", "surrogatepass")
        case 2:
            return b"\xef\xbb\xbf" + data
        case 3:
            name = random.choice(("ascii", "nonsense", "utf-7", "hex", "cp1252", "utf-8-sig"))
            return f"# -*- coding: {name} -*-\n".encode() + data
        case 4:
            return data.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\r")))
        case 5:
            at = random.randrange(len(data) + 1)
            return data[:at] + random.randbytes(random.choice((1, 4, 100))) + data[at:]
        case 6:
            return data[: random.randrange(len(data) + 1)]
        case _:
            return data.rstrip(b"\n")
