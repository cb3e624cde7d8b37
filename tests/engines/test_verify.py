"""`kvlint verify` with vLLM's code, on the caches that its connector has registered."""

import json
import subprocess
import sys

import pytest

from kvlint.geometry import Geometry
from tests.engines.wheels import unpacked

CONNECTORS = "vllm/distributed/kv_transfer"
# Scenario -> (regions, slots of the last one), by which the prefill worker's files are known.
CACHES = {
    "uniform": (4, 12),
    "a group in host memory": (4, 20),
    "latent and indexer": (6, 12),
    "groups of unequal pages share rows": (1, 12),
}


@pytest.fixture(scope="module")
def registered(engine, tmp_path_factory):
    """The geometry of the prefill worker of each scenario, captured as it registers its caches."""
    folder = tmp_path_factory.mktemp("captured")
    variables = {"VLLM_SSM_CONV_STATE_LAYOUT": "DS", "KVLINT_CAPTURE": str(folder)}
    ran = engine("vllm==0.33.0").run("vllm_connector.py", *CACHES, **variables)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = {}
    for path in folder.iterdir():
        geometry = Geometry.from_json(path.read_bytes())
        found[len(geometry.regions), geometry.regions[-1].slots] = path
    return [found[known] for known in CACHES.values()]


@pytest.fixture(scope="module")
def decided(registered):
    """All assumptions, sure or not, with what each comes to in these scenarios."""
    options = ["--project", ".", "--no-cache", "--output-format", "json"]
    options += ["--min-confidence", "low"]
    for path in registered:
        options += ["--geometry", str(path)]
    ran = subprocess.run(
        [sys.executable, "-m", "kvlint", "verify", CONNECTORS, *options],
        cwd=unpacked("vllm==0.33.0"),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1, ran.stderr
    return json.loads(ran.stdout)["assumptions"]


def outcomes(one):
    return dict(zip(CACHES, [verdict["outcome"] for verdict in one["verdicts"]], strict=True))


def test_nothing_that_is_assumed_breaks_where_groups_have_unequal_counts(decided):
    # 0.33.0 numbers descriptors by cumulative starts.
    assert "broken" not in {outcomes(one)["a group in host memory"] for one in decided}


def test_a_device_that_stands_for_all_does(decided):
    (one,) = [one for one in decided if one["formula"].startswith("device of the last region")]
    assert one["path"].endswith("nixl/base_worker.py")
    assert set(outcomes(one).values()) == {"holds"}


def test_the_first_caches_element_size_is_not_every_ones_where_index_keys_are_bytes(decided):
    (one,) = [one for one in decided if one["formula"].startswith("element size of region 0 =")]
    assert one["path"].endswith("hf3fs/hf3fs_connector.py")
    found = outcomes(one)
    assert found["uniform"] == "holds"
    assert found["latent and indexer"] != "holds"


def test_what_a_block_holds_is_no_stride_where_layers_share_rows(decided):
    (one,) = [one for one in decided if one["path"].endswith("mooncake/mooncake_connector.py")]
    assert one["formula"] == "transfer length of region i = item length of region i"
    *others, rows = one["verdicts"]
    assert {verdict["outcome"] for verdict in others} == {"holds"}
    broken = rows["broken"]
    assert (broken["region"], broken["slot"], broken["byte"]) == (0, 1, 32768)
    assert (broken["left"], broken["right"]) == (16384, 32768)
