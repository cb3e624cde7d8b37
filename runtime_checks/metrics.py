"""Counters in the Prometheus registry of the program, where it has one.

prometheus_client is never imported here: whether it counts for one process or for several is
decided when it is imported, by an environment that the engine may not have set yet. Its locks
are not reentrant, so nothing of it is called from where a violation is found.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final, Protocol

from kvlint.runtime_checks.policy import Policy

NAMES: Final = {
    "kvlint_violations": ("Violations found by kvlint, repeats included.", ("check", "code")),
    "kvlint_transfers": ("Transfers that kvlint has seen posted.", ("operation",)),
    "kvlint_tool_errors": ("Internal errors of kvlint, by what it switched off.", ("check",)),
}


class Metrics(Protocol):
    def publish(self) -> None:
        """Called by the engine's own thread, outside of prometheus_client."""

    def undo(self) -> None: ...


def connect(module: ModuleType, policy: Policy) -> Metrics:
    """`module` is prometheus_client."""
    several = "PROMETHEUS_MULTIPROC_DIR" in os.environ or "prometheus_multiproc_dir" in os.environ
    return _OfSeveralProcesses(module, policy) if several else _OfOneProcess(module, policy)


def _counts(policy: Policy) -> Iterator[tuple[str, Mapping[tuple[str, ...], int]]]:
    yield "kvlint_violations", {(*key,): count for key, count in dict(policy.found).items()}
    yield "kvlint_transfers", {(name,): count for name, count in dict(policy.transfers).items()}
    yield "kvlint_tool_errors", {(name,): count for name, count in dict(policy.faults).items()}


class _OfOneProcess:
    """Answers with what there is when it is asked; nothing is pushed."""

    def __init__(self, module: ModuleType, policy: Policy) -> None:
        self._families: Any = module.metrics_core.CounterMetricFamily
        self._registry: Any = module.REGISTRY
        self._policy = policy
        self._registry.register(self)

    def describe(self) -> Iterator[object]:
        for name, (text, labels) in NAMES.items():
            yield self._families(name, text, labels=labels)

    def collect(self) -> Iterator[object]:
        for name, counts in _counts(self._policy):
            text, labels = NAMES[name]
            family = self._families(name, text, labels=labels)
            for values, count in counts.items():
                family.add_metric(values, count)
            yield family

    def publish(self) -> None:
        pass

    def undo(self) -> None:
        self._registry.unregister(self)


class _OfSeveralProcesses:
    """Another process answers, from what prometheus_client's own counters leave in files."""

    def __init__(self, module: ModuleType, policy: Policy) -> None:
        self._registry: Any = module.REGISTRY
        self._policy = policy
        self._counters: dict[str, Any] = {
            name: module.Counter(name, text, labels) for name, (text, labels) in NAMES.items()
        }
        self._published: dict[tuple[str, tuple[str, ...]], int] = {}
        self._publishing = threading.Lock()

    def publish(self) -> None:
        if not self._publishing.acquire(blocking=False):
            return
        try:
            for name, counts in _counts(self._policy):
                for values, count in counts.items():
                    more = count - self._published.get((name, values), 0)
                    # Less than was published: a forked child has begun anew.
                    if more:
                        self._counters[name].labels(*values).inc(more if more > 0 else count)
                        self._published[name, values] = count
        finally:
            self._publishing.release()

    def undo(self) -> None:
        for counter in self._counters.values():
            self._registry.unregister(counter)
