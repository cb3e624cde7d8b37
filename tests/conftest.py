"""Fixtures that several folders share, and the marker of the tests that download."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ENGINES = Path(__file__).parent / "engines"

# UCX tells on standard output what it meets when two processes part, among what tests read there.
os.environ.setdefault("UCX_LOG_LEVEL", "fatal")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where a test lies says whether it downloads, so that none can be forgotten."""
    for item in items:
        if item.path.is_relative_to(ENGINES):
            item.add_marker(pytest.mark.engines)


@pytest.fixture
def project(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Writes files, by relative path, into a folder that is a project of its own."""

    def write(files: Mapping[str, str]) -> Path:
        root = (tmp_path / "project").resolve()
        for name, text in {"pyproject.toml": "", **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return write
