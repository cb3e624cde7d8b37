"""Numbers and names as people read them, in so many columns and no more."""

import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MOST_SPANS: Final = 5


def number(value: int) -> str:
    """`37,440`"""
    return f"{value:,}"


def count(value: int, one: str, many: str | None = None) -> str:
    """`1 slot`, `164 slots`"""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def size(value: int) -> str:
    """Bytes in three digits: `5.86 MiB`. Exact below 1,024 bytes and for whole units."""
    unit, part = 0, float(value)
    while part >= 1024 and unit + 1 < len(_UNITS):
        part /= 1024
        unit += 1
    if unit == 0:
        return count(value, "byte")
    if part == int(part):
        return f"{int(part)} {_UNITS[unit]}"
    return f"{part:.{2 if part < 10 else 1 if part < 100 else 0}f} {_UNITS[unit]}"


def spans(numbers: Sequence[int]) -> str:
    """Ascending numbers in few words: `0-20, 22`, `0-60 by 2`; the middle of many is left out."""
    parts = _runs(numbers)
    if len(parts) > _MOST_SPANS:
        parts = [*parts[: _MOST_SPANS - 1], "...", parts[-1]]
    return ", ".join(parts)


def _runs(numbers: Sequence[int]) -> list[str]:
    step = numbers[1] - numbers[0] if len(numbers) > 3 else 1
    if step > 1 and all(b - a == step for a, b in pairwise(numbers)):
        return [f"{numbers[0]}-{numbers[-1]} by {step}"]
    parts: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        if end > at + 1:
            parts.append(f"{numbers[at]}-{numbers[end]}")
        else:
            parts += [str(one) for one in numbers[at : end + 1]]
        at = end + 1
    return parts


def columns(text: str) -> int:
    """How wide a terminal shows it; Chinese, Japanese and Korean take two columns a character."""
    return sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, most: int, gap: str = "…") -> str:
    """The text in at most so many columns: beginning and end, for names differ at both."""
    if columns(text) <= most:
        return text
    room = most - columns(gap)
    if room < 2:
        return _head(text, most)
    head = _head(text, (room + 1) // 2)
    tail = _head(text[::-1], room - columns(head))[::-1]
    return head + gap + tail


def _head(text: str, most: int) -> str:
    taken, width = 0, 0
    for character in text:
        width += _columns_of(character)
        if width > most:
            break
        taken += 1
    return text[:taken]
