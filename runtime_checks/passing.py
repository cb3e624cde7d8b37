"""Which of many stacks pass through a definition that was checked. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kvlint.hypotheses import Place
from kvlint.runtime_checks.sources import frames, is_file, plain

_CONSTRUCTORS: Final = frozenset({"__init__", "__post_init__", "__new__"})

Files = dict[str, set[int]]


class Passing:
    """Stacks by number, from 0; each as `file:line in function` a frame."""

    def __init__(self, stacks: Sequence[Iterable[object]]) -> None:
        self._named: dict[str, Files] = defaultdict(lambda: defaultdict(set))
        self._inside: dict[str, Files] = defaultdict(lambda: defaultdict(set))
        self._files: Files = defaultdict(set)
        self._stacks = [frames(stack) for stack in stacks]
        for number, stack in enumerate(self._stacks):
            for frame in stack:
                self._named[frame.name][frame.file].add(number)
                self._inside[frame.name.rpartition(".")[0]][frame.file].add(number)
                self._files[frame.file].add(number)

    def through(self, places: Iterable[Place]) -> set[int]:
        """Those with a frame in one of the places' functions."""
        found: set[int] = set()
        for place in places:
            found.update(*_in_file(place, self._named.get(plain(place.definition), {})))
        return found

    def implied(self, places: Iterable[Place]) -> set[int]:
        """Those that prove that the code of one of the places ran, and has returned: where a
        method is called an instance was made, and where anything of a file is, the file was
        imported."""
        found: set[int] = set()
        for place in places:
            outer, _, name = plain(place.definition).rpartition(".")
            if not name:
                found.update(*_in_file(place, self._files))
            elif name in _CONSTRUCTORS:
                found.update(*_in_file(place, self._inside.get(outer, {}) if outer else {}))
            else:
                found.update(*_in_file(place, self._inside.get(plain(place.definition), {})))
        return found

    def lines(self, number: int, places: Iterable[Place]) -> int:
        """Through how many of the places themselves the stack passes, line by line."""
        return sum(
            any(
                place.span.line <= frame.line <= place.span.end_line
                and frame.name == plain(place.definition)
                and is_file(place.span.path, frame.file)
                for frame in self._stacks[number]
            )
            for place in places
        )


def _in_file(place: Place, files: Files) -> Iterator[set[int]]:
    return (numbers for file, numbers in files.items() if is_file(place.span.path, file))
