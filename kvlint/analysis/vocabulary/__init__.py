"""Nouns of the field and third-party APIs, as data: `nouns.toml`, `apis.toml`.

Nothing in here names a file, class or function of an engine. A project's own names are put in
by `use`, once a run, before anything is analysed.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from kvlint.analysis.vocabulary.own import Own

_T = TypeVar("_T")

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


_NONE = Own()
_in_use = _NONE
_forget: list[Callable[[], None]] = []


def use(own: Own) -> None:
    """Read these names from now on as what they stand for, and no other own names."""
    global _in_use
    if own != _in_use:
        _in_use = own
        for forget in _forget:
            forget()


def own_names() -> Own:
    """The names in use: with the version of kvlint, all that a vocabulary depends on."""
    return _in_use


def remembered(function: Callable[[], _T]) -> Callable[[], _T]:
    """As `functools.cache`, until `use` changes the vocabulary that the answer rests on."""
    answer = cache(function)
    _forget.append(answer.cache_clear)
    return answer


@dataclass(frozen=True, slots=True)
class Nouns:
    """Sets of words; a name is split at underscores and capitals, and lowered."""

    address: frozenset[str]
    region: frozenset[str]
    firm: frozenset[str]
    many: frozenset[str]
    tensor: frozenset[str]
    weak: frozenset[str]
    not_region: frozenset[str]
    length: frozenset[str]
    count: frozenset[str]
    index: frozenset[str]
    buffer: frozenset[str]
    transfer: frozenset[str]
    device: frozenset[str]
    stride: frozenset[str]
    strided: frozenset[str]
    triggers: frozenset[str]
    descriptors: frozenset[str]
    ambiguous: frozenset[str]
    sizes: frozenset[str]
    counted: frozenset[str]
    element_size: frozenset[str]
    table: frozenset[str]
    bytes: frozenset[str]
    elements: frozenset[str]
    not_cache: frozenset[str]


def _data(name: str) -> dict[str, Any]:
    # Beside this file, wherever that is: `importlib.resources` takes 8 ms to say the same.
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))


@cache
def _nouns() -> Nouns:
    data = _data("nouns.toml")
    return Nouns(**{name: frozenset(words) for name, words in data.items()})


@remembered
def nouns() -> Nouns:
    built_in = _nouns()
    return replace(built_in, triggers=built_in.triggers | _in_use.spoken())


@remembered
def triggers() -> frozenset[str]:
    """A file that says anything about cache memory holds one of these: a noun of the field, a
    transport's call, a project's own name."""
    return nouns().triggers | (apis().transports.keys() - nouns().ambiguous)


@dataclass(frozen=True, slots=True)
class Apis:
    """Third-party calls by last name -> what the result or the arguments are."""

    keeps: frozenset[str]
    folds: dict[str, str]
    quantities: dict[str, str]
    makes_tensor: frozenset[str]
    sends: frozenset[str]
    messages: frozenset[str]
    packs: frozenset[str]
    transports: dict[str, dict[str, int | str]]
    silent: frozenset[str]
    common: frozenset[str]
    same_memory: frozenset[str]
    memory: frozenset[str]
    element_sizes: frozenset[str]
    dtype_bytes: dict[str, int]


@cache
def apis() -> Apis:
    data = _data("apis.toml")
    return Apis(
        keeps=frozenset(data["keeps"]),
        folds=data["folds"],
        quantities=data["quantities"],
        makes_tensor=frozenset(data["makes_tensor"]),
        sends=frozenset(data["sends"]),
        messages=frozenset(data["messages"]),
        packs=frozenset(data["packs"]),
        transports=data["transports"],
        silent=frozenset(data["silent"]),
        common=frozenset(data["common"]),
        same_memory=frozenset(data["same_memory"]),
        memory=frozenset(data["memory"]),
        element_sizes=frozenset(data["element_sizes"]),
        dtype_bytes=data["dtype_bytes"],
    )


@lru_cache(maxsize=65536)
def words(name: str) -> tuple[str, ...]:
    """`kv_dataPtrs` -> ('kv', 'data', 'ptrs'); for an own name, the words it stands for."""
    own = None if _in_use is _NONE else _in_use.stands_for(name)
    return own or tuple(word.lower() for word in _WORD.findall(name))


_forget.append(words.cache_clear)
