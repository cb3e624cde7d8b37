from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def hooks() -> Iterator[Any]:
    from kvlint.runtime_checks.hooking import Hooks

    made = Hooks()
    yield made
    made.uninstall()
