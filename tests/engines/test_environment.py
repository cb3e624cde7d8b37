"""The environment in which engines run: it holds what they import, and is made once."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import kvlint
from benchmarks import downloads

ROOT = Path(__file__).parent.parent.parent

SGLANG = [
    "sglang.srt.disaggregation.decode",
    "sglang.srt.disaggregation.nixl.conn",
    "sglang.srt.disaggregation.prefill",
    "sglang.srt.managers.cache_controller",
    "sglang.srt.mem_cache.deepseek_v4_memory_pool",
    "sglang.srt.mem_cache.memory_pool_host",
    "sglang.srt.mem_cache.swa_memory_pool",
    "sglang.srt.plugins",
]
VLLM = [
    "vllm.distributed.kv_transfer.kv_connector.v1.nixl.connector",
    "vllm.distributed.kv_transfer.kv_connector.v1.nixl.pull_worker",
    "vllm.distributed.kv_transfer.kv_connector.v1.nixl.push_worker",
    "vllm.plugins",
    "vllm.v1.worker.gpu_model_runner",
]
# Beside those that other tests run.
RELEASES = [("sglang", version) for version in ("0.5.13", "0.5.17", "0.5.20")]
RELEASES += [("vllm", "0.33.0")]


@pytest.mark.parametrize(("name", "version"), RELEASES)
def test_a_release_imports_beside_an_installed_kvlint_that_is_not_armed(engine, name, version):
    modules = {"sglang": SGLANG, "vllm": VLLM}[name]
    found = engine(f"{name}=={version}").result("imports.py", name, *modules)
    assert found["version"] == version
    assert found["kvlint"] == kvlint.__version__
    assert {"sglang.srt.plugins", "vllm.general_plugins"} <= set(found["doors"])
    assert not found["armed"]


@pytest.fixture(autouse=True)
def own_cache(request, tmp_path, monkeypatch):
    if "engine" not in request.fixturenames:
        monkeypatch.setattr(downloads, "CACHE", tmp_path / "cache")


def test_one_makes_what_two_ask_for():
    makers, in_the_making, finish = [], threading.Event(), threading.Event()

    def make(folder):
        makers.append(threading.current_thread())
        in_the_making.set()
        finish.wait(60)
        (folder / "content").touch()

    first, second = (
        threading.Thread(target=downloads.made, args=("wheels/some", make)) for _ in range(2)
    )
    first.start()
    assert in_the_making.wait(60)
    second.start()
    finish.set()
    first.join()
    second.join()
    assert makers == [first]
    assert (downloads.CACHE / "wheels/some/content").exists()


def test_a_failure_leaves_nothing_that_would_be_taken_for_the_whole():
    def failing(folder):
        (folder / "half").touch()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        downloads.made("wheels/some", failing)
    folder = downloads.made("wheels/some", lambda folder: (folder / "whole").touch())
    assert [path.name for path in folder.iterdir()] == ["whole"]
    assert downloads.made("wheels/some", failing) == folder


KILLED = """
import os
from benchmarks.downloads import made
made("wheels/some", lambda folder: ((folder / "half").touch(), os.kill(os.getpid(), 9)))
"""


def test_what_a_killed_process_left_is_cleared_away_and_made_anew():
    here = {**os.environ, "KVLINT_ENGINES_CACHE": str(downloads.CACHE)}
    killed = subprocess.run([sys.executable, "-c", KILLED], env=here, cwd=ROOT)
    assert killed.returncode == -9
    folder = downloads.made("wheels/some", lambda folder: (folder / "whole").touch())
    assert {path.name for path in folder.parent.iterdir()} == {"some", ".some.lock"}
    assert [path.name for path in folder.iterdir()] == ["whole"]


def test_a_wheel_that_there_is_not_is_named_with_the_platform(tmp_path):
    with pytest.raises(downloads.NoWheelError) as caught:
        downloads.pip("download", "--no-index", "--dest", tmp_path, "sglang==0.5.23")
    assert str(caught.value) == f"no wheel of sglang==0.5.23 for {downloads.here()}"


def test_an_index_that_cannot_be_reached_is_no_missing_wheel(tmp_path):
    nowhere = ("--index-url", "http://127.0.0.1:9/simple", "--retries", "1")
    with pytest.raises(RuntimeError, match="Retrying"):
        downloads.pip("download", *nowhere, "--dest", tmp_path, "sglang==0.5.23")
