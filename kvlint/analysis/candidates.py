"""Where a text may hold what stands for every region: searched before anything is parsed.

All of these look at every line of a large tree, so each pattern begins with letters that it
always has: a pattern that has to start at every word costs seconds. What they find too much is
dropped by what is asked next.
"""

import re

from kvlint.analysis.roles import names_regions
from kvlint.analysis.vocabulary import own_names, remembered

_MANY = (
    "ptrs|addrs|lens|lengths|sizes|strides|caches|buffers?|bufs|pools?|regions|objs|objects|"
    "layers|tensors|counts|shapes|dtypes|devices|nbytes|capacities|blocks"
)
_ENTRY = re.compile(r"\[\s*(?:0|-1)\s*\]")
_NEXT = re.compile(r"next\(")
_STARRED = re.compile(r", \*\w+ = ")
_BEFORE = re.compile(r"(?:(\w+)|\))(?:\[[^\]\n]*\])?\s*$")
_NAMED = re.compile(r"[ \t]+(\w+)(?:: [^=\n]+)?$")
_NUMBERED = ("layer", "region", "group", "buffer")
_WORDS = re.compile(r"\w+")
WINDOW = 160  # characters: the call or the subscript that an entry is taken of
_NUMBER_ZERO = re.compile(r"_i(?:d|dx|ndex)\s*=\s*0\b")
KEEPS = re.compile(r"^[ \t]+self\.\w+ = ", re.M)
MEASURES = re.compile(
    r"\.(?:shape|stride|element_size|itemsize|device|get_device|dtype|nbytes)\b|_len|_size|num_"
)


@remembered
def kept() -> re.Pattern[str]:
    """A loop over what may be regions."""
    many = f"{_MANY}|layer_names{own_names().pattern()}"
    return re.compile(rf"for\b[^\n:]*\b\w*(?:{many})\b[^\n]*:")


@remembered
def _given() -> re.Pattern[str]:
    """The end of an assignment of what may be regions."""
    return re.compile(rf" = [\w.\[\]'\"]*(?:{_MANY + own_names().pattern()})$", re.M)


@remembered
def _handed() -> re.Pattern[str]:
    """The name of a list of regions that is the first argument of a call."""
    lists = f"kv_?caches|[a-z]_buffers|kv_tensors|layer_tensors{own_names().pattern()}"
    return re.compile(rf"\((?:self\.)?\w*(?:{lists})\b")


@remembered
def _handed_words() -> tuple[str, ...]:
    return (
        "kvcaches",
        "kv_caches",
        "_buffers",
        "kv_tensors",
        "layer_tensors",
        *own_names().spoken(),
    )


def entries_taken(text: str) -> list[int]:
    """Offsets where a first or last entry of what may be a list of regions is taken."""
    near = _Near(text)
    found = [m.start() for m in _NUMBER_ZERO.finditer(text)]
    found = [at for at in found if text.endswith(_NUMBERED, max(0, at - 6), at)]
    if any(word in text for word in _handed_words()):
        found += [m.start() for m in _handed().finditer(text)]
    for pattern in (_NEXT, _STARRED):
        found += [m.start() for m in pattern.finditer(text) if near.regions(m.end(), after=True)]
    for match in _ENTRY.finditer(text):
        at = match.start()
        before = _BEFORE.search(text, max(0, at - 80, text.rfind("\n", 0, at) + 1), at)
        if before is None:
            continue
        name = before.group(1)
        if near.is_regions(name) if name is not None else near.regions(at, after=False):
            found.append(at)
    return sorted(found)


class _Near:
    """Which names in a text may be lists of regions: by what they say, or by what any name of
    the text that is spelled so is given."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._aliases: set[str] | None = None

    def is_regions(self, name: str) -> bool:
        return bool(names_regions(name)) or name in self._given()

    def regions(self, at: int, *, after: bool) -> bool:
        """Whether a list of regions is spoken of shortly after, or before, this offset."""
        nearby = self._text[at : at + WINDOW] if after else self._text[max(0, at - WINDOW) : at]
        return any(self.is_regions(name) for name in set(_WORDS.findall(nearby)))

    def _given(self) -> set[str]:
        if self._aliases is None:
            text = self._text
            starts = (m.start() for m in _given().finditer(text))
            lines = (_NAMED.match(text, text.rfind("\n", 0, at) + 1, at) for at in starts)
            self._aliases = {named.group(1) for named in lines if named}
        return self._aliases
