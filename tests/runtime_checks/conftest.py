"""Hosts on real NIXL. Where a wheel is missing, tests that ask for them skip and name it."""

import platform
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.runtime_checks.hosts import Host


@pytest.fixture(scope="session")
def nixl() -> Any:
    """The module `nixl._api`, whichever back end carries it."""
    where = f"{platform.system()} {platform.machine()}"
    return pytest.importorskip("nixl._api", reason=f"the wheel nixl is missing ({where})")


@pytest.fixture(scope="session")
def torch() -> Any:
    return pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")


@pytest.fixture
def host(nixl: Any) -> "Callable[[str, Sequence[Any]], Host]":
    """Makes hosts: `host(name, regions)`, registered region by region."""
    from tests.runtime_checks.hosts import Host

    def make(name: str, regions: Sequence[Any]) -> Host:
        made = Host(name, list(regions))
        made.register()
        return made

    return make
