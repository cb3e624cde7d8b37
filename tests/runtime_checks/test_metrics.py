"""Counters in the Prometheus registry that the program has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvlint import runtime_checks
from kvlint.runtime_checks import arming
from kvlint.runtime_checks.checks import PAIRING
from tests.runtime_checks.breaches import breach, site

prometheus = pytest.importorskip(
    "prometheus_client", reason="the wheel prometheus-client is missing"
)


def value(name, **labels):
    return prometheus.REGISTRY.get_sample_value(f"kvlint_{name}_total", labels)


def found_something():
    policy = arming._armed.policy
    policy.judge(breach(0, PAIRING), [site()], agent="a")
    policy.judge(breach(0), [site()], agent="a")
    policy.transferred("WRITE")
    with policy.contained("stale-list"):
        raise KeyError


def test_what_is_found_is_counted_in_the_programs_registry():
    runtime_checks.arm()
    found_something()
    assert value("violations", check="pairing", code="KV303") == 1
    assert value("violations", check="column", code="") == 1
    assert value("transfers", operation="WRITE") == 1
    assert value("tool_errors", check="stale-list") == 1
    assert "kvlint_violations_total{" in prometheus.generate_latest().decode()


def test_armed_again_it_counts_anew_and_disarmed_it_is_gone():
    for _ in range(2):
        runtime_checks.arm()
        found_something()
        assert value("violations", check="column", code="") == 1
        runtime_checks.disarm()
        assert value("violations", check="column", code="") is None


ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from kvlint import runtime_checks
from kvlint.runtime_checks import arming
runtime_checks.arm()
assert "prometheus_client" not in sys.modules
import prometheus_client
from tests.runtime_checks.test_metrics import found_something
found_something()
arming._armed.policy.transferred("WRITE")
"""


def test_it_is_never_imported_and_in_several_processes_it_leaves_files(tmp_path):
    environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = prometheus.CollectorRegistry()
    MultiProcessCollector(registry, str(tmp_path))
    assert registry.get_sample_value("kvlint_transfers_total", {"operation": "WRITE"}) == 2
    labels = {"check": "pairing", "code": "KV303"}
    assert registry.get_sample_value("kvlint_violations_total", labels) == 1
