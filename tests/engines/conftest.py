"""Engines that run, for the tests of this folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.building import install
from tests.engines.environment import Engine, environment
from tests.engines.wheels import skipping


@pytest.fixture(scope="session")
def engines_python() -> Path:
    with skipping():
        return environment()


@pytest.fixture(scope="session")
def installed_kvlint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this tree's distribution, which loaders of plug-ins find by its metadata."""
    return install(tmp_path_factory.mktemp("kvlint"))


@pytest.fixture(scope="session")
def engine(engines_python: Path, installed_kvlint: Path) -> Callable[[str], Engine]:
    """The engine of a wheel, `engine("sglang==0.5.23")`, to run scripts with."""

    def of(package: str) -> Engine:
        with skipping():
            return Engine.of(package, engines_python, installed_kvlint)

    return of
