"""Kernels that Triton has compiled for a GPU, on a machine that has none: a launch is looked at
before anything of the GPU is asked for."""

import json
import platform

import pytest

pytest.importorskip("triton", reason="the wheel triton is missing")
pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")
pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kvlint import runtime_checks
from kvlint.runtime_checks import Violation, arm, status

pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="launches would be made on the GPU here"),
    pytest.mark.skipif(platform.system() != "Linux", reason="Triton compiles on Linux only"),
]
SLOTS, WIDTH = 16, 24


@triton.jit
def stored(cache, x, slots, stride, step, width: tl.constexpr, block: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(slots + token * step)
    lanes = tl.arange(0, block)
    value = tl.load(x + token * width + lanes, mask=lanes < width)
    tl.store(cache + slot * stride + lanes, value, mask=lanes < width)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """The step is 1, which Triton makes a constant of."""
    types = {"cache": "*bf16", "x": "*bf16", "slots": "*i32", "stride": "i32"}
    rest = dict.fromkeys(("step", "width", "block"), "constexpr")
    constants = {(4,): 1, (5,): WIDTH, (6,): 32}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        source = ASTSource(stored, {**types, **rest}, constants)
        return triton.compile(source, target=GPUTarget("cuda", 90, 32))


def rows(count):
    return torch.zeros(count, WIDTH, dtype=torch.bfloat16)


@pytest.fixture
def launch(kernel):
    """Gives back what the driver says: that there is no GPU; nothing came before it."""

    def launch(count, slots=(3, 4), cache=None, x=None, stride=WIDTH):
        cache = rows(SLOTS) if cache is None else cache
        x = rows(count) if x is None else x
        table = torch.tensor(slots, dtype=torch.int32)
        with pytest.raises(RuntimeError) as raised:
            kernel.launch_metadata((count, 1, 1), 0, cache, x, table, stride, 1, WIDTH, 32)
        return raised.value

    return launch


def test_a_wrong_launch_is_refused_and_a_right_one_reaches_the_driver(launch):
    arm("paranoid")
    assert "driver" in str(launch(2))
    found = launch(2, (3, 16))
    assert isinstance(found, Violation)
    assert found.record["check"] == "launch-index-range"
    *_, caller, called = found.record["sites"][0]["stack"]
    assert caller.endswith("in launch.<locals>.launch")
    assert called == f"{__file__}:{stored.fn.__code__.co_firstlineno} in stored"
    assert launch(3, (1, 2, 3), x=rows(2)).record["check"] == "launch-extent"
    assert "driver" in str(launch(2))
    assert status()["tool_errors"] == {}
    assert status()["hooks"]["triton.CompiledKernel.launch_metadata"] == "installed"


def test_in_log_nothing_is_raised_and_all_is_told(launch, capfd):
    arm("log")
    for _ in range(3):
        assert "driver" in str(launch(2, x=rows(1)))
    assert status()["violations"] == 3
    counted = {"kernels": 1, "launches": 3, "not read": 0, "undecided": 0}
    assert status()["launches"] == counted
    assert capfd.readouterr().err.count("kvlint: violation: launch-extent") == 1


def test_indices_are_looked_at_in_some_launches(launch):
    arm("log")
    for _ in range(64):
        launch(2, (3, 16))
    assert 1 <= status()["violations"] <= 4


def test_what_is_declared_later_counts(launch):
    arm("assert")
    pool = torch.zeros(SLOTS, WIDTH, dtype=torch.float32)
    view = pool.view(torch.bfloat16)
    assert "driver" in str(launch(2, cache=view))
    runtime_checks.guard_pool({"layer 0 key": pool}, name="index keys")
    assert launch(2, cache=view).record["check"] == "launch-element-size"
    assert "driver" in str(launch(2, cache=view, stride=2 * WIDTH))


def test_launches_can_be_left_alone(launch, monkeypatch):
    monkeypatch.setenv("KVLINT_LAUNCHES", "0")
    arm("paranoid")
    assert "driver" in str(launch(2, (3, 16)))
    assert [name for name in status()["hooks"] if name.startswith("triton")] == []


def test_disarmed_nothing_is_looked_at(launch):
    arm("assert")
    runtime_checks.disarm()
    assert "driver" in str(launch(2, (3, 16)))


def test_launches_are_counted_as_calls_of_the_kernel(launch, tmp_path):
    arm("log", report=tmp_path)
    for _ in range(3):
        launch(2)
    runtime_checks.dump()
    (path,) = tmp_path.glob("calls-*")
    (record,) = map(json.loads, path.read_text().splitlines())
    assert (record["call"], record["count"], record["checked"]) == ("launch of stored", 3, {})
    assert record["stack"] == [f"{__file__}:{stored.fn.__code__.co_firstlineno} in stored"]
