"""vLLM 0.33.0's released connector over real NIXL on the CPU, armed through its own plug-in loader.

One process a mode runs all scenarios. Not run, for want of a GPU: device memory and copies to host
buffers, ranks that are processes, the model and the HTTP servers around the connector.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.downloads import CACHE

RIGHT = (
    "uniform",
    "uniform, tokens before heads",
    "uniform, heads apart",
    "uniform, rows of all layers",
    "uniform, rows of all layers as one",
    "two groups share",
    "two groups share rows",
    "latent rows",
    "latent and indexer rows",
    "latent and indexer",
    "attention and state",
    "a group in host memory",
    "two ranks to one",
    "rows of two ranks to one",
    "two ranks to one, two groups",
    "blocks twice as long",
    "rows of blocks twice as long",
)
FAULTS = {
    # The text of 0.33.0 as it was released.
    "groups of unequal pages share rows": (
        "slot-coverage",
        r"a slot of model.layers.2.self_attn.attn \(layer 2\) has 32768 bytes, 16384 of them are "
        r"in no region: from byte 16384 to before 32768, kv region 0 ",
    ),
    # Planted.
    "one stride for all regions": (
        "column",
        r"remote index 44 \(at 10\) is remote region 3 'model.layers.3.self_attn.attn' \(layer 3\) "
        r"slot 0 \(byte 0\), a slot that the other regions of its group do not get",
    ),
    "half of each block": (
        "slot-coverage",
        r"a slot of model.layers.0.self_attn.attn \(layer 0\) has 16384 bytes, 8192 of them are in "
        r"no region: from byte 8192 to before 16384, kv region 0 ",
    ),
    "one block too many": (
        "pool-length",
        r"kv region 0 'model.layers.0.self_attn.attn' \(layer 0\) has 163840 bytes, its tensor "
        r"ends after 147456: .* slot 9 \(byte 147456\) is past it",
    ),
    "states begin by the other side's count": (
        "unasked-slot",
        r"remote index 26 \(at 8\) is remote region 2 'model.layers.1.mixer part 0' \(layer 1\) "
        r"slot 2 \(byte 32768\), which was not asked for: slots 8, 10 of it were",
    ),
}
WITHOUT_ERROR = [name for name in FAULTS if name != "one block too many"]


@pytest.fixture(scope="module")
def vllm(engine: Any) -> Any:
    return engine("vllm==0.33.0")


def run(vllm: Any, *scenarios: str, **variables: str) -> dict[str, dict[str, Any]]:
    """Outcomes by scenario."""
    ran = vllm.run(
        "vllm_connector.py",
        *scenarios,
        VLLM_CACHE_ROOT=str(CACHE / "vllm"),
        VLLM_SSM_CONV_STATE_LAYOUT="DS",
        **variables,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    outcomes = json.loads(ran.stdout.splitlines()[-1])
    return {one["scenario"]: one for one in outcomes} | {"stderr": {"text": ran.stderr}}


def armed(vllm: Any, mode: str, report: Path, *scenarios: str) -> dict[str, dict[str, Any]]:
    return run(
        vllm,
        *scenarios,
        VLLM_PLUGINS="kvlint",
        KVLINT_RUNTIME=mode,
        KVLINT_REPORT=str(report),
        KVLINT_REQUIRE="all",
    )


@pytest.fixture(scope="module")
def logged(vllm: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return armed(vllm, "log", tmp_path_factory.mktemp("log"))


def test_the_loader_arms_every_hook_before_the_connector_is_there(logged):
    text = logged["stderr"]["text"]
    assert re.search(r"kvlint: armed: mode=log vllm \S+ NIXL connector hooks=6/6 ", text)
    assert text.count("NIXL connector hooks=") == 1
    # kvlint imports nothing of NIXL, so vLLM sets what it sets before the import.
    assert "NIXL was already imported" not in text


@pytest.mark.parametrize("scenario", RIGHT)
def test_the_released_connector_moves_all_bytes_and_nothing_is_said(logged, scenario):
    outcome = logged[scenario]
    assert outcome["arrived"] == ["request"]
    assert outcome["wrong"] == []
    assert outcome["violations"] == []


@pytest.mark.parametrize("scenario", FAULTS)
def test_a_fault_is_told_at_its_region_and_block(logged, scenario):
    check, message = FAULTS[scenario]
    outcome = logged[scenario]
    assert "wrong" not in outcome or outcome["wrong"]
    told = [v["message"] for v in outcome["violations"] if v["check"] == check]
    assert any(re.match(message, one) for one in told), outcome["violations"]


def test_unarmed_the_same_bytes_are_wrong_without_a_word(vllm, logged):
    # Plug-ins that VLLM_PLUGINS does not name are not loaded.
    plain = run(vllm, *WITHOUT_ERROR, VLLM_PLUGINS="another", KVLINT_RUNTIME="log")
    assert "kvlint: " not in plain["stderr"]["text"]
    for scenario in WITHOUT_ERROR:
        assert plain[scenario]["arrived"] == ["request"]
        assert plain[scenario]["wrong"] == logged[scenario]["wrong"] != []


def test_where_violations_are_raised_one_request_fails_and_the_next_is_right(vllm, tmp_path):
    faulty = "one stride for all regions"
    outcomes = armed(vllm, "assert", tmp_path, faulty, "a group in host memory")
    assert (outcomes[faulty]["arrived"], outcomes[faulty]["failed"]) == ([], ["request"])
    assert outcomes["a group in host memory"]["arrived"] == ["request"]
    assert outcomes["a group in host memory"]["wrong"] == []
