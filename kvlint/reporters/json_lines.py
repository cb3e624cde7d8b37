"""For programs that read line by line: the objects of `json`, one a line."""

from collections.abc import Iterator

from kvlint.reporters.objects import dump, places
from kvlint.reporters.paint import Paint
from kvlint.reporters.view import View


def render(view: View, paint: Paint) -> Iterator[str]:
    return map(dump, places(view))
