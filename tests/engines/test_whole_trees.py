"""A first run on a released engine is bearable, and a file says the same as its tree."""

import pytest

from tests.engines.wheels import findings

MOST = {"sglang==0.5.23": 50, "vllm==0.33.0": 30, "lmcache==0.5.6": 25}
FILES = [
    ("sglang==0.5.23", "sglang/srt/disaggregation/nixl/conn.py"),
    ("sglang==0.5.23", "sglang/srt/disaggregation/mooncake/conn.py"),
    ("sglang==0.5.23", "sglang/srt/disaggregation/common/staging_buffer.py"),
    ("sglang==0.5.23", "sglang/srt/mem_cache/deepseek_v4_memory_pool.py"),
    ("vllm==0.33.0", "vllm/distributed/kv_transfer/kv_connector/v1/nixl/base_worker.py"),
    ("vllm==0.33.0", "vllm/distributed/kv_transfer/kv_connector/v1/nixl/pull_worker.py"),
    ("vllm==0.33.0", "vllm/distributed/kv_transfer/kv_connector/v1/hf3fs/hf3fs_connector.py"),
]


@pytest.mark.parametrize("package", MOST)
def test_a_first_run_shows_few_places(package):
    by_default = [
        f for f in findings(package, ".") if (f["status"], f["confidence"]) == ("unguarded", "high")
    ]
    assert 0 < len(by_default) <= MOST[package]


@pytest.mark.parametrize(("package", "path"), FILES)
def test_a_file_alone_gives_what_the_tree_gives(package, path):
    in_tree = [f for f in findings(package, ".") if f["path"] == path]
    assert in_tree, "nothing is found in this file, so nothing is compared"
    assert list(findings(package, path)) == in_tree
