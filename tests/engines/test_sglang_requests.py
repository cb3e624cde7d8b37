"""Requests between the two sides of released SGLang, in one process: its own managers, sender,
receiver, bootstrap server and pools of DeepSeek-V4, over real NIXL in host memory, with kvlint
armed by SGLang's own loader of plug-ins.

0.5.21 takes the slots of its first region for those of all, and its index-K has three less.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines.wheels import unpacked

ROOT = Path(__file__).parents[2]
INDEX_KEYS = ["layer 2 c4 index key", "layer 4 c4 index key"]


@pytest.fixture
def served(engine, tmp_path):
    """What became of requests, what was found, and what stands on standard error."""

    def serve(version: str, mode: str, *arguments: str) -> tuple[Any, list[Any], str]:
        report = tmp_path / "report"
        ran = engine(f"sglang=={version}").run(
            "sglang_request.py", *arguments, KVLINT_RUNTIME=mode, KVLINT_REPORT=str(report)
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout.splitlines()[-1]), violations(report), ran.stderr

    return serve


def violations(report: Path) -> list[Any]:
    lines = [line for file in report.glob("violations-*") for line in file.read_text().splitlines()]
    return [record for record in map(json.loads, lines) if "repeat_of" not in record]


def brief(records: list[Any]) -> list[tuple[Any, ...]]:
    return [(r["check"], r["code"], r["side"], r["region_name"], r["slot"]) for r in records]


PAST_THE_END = ("out-of-region", "KV102", "remote", INDEX_KEYS[0], 161)
ELSEWHERE = ("column", "KV103", "local", INDEX_KEYS[1], 8)


def test_what_nixl_refuses_says_why(served):
    found, records, errors = served("0.5.21", "assert")
    assert found["slots"] == [164, 164, 161, 161, 288, 288]
    assert brief(records) == [PAST_THE_END]
    # The error is NIXL's own, as without kvlint, and so is what it does to the thread.
    refused = errors.index("nixlNotFoundError: NIXL_ERR_NOT_FOUND\n")
    note = errors[refused:].splitlines()[1]
    assert note.startswith("kvlint: remote region 2 'layer 2 c4 index key' (layer 2) is given 164")
    assert "Thread-9 (bootstrap_thread_guarded)" not in found["threads"]
    assert found["written"] == 0


def test_where_one_registration_holds_all_the_pages_land_elsewhere_and_that_is_told(served):
    found, records, _ = served("0.5.21", "log", "arena")
    assert found["ends"] == [["Success", "Success"]]
    assert found["right"] == [[True] * 4] * 3 + [[False] * 4] * 3
    assert brief(records) == [PAST_THE_END, ELSEWHERE]
    assert records[0]["values"] == {"slots given for region 2": 164, "slots of region 2": 161}
    assert records[1]["values"] == {"descriptors before region 3": 489, "3 * 164": 492}
    # Both are calls that move nothing yet.
    assert [r["sites"][-1]["call"] for r in records] == ["prep_xfer_dlist", "make_prepped_xfer"]


def test_in_mode_assert_requests_fail_one_by_one_and_the_bootstrap_thread_lives(served):
    found, _, errors = served("0.5.21", "assert", "arena", "2")
    # The second one was bootstrapped after the first had failed.
    assert found["ends"] == [["Failed", "Failed"], ["Failed", "Failed"]]
    assert any("bootstrap_thread_guarded" in name for name in found["threads"])
    assert sum("transfer_worker" in name for name in found["threads"]) == 4
    assert found["written"] == 0
    assert "Unexpected transfer worker error for room 1" in errors
    assert "runtime_checks.violations.Violation: remote region 2 'layer 2 c4 index key'" in errors


@pytest.mark.parametrize("version", ["0.5.22", "0.5.23"])
def test_repaired_releases_are_silent_and_every_page_is_right(served, version):
    found, records, errors = served(version, "assert", "2")
    assert found["slots"] == [164, 164, 164, 164, 288, 288]
    assert found["ends"] == [["Success", "Success"], ["Success", "Success"]]
    assert found["right"] == [[True] * 4] * 6
    assert found["written"] == 4 * 6
    assert records == []
    assert "kvlint: violation" not in errors
    assert "kvlint: internal error" not in errors


CODE = ("sglang/srt/disaggregation/nixl/conn.py", "sglang/srt/mem_cache/deepseek_v4_memory_pool.py")


def kvlint(*arguments: object, folder: Path = ROOT) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "kvlint", *map(str, arguments)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize(
    ("version", "arguments", "answers"),
    [
        (
            "0.5.21",
            ["arena"],
            {
                ("KV101", "NixlKVManager.__init__", "unguarded", "refuted"),
                ("KV102", "NixlKVManager._prep_equal_tp_dlist", "unguarded", "refuted"),
                ("KV103", "NixlKVManager._send_kvcache_generic", "unguarded", "refuted"),
                ("KV103", "NixlKVManager._send_kvcache_generic", "guarded", "confirmed"),
                ("KV103", "NixlKVManager.send_kvcache_mixed", "unguarded", "not exercised"),
                ("KV105", "DeepSeekV4IndexerPool._create_buffer", "unguarded", "refuted"),
            },
        ),
        (
            "0.5.23",
            ["2"],
            {
                ("KV102", "NixlKVManager._prep_equal_tp_dlist", "guarded", "confirmed"),
                ("KV103", "NixlKVManager._send_kvcache_generic", "guarded", "confirmed"),
                ("KV103", "NixlKVManager.send_kvcache_mixed", "guarded", "not exercised"),
                ("KV105", "DeepSeekV4IndexerPool._create_buffer", "guarded", "confirmed"),
            },
        ),
    ],
)
def test_what_is_assumed_of_the_code_is_refuted_or_confirmed_by_requests(
    served, tmp_path, version, arguments, answers
):
    served(version, "log", *arguments)
    report, root = tmp_path / "report", unpacked(f"sglang=={version}")
    emitted = report / "assumptions.json"
    kvlint("check", *CODE, "--project", ".", "--emit-assumptions", emitted, folder=root)
    told = json.loads(kvlint("report", report, "--output-format", "json").stdout)
    found = {
        (one["code"], one["definition"], one["status"], one["answer"]) for one in told["hypotheses"]
    }
    assert answers <= found
    assert ("refuted" in {one[3] for one in found}) == (version == "0.5.21")
