"""Small programs, given as text."""

from collections.abc import Callable

import pytest

from kvlint.analysis.bodies import Body
from kvlint.analysis.link import Program


@pytest.fixture
def program() -> Callable[..., Program]:
    return lambda **files: Program({f"{name}.py": text for name, text in files.items()})


@pytest.fixture
def lowered(program) -> Callable[[str], Body]:
    """The body of the first function in a text."""

    def lower(text: str) -> Body:
        one = program(module=text)
        (first, *_) = one.outline("module.py").definitions.values()
        return one.body(first)

    return lower
