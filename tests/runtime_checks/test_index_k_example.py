"""examples/index_k_bf16: of each planted fault kvlint names the stage and the cause."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

for wheel in ("torch", "triton", "wrapt"):
    pytest.importorskip(wheel, reason=f"the wheel {wheel} is missing")
pytestmark = [
    pytest.mark.usefixtures("nixl"),
    pytest.mark.skipif(sys.platform != "linux", reason="process_vm_readv is Linux's"),
]

ROOT = Path(__file__).parents[2]
SERVE = "examples.index_k_bf16.serve"


def serve(*arguments, how=("-m", SERVE)):
    return subprocess.run(
        [sys.executable, *how, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Every fault in bf16: the table's lines by fault, and what was told of each."""
    report = tmp_path_factory.mktemp("index-k")
    done = serve("--all", "--dtype", "bf16", "--report", report)
    assert done.returncode == 70, done.stderr
    text = (ROOT / "examples/index_k_bf16/README.md").read_text(encoding="utf-8")
    shown = text.split("<!-- table:start -->")[1].split("<!-- table:end -->")[0]
    assert [line.split() for line in done.stdout.splitlines()[1:]] == [
        line.split() for line in shown.strip().splitlines()
    ]
    lines, name = {}, None
    for line in done.stdout.splitlines()[2:]:
        name = line.split()[0] if line[0] != " " else name
        lines.setdefault(name, []).append(" ".join(line.split()))

    def played(fault):
        records = [
            json.loads(line)
            for file in (report / f"{fault}-bf16").glob("violations*.jsonl")
            for line in file.read_text().splitlines()
        ]
        return lines[fault], [record for record in records if "check" in record]

    return played


def test_without_a_fault_every_answer_is_right_and_nothing_is_said(played):
    assert played("none") == (["none bf16 - 0 - -"], [])


def test_an_item_length_of_fp8_is_named_at_the_pool(played):
    lines, told = played("fp8-item-length")
    assert lines == ["fp8-item-length bf16 A, B, C, D 70 guard_pool item-length"]
    assert told[0]["message"] == (
        "kv.prefill region 2 'layer 0 index-K' has item length 8448, a slot is 1 row of 16384 "
        "bytes; slot 1 begins at byte 16384, not 8448"
    )


def test_a_constant_stride_is_named_where_the_transfer_is_made(played):
    lines, told = played("constant-stride")
    assert lines == ["constant-stride bf16 A, B, C, D 70 make_prepped_xfer column"]
    assert {(r["code"], r["side"], r["region_name"]) for r in told} == {
        ("KV103", "local", "layer 1 index-K"),
        ("KV103", "remote", "layer 1 index-K"),
    }
    assert "is 3 * 128 + 2 and meant for region 3 slot 2" in told[0]["message"]


def test_a_read_before_the_arrival_is_named_at_the_read(played):
    lines, told = played("early-read")
    assert lines == ["early-read bf16 A, B, C 70 stage read early-read"]
    messages = [record["message"] for record in told]
    assert "(page 0 of request A) is taken at read while transfer " in messages[0]
    assert messages[0].endswith(", of which nobody has seen the end, still writes it")
    assert any(
        "(page 0 of request A) was read before an arrival of it was noted" in m for m in messages
    )


def test_pages_filled_anew_in_flight_are_named_at_the_store_and_at_completion(played):
    lines, told = played("reused-page")
    assert lines[:2] == [
        "reused-page bf16 A 70 stage store page-reused",
        "completion source-changed",
    ]
    assert set(lines[2:]) <= {"stage arrival page-misplaced", "stage arrival page-changed"}
    reused, changed, *arrived = (record["message"] for record in told)
    assert "(page 0 of request D) is put there at store while transfer " in reused
    assert reused.endswith("still reads page 0 of request A, noted there at send")
    assert "changed between post and completion" in changed
    for message in arrived:
        assert "of request A) changed between send (prefill slot " in message
        assert message.partition(" (and ")[0].endswith(" of request D was put there")


def test_a_store_to_the_wrong_page_is_named_with_both_requests(played):
    lines, told = played("wrong-page")
    assert lines[0] == "wrong-page bf16 A, B 70 stage send page-misplaced"
    message = told[0]["message"]
    assert message.startswith(
        "layer 0 index-K slot 2 (page 0 of request A) changed between store and send: from "
    )
    assert "it holds what belongs to page 0 of request B (layer 0 index-K)" in message


def test_a_read_kernel_that_is_wrong_in_a_batch_is_named_offline(played):
    lines, told = played("batch-read")
    assert lines == ["batch-read bf16 B, C, D 70 read kernel offline test"]
    assert told == []


def test_one_fault_is_shown_in_words_and_leaves_a_report(tmp_path):
    done = serve("--fault", "reused-page", "--dtype", "fp8", "--report", tmp_path)
    assert done.returncode == 70
    where, fault, asis, watched, *told = done.stdout.splitlines()
    assert where.startswith("fp8 on cpu: pages of 8448 bytes, in ")
    assert fault.startswith("fault: reused-page: prefill frees pages that are still being sent")
    assert asis.startswith("as it is: 4 of 4 requests answered, wrong: A; ")
    assert ", none wrong; " in watched
    assert [line.partition(": ")[0] for line in told][:2] == [
        "kvlint, at stage store",
        "kvlint, at completion",
    ]
    command = [sys.executable, "-m", "kvlint", "report", str(tmp_path)]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 1
    assert "page-reused" in shown.stdout


# Read some time after they were begun, as those of a GPU are.
LATE = """
import sys, time
from examples.index_k_bf16 import serve
from kvlint.runtime_checks.digests import digester

class Late(digester.Read):
    def __init__(self, found):
        super().__init__(found)
        object.__setattr__(self, "there", time.monotonic() + 0.05)

    def ready(self):
        return time.monotonic() > self.there

digester.Read = Late
sys.exit(serve.main())
"""


def test_digests_that_come_late_name_the_same(played):
    faults = ("none", "early-read", "reused-page", "wrong-page")
    done = serve("--dtype", "bf16", "--fault", *faults, how=("-c", LATE))
    assert done.returncode == 70, done.stderr
    found = sorted(" ".join(line.split()) for line in done.stdout.splitlines()[2:])
    assert found == sorted(line for fault in faults for line in played(fault)[0])


def test_in_fp8_a_page_has_as_many_bytes_as_the_transport_is_told():
    done = serve("--fault", "fp8-item-length", "none", "--dtype", "fp8")
    assert done.returncode == 0
    assert [line.split()[2:] for line in done.stdout.splitlines()[2:]] == [["-", "0", "-", "-"]] * 2
