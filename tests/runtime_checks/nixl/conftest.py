"""The companion armed around real NIXL, and what it has found so far."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kvlint import runtime_checks
from kvlint.runtime_checks import arming


class Armed:
    """One arming, and what it has found."""

    def __init__(self) -> None:
        self.companion = arming._armed
        self.policy = self.companion.policy

    @property
    def violations(self) -> list[Mapping[str, Any]]:
        return list(self.policy.violations)

    @property
    def checks(self) -> list[str]:
        return [str(record["check"]) for record in self.violations]

    @property
    def faults(self) -> Mapping[str, int]:
        return dict(self.policy.faults)

    def forget_faults(self) -> None:
        """As if none had been: what was switched off is on again."""
        self.policy.faults.clear()
        self.policy._disarmed.clear()

    @property
    def names(self) -> list[str | None]:
        """Names of the transfers and notifications in the ring, oldest first."""
        entries = [entry.to_dict() for entry in self.policy.recorder.entries()]
        return [e["id"] for e in entries if e["kind"] in ("transfer", "notified")]

    @property
    def flights(self) -> Any:
        (hooks,) = self.companion.hooks.values()
        return hooks.watch.flights


@pytest.fixture
def arm(nixl: Any) -> Iterator[Callable[..., Armed]]:
    """Arms in a mode; after the test nothing of the companion itself may have failed."""
    pytest.importorskip("wrapt", reason="the wheel wrapt is missing")
    watched: list[Armed] = []

    def start(mode: str = "log", *, faults: bool = False) -> Armed:
        runtime_checks.arm(mode)
        armed = Armed()
        if not faults:
            watched.append(armed)
        return armed

    yield start
    assert [armed.faults for armed in watched] == [{} for _ in watched]
