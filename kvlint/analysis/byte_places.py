"""Where numbers of bytes of cache memory have widths as literals: which code is asked, and what
becomes of the answers."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from kvlint.analysis.bodies import Body, Where
from kvlint.analysis.given import given, only_number, operands
from kvlint.analysis.link import Program
from kvlint.analysis.ties import making, tie
from kvlint.analysis.told_bytes import Place, Told, is_elsewhere
from kvlint.analysis.vocabulary import apis
from kvlint.findings import Step

if TYPE_CHECKING:
    from kvlint.analysis.terms import Term

# What a definition holds that may have a width in it; each line is looked for together.
_LITERAL = re.compile(r"\*=? ?[1248]\b|<< ?[0-3]\b|\* ?\d\d|\d ?\* ?[a-z(]|(?:size|bytes)\w* = \d")
_BYTES = re.compile(
    r"bytes|itemsize|mem_get_info|cell_size|element_size|data_ptr|int8|_lens?\b"
    r"|// ?[\w.]+\)? ?\* ?\d"
)
NEAR = 300  # characters: a statement and those that it rests on
_CACHE = re.compile(r"kv|cache|page|slot|pool|mem|block_len|state|token")
_SEARCHES = (
    (_LITERAL, _BYTES, _CACHE),
    # Sizes that are worked out elsewhere meet addresses here.
    (re.compile(r"data_ptr\(\)"), re.compile(r" \* |numel\(\)| for ")),
    (re.compile(r"dtype[^\n]* else \d|get\([^()]*, \d\)"), _BYTES, _CACHE),
    (re.compile(r", \d{3,}[,)]"), re.compile(r"zeros|empty"), re.compile(r"int8|float8"), _CACHE),
)


def byte_places(program: Program) -> list[Place]:
    """Widths that stand as literals in the files that rules start from, each once."""
    if program.bytes_told is None:
        program.bytes_told = tuple(_byte_places(program))
    return [place for place in program.bytes_told if isinstance(place, Place)]


def _byte_places(program: Program) -> Iterator[Place]:
    seen: set[str] = set()
    found: dict[tuple[str, Term], Place] = {}
    for body in _candidates(program):
        key = body.definition.key
        if key in seen or is_elsewhere(body.definition.name):
            continue
        seen.add(key)
        for place in Told(program, body).all():
            at = (place.body.definition.key, place.width.term)
            if at not in found or (found[at].by_name and not place.by_name):
                found[at] = place
    for place in found.values():
        if any(_holds(other, place) for other in found.values()):
            continue
        way = given(program, place.body, place.width.term, place.mark)
        made = making(program, place.body, place.width, place.of)
        holds = f"the tensor {made[0].says} ({made[0].span})" if made and not made[1] else None
        yield replace(place, tie=_tie(program, place), way=way, holds=holds)


def _candidates(program: Program) -> Iterator[Body]:
    """Bodies that hold what one of the searches is for, all of it near one place: most files
    that hold it somewhere need no outline then."""
    for path in program.starts():
        text = program.texts[path]
        for first, *others in (*_SEARCHES, (_transports(), _LITERAL)):
            if any(p.search(text) is None for p in others):
                continue
            hits = [
                at
                for at in (m.start() for m in first.finditer(text))
                if all(p.search(text, max(0, at - NEAR), at + NEAR) for p in others)
            ]
            yield from program.bodies_at(path, hits, *others)


def _holds(outer: Place, inner: Place) -> bool:
    """Whether one width is told with another: what a row has, and where the next one starts."""
    one, other = outer.width, inner.width
    same = one.value == other.value and one.term != other.term and outer.body is inner.body
    return same and one.term.contains(other.term)


def _tie(program: Program, place: Place) -> Step | None:
    """What guards a width where it stands, where it is used, or where a field is given it."""
    body, width = place.body, place.width
    _, where = body.place_of(width.term) or (place.mark, Where((0,), 0, ()))
    found = tie(program, body, width, where, place.of) or place.tie
    for part in operands(width.term) if found is None else ():
        number = only_number(program, body, part)
        if number is not None:
            found = found or tie(program, number.body, width, number.store.where, place.of)
    return found


@cache
def _transports() -> re.Pattern[str]:
    """Calls that are handed lengths."""
    names = (name for name, roles in apis().transports.items() if "length" in roles)
    return re.compile("|".join(names))
