"""Each script of examples/found shows its fault on the release it names, as its README says."""

import os
import re
from pathlib import Path

import pytest

from tests.engines.environment import Engine
from tests.engines.wheels import findings, unpacked

FOUND = Path(__file__).parent.parent.parent / "examples/found"
SHOWN_ON = {
    "sglang_staged_values": ("sglang==0.5.23",),
    "sglang_draft_bytes": ("sglang==0.5.23",),
    "vllm_page_bytes": ("vllm==0.33.0",),
    "vllm_offloaded_block": ("vllm==0.33.0",),
    "kvbm_element_size": ("kvbm==1.6.1", "vllm==0.33.0"),
    "lmcache_chunk_bytes": ("lmcache==0.5.6",),
}
DISAGGREGATION = "sglang/srt/disaggregation"
CONNECTORS = "vllm/distributed/kv_transfer/kv_connector/v1"
REPORTED = [
    ("sglang==0.5.23", f"{DISAGGREGATION}/common/staging_buffer.py", "KV101", {502, 599, 666}),
    ("sglang==0.5.23", f"{DISAGGREGATION}/mooncake/conn.py", "KV101", {715}),
    ("vllm==0.33.0", f"{CONNECTORS}/hf3fs/hf3fs_connector.py", "KV101", {539}),
    ("kvbm==1.6.1", "kvbm/vllm_integration/connector_worker.py", "KV201", {159}),
]
# Two lines of the fault and one of the control, set apart as what a script printed.
PRINTED = re.compile(r"(?m)^      (?=\S)(.*)\n      (.*)\n      (.*)\n")


@pytest.mark.parametrize("script", SHOWN_ON)
def test_the_fault_shows_as_written_down(script, engines_python):
    released = Engine(engines_python, tuple(unpacked(package) for package in SHOWN_ON[script]))
    ran = released.run(os.fspath(FOUND / f"{script}.py"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    written = [match.groups() for match in PRINTED.finditer((FOUND / "README.md").read_text())]
    assert len(written) == len(SHOWN_ON)
    assert tuple(ran.stdout.splitlines()[-3:]) in written


@pytest.mark.parametrize(("package", "path", "code", "lines"), REPORTED)
def test_kvlint_reports_its_line(package, path, code, lines):
    shown = {
        f["line"]
        for f in findings(package, path, code)
        if (f["status"], f["confidence"]) == ("unguarded", "high")
    }
    assert lines <= shown


def test_every_script_is_shown():
    scripts = {path.stem for path in FOUND.glob("*.py") if "end(" in path.read_text()}
    assert scripts - {"release"} == set(SHOWN_ON)


def test_another_release_is_no_proof(engines_python):
    """A script does not end well where its release is missing."""
    ran = Engine(engines_python, ()).run(os.fspath(FOUND / "sglang_draft_bytes.py"))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "sglang 0.5.23 is needed, found none\n"
