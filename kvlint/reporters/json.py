"""For programs: a list with one object a place; a fault has code null."""

from collections.abc import Iterator

from kvlint.reporters.objects import dump, places
from kvlint.reporters.paint import Paint
from kvlint.reporters.view import View


def render(view: View, paint: Paint) -> Iterator[str]:
    yield dump(places(view), indent=2)
