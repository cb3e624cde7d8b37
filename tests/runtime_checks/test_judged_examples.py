"""The examples checked, run and judged: what `kvlint check` assumes of their code is refuted by
their own transfers, or confirmed by them."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")
pytestmark = pytest.mark.usefixtures("nixl")

ROOT = Path(__file__).parents[2]
KVLINT = [sys.executable, "-m", "kvlint"]
ENVIRON = os.environ | {"NIXL_LOG_LEVEL": "ERROR", "PYTHONPATH": str(ROOT)}


def ran(*command):
    command = [*KVLINT, *map(str, command)]
    return subprocess.run(
        command, cwd=ROOT, env=ENVIRON, capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """By their codes and functions, the hypotheses about an example after one run of it."""

    @functools.cache
    def judged(folder, script, *arguments):
        out = tmp_path_factory.mktemp("judged")
        program = [sys.executable, f"examples/{folder}/{script}", *arguments]
        assert ran("run", "--report", out, "--", *program).returncode in (0, 70)
        ran("check", f"examples/{folder}", "--emit-assumptions", out / "assumptions.json")
        told = ran("report", out, "--output-format", "json")
        hypotheses = json.loads(told.stdout)["hypotheses"]
        refuted = any(one["answer"] == "refuted" for one in hypotheses)
        assert told.returncode == (1 if refuted else 0)
        return [((one["code"], one["definition"]), one) for one in hypotheses], out

    return judged


def of(found, code, definition):
    return [one for key, one in found if key == (code, definition)]


def dsv4(judged, *arguments):
    return judged("dsv4_slots", "serve.py", *arguments)


def staging(judged, *arguments):
    pytest.importorskip("prometheus_client", reason="the wheel prometheus-client is missing")
    return judged("staging_server", "serve.py", "--requests", "3", *arguments)


def test_one_stride_is_refuted_by_the_transfers_it_was_used_for(judged):
    found, _ = dsv4(judged)
    local, remote = of(found, "KV103", "PrefillWorker.send")
    for side, one in (("local", local), ("remote", remote)):
        assert (one["answer"], one["observations"], one["calls"]) == ("refuted", 1, 1)
        assert f"by 1 observation, first: {side} index" in one["why"]
    (first,) = of(found, "KV101", "PrefillWorker.__init__")
    assert first["answer"] == "refuted"
    assert "it has 161 slots, taken are 164" in first["why"]


def test_with_cumulative_starts_no_transfer_rests_on_it(judged):
    found, _ = dsv4(judged, "--repaired")
    for one in of(found, "KV103", "PrefillWorker.send"):
        assert (one["answer"], one["observations"]) == ("not exercised", 0)
        assert "column has looked at 1 call, and found none that rests on it" in one["why"]
    (guarded,) = of(found, "KV205", "PrefillWorker._prepare")
    assert (guarded["answer"], guarded["status"]) == ("confirmed", "guarded")


def test_nobody_has_declared_the_buffers_and_evidence_tells_no_address(judged):
    _, out = dsv4(judged)
    geometries = [json.loads(path.read_text()) for path in out.glob("geometry-*")]
    assert len(geometries) == 2
    for one in geometries:
        assert one["engine"] == "folded by kvlint from prepared lists"
        assert min(region["address"] for region in one["regions"]) == 0
        assert [r["length"] // r["stride"] for r in one["regions"]] == [
            164,
            164,
            161,
            161,
            288,
            288,
        ]


@pytest.mark.usefixtures("torch")
def test_in_two_processes_it_is_that_of_the_sender(judged):
    found, out = staging(judged, "--break", "pool-formula")
    for one in of(found, "KV103", "KVSender.send"):
        assert (one["answer"], one["observations"], one["calls"]) == ("refuted", 3, 3)
    labels = {geometry["label"] for _, one in found for geometry in one["geometries"]}
    assert len(labels) == len(list(out.glob("geometry-*"))) == 2


@pytest.mark.usefixtures("torch")
def test_where_nothing_is_broken_all_of_it_is_confirmed(judged):
    found, _ = staging(judged)
    assert {one["answer"] for _, one in found} == {"confirmed"}
    for one in of(found, "KV103", "KVSender.send"):
        assert "column has looked at 3 calls, and found none wrong" in one["why"]


@pytest.mark.usefixtures("torch")
def test_a_geometry_that_lacks_what_is_wrong_confirms_nothing(judged):
    found, _ = staging(judged, "--break", "element-type")
    answers = {key: one["answer"] for key, one in found}
    assert answers["KV103", "KVSender.send"] == "refuted"
    assert answers["KV101", "KVSender.__init__"] == "not exercised"


@pytest.mark.usefixtures("torch")
def test_of_several_runs_in_one_folder_each_process_speaks_for_its_own(judged, tmp_path):
    for _, out in (dsv4(judged), dsv4(judged, "--repaired"), staging(judged)):
        for path in out.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    ran("check", "examples", "--emit-assumptions", tmp_path / "assumptions.json")
    told = json.loads(ran("report", tmp_path, "--output-format", "json").stdout)["hypotheses"]
    senders = {
        one["place"].split("/")[1]: one["answer"]
        for one in told
        if one["code"] == "KV103" and one["definition"].endswith(".send")
    }
    assert senders["dsv4_slots"] == "refuted"
    assert senders["staging_server"] == "confirmed"
    assert {senders[name] for name in senders.keys() - {"dsv4_slots", "staging_server"}} <= {
        "not exercised"
    }
