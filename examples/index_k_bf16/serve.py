"""Prefill and decode of four requests: index keys are stored, sent and read, right or not.

    python -m examples.index_k_bf16.serve --fault early-read
    python -m examples.index_k_bf16.serve --fault wrong-page --dtype fp8 --report DIR
    python -m examples.index_k_bf16.serve --all        every fault, fp8 and bf16, as a table
    python -m examples.index_k_bf16.serve --all --device cuda

Each fault is played twice: as it is, and then watched by kvlint. The exit status is 0 where all
was right and nothing was said, 70 where something was wrong and kvlint has named it, 1 otherwise.
"""

import argparse
import itertools
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from examples.index_k_bf16 import offline
from examples.index_k_bf16.chain import FAULTS, Chain
from examples.index_k_bf16.pools import PAGE_BYTES, SGLANG, WHY
from kvlint import runtime_checks

NAMED = 70
PLAYS = itertools.count(1)


@dataclass
class Play:
    """What became of the requests of one chain.

    right, pages  pages of all requests that hold what they should, and all
    """

    requests: list
    right: int
    pages: int

    @property
    def wrong(self):
        """Names of requests that are answered, and wrongly."""
        return [r.name for r in self.requests if not r.failed and min(r.overlaps, default=0) < 1]

    @property
    def failed(self):
        return [r for r in self.requests if r.failed]

    def in_words(self):
        count, failed = len(self.requests), len(self.failed)
        wrong = f"wrong: {', '.join(self.wrong)}" if self.wrong else "none wrong"
        pages = f"{self.right} of {self.pages} pages right"
        return f"{count - failed} of {count} requests answered, {wrong}; {pages}"


@dataclass
class Result:
    """
    asis, watched  both plays
    told           records of what kvlint has said, in its order
    offline        what the offline test says of the two kernels, where it was asked
    """

    fault: str
    dtype: str
    asis: Play
    watched: Play
    told: list
    offline: dict

    @property
    def named(self):
        return bool(self.told) or any(not report.right for report in self.offline.values())

    @property
    def status(self):
        harmless = not (self.asis.wrong or self.asis.failed or self.asis.right < self.asis.pages)
        if harmless:
            return 1 if self.named else 0
        return NAMED if self.named else 1

    def stages(self):
        """(where, check, message) of each thing told."""
        found = [(where(record), record["check"], record["message"]) for record in self.told]
        for name, report in self.offline.items():
            if not report.right:
                found.append((f"{name} kernel", "offline test", report.in_words()))
        return found


def where(record):
    """The stage, or the call, at which it was found."""
    sites = record.get("sites") or []
    return sites[-1]["call"] if sites else "transfer"


def played(fault, dtype, device):
    chain = Chain(fault, dtype, device, next(PLAYS))
    try:
        requests = chain.play()
        right = sum(map(chain.right_pages, requests))
        return Play(requests, right, sum(4 * request.pages for request in requests))
    finally:
        chain.close()


def run(fault, dtype, device, report):
    """Both plays."""
    asis = played(fault, dtype, device)
    runtime_checks.arm("paranoid", report=report)
    try:
        watched = played(fault, dtype, device)
    finally:
        runtime_checks.disarm()
    told = [
        json.loads(line)
        for file in sorted(Path(report).glob("violations*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    told = [record for record in told if "check" in record]
    result = Result(fault, dtype, asis, watched, told, {})
    if watched.wrong and not told:
        # Every page was right where it was read: what is left are the kernels.
        result.offline = {
            "store": offline.store_report(dtype, device=device),
            "read": offline.read_report(dtype, fault == "batch-read", device=device),
        }
    return result


def pool_in_words():
    if SGLANG:
        return "in SGLang's index pool"
    return f"in tensors as SGLang's index pool has them ({WHY})"


def show(result, device):
    print(
        f"{result.dtype} on {device}: pages of {PAGE_BYTES[result.dtype]} bytes, {pool_in_words()}"
    )
    print(f"fault: {result.fault}: {FAULTS[result.fault]}")
    print(f"as it is: {result.asis.in_words()}")
    print(f"watched:  {result.watched.in_words()}")
    for stage, check, message in result.stages():
        print(f"kvlint, at {stage}: {check}: {message}")
    if not result.named:
        print("kvlint has nothing to say")


def show_all(results):
    rows = [("fault", "type", "wrong as it is", "exit", "at", "check")]
    for one in results:
        wrong = ", ".join(one.asis.wrong) or "-"
        told = list(dict.fromkeys((stage, check) for stage, check, _ in one.stages()))
        for number, (stage, check) in enumerate(told or [("-", "-")]):
            first = (one.fault, one.dtype, wrong, str(one.status)) if not number else ("",) * 4
            rows.append((*first, stage, check))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description="Index keys from prefill to decode.")
    parser.add_argument("--fault", choices=FAULTS, nargs="+", help="what goes wrong")
    parser.add_argument("--dtype", choices=PAGE_BYTES, nargs="+", help="of index keys")
    parser.add_argument("--all", action="store_true", help="every fault, fp8 and bf16")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--report", help="folder for evidence; `kvlint report` reads it")
    asked = parser.parse_args()
    faults = asked.fault or (FAULTS if asked.all else ["none"])
    dtypes = asked.dtype or (PAGE_BYTES if asked.all else ["bf16"])
    chosen = [(fault, dtype) for dtype in dtypes for fault in faults]
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(asked.report or folder)
        if len(chosen) == 1:
            result = run(*chosen[0], asked.device, kept)
            show(result, asked.device)
            return result.status
        results = [
            run(fault, dtype, asked.device, kept / f"{fault}-{dtype}") for fault, dtype in chosen
        ]
    print(f"on {asked.device}, {pool_in_words()}")
    show_all(results)
    statuses = {result.status for result in results}
    return 1 if 1 in statuses else max(statuses)


if __name__ == "__main__":
    sys.exit(main())
