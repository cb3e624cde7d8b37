"""Hosts on real NIXL, Triton's interpreter. Where a wheel is missing, tests that ask for them skip
and name it."""

import multiprocessing
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kvlint import runtime_checks
from kvlint.runtime_checks import declared
from kvlint.runtime_checks.evidence import prepare
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.settings import Mode, Settings
from tests.runtime_checks.interpreting import interpret

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


@pytest.fixture(scope="session")
def interpreted(torch: Any) -> Iterator[Callable[..., Any]]:
    """Calls a module's function in a process where Triton runs its kernels in its interpreter,
    which it decides while it is imported: `interpreted(function, *arguments)`. What the function
    raises is raised here; a crash ends that process only."""
    if find_spec("triton") is None:
        pytest.skip(f"the wheel triton is missing ({platform.system()} {platform.machine()})")
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, interpret) as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result(120)


@pytest.fixture
def host(nixl: Any) -> "Callable[[str, Sequence[Any]], Host]":
    """Makes hosts: `host(name, regions)`, registered region by region."""
    from tests.runtime_checks.hosts import Host

    def make(name: str, regions: Sequence[Any]) -> Host:
        made = Host(name, list(regions))
        made.register()
        return made

    return make


@pytest.fixture(autouse=True)
def _as_if_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (
        "RUNTIME",
        "REPORT",
        "CAPTURE",
        "REQUIRE",
        "STRICT_PREPARE",
        "LAUNCHES",
        "DUMP_SIGNAL",
        "RUN",
        "DIGEST_KEY",
    ):
        monkeypatch.delenv(f"KVLINT_{name}", raising=False)
    yield
    runtime_checks.disarm()
    declared._OF_AGENTS.clear()
    declared._HERE.clear()


@pytest.fixture
def policy(tmp_path: Path) -> Callable[..., Policy]:
    def make(mode: str = "log", report: Path | None = tmp_path / "report") -> Policy:
        if report is not None:
            prepare(report)
        return Policy(Settings(Mode(mode), report, run="r"))

    return make
