"""`kvlint geometry capture` with the pools of released engines."""

import json
import subprocess

import pytest

from kvlint.geometry import Geometry
from tests.engines.environment import SCRIPTS

PAGE = 16 * 2 * 64 * 2  # tokens, heads, elements a head, bytes an element


@pytest.fixture
def capture(engine):
    def capture(package, call):
        engine_of = engine(package)
        return subprocess.run(
            [engine_of.python, "-m", "kvlint", "geometry", "capture", f"pools_on_cpu:{call}"],
            cwd=SCRIPTS,
            env=engine_of.environment(),
            capture_output=True,
            text=True,
            timeout=240,
        )

    return capture


def said(ran):
    return [line for line in ran.stderr.splitlines() if line.startswith("kvlint: ")]


@pytest.mark.parametrize("package", ["sglang==0.5.21", "sglang==0.5.23"])
def test_a_pool_of_sglangs_is_captured_with_layers_and_roles(capture, package):
    ran = capture(package, "mha")
    assert ran.returncode == 0, ran.stderr
    found = Geometry.from_json(ran.stdout)
    assert found.engine == package.replace("==", " ")
    assert {(region.layer, region.role) for region in found.regions} == {
        (layer, role) for layer in range(3) for role in ("key", "value")
    }
    # 1,024 tokens, and SGLang's page for what is padding.
    assert {(region.stride, region.slots, region.page_size) for region in found.regions} == {
        (PAGE, 65, 16)
    }
    assert said(ran) == []


def test_a_process_that_only_captures_serves_as_ever_and_leaves_a_file_an_agent(engine, tmp_path):
    ran = engine("sglang==0.5.23").run("sglang_request.py", KVLINT_CAPTURE=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["ends"] == [["Success", "Success"]]
    assert {line.split(" hooks=")[0] for line in said(ran)} == {
        f"kvlint: capturing: sglang 0.5.23 {stage}" for stage in ("pools", "transport")
    }
    found = [Geometry.from_json(path.read_bytes()) for path in tmp_path.iterdir()]
    assert [geometry.engine for geometry in found] == ["sglang 0.5.23"] * 2
    for geometry in found:
        kv = geometry.regions_of("kv")
        assert [region.slots for region in kv] == [164, 164, 164, 164, 288, 288]
        assert {region.layer for region in kv} == {2, 3, 4, 5}


def test_what_a_pool_says_wrongly_is_told(capture):
    ran = capture("sglang==0.5.23", "wrong")
    assert ran.returncode == 1
    assert {region.stride for region in Geometry.from_json(ran.stdout).regions} == {PAGE // 2}
    assert len(said(ran)) == 6
    assert all(line.startswith("kvlint: item-length: ") for line in said(ran))
    assert all("right for elements of 1 byte, bfloat16 has 2" in line for line in said(ran))
