"""Prefill and decode in two processes, a GPU each: faults, clean transfers, what checking costs.

    PYTHONPATH=. python benchmarks/gpu/two_gpus.py [--parts faults,clean,cost] [--write FILE]

Real NIXL between the pools of DeepSeek-V4 for 40,960 tokens (21 buffers of 164 pages, 21 of 161 and
20 of 288, of 37,440, 8,448 and 1,728 bytes a page of 256 tokens) and those of an MLA model (61
layers, pages of 64 tokens of 1,152 bytes). It needs torch, triton, numpy, nixl and wrapt. Without
CUDA, or where NIXL takes no GPU memory, it says so and goes on in host memory, with fewer tokens;
with one GPU both processes use that. The exit status is 1 where something was not as it should be.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("NIXL_LOG_LEVEL", "ERROR")
os.environ.setdefault("UCX_LOG_LEVEL", "error")

from two_processes.costs import MODES, Costs, cases, measure
from two_processes.faults import FAULTS, HEAD, Fault, ended, play
from two_processes.session import Session
from two_processes.workers import LostError, OverError, Workers

# Bytes move by sockets that hold little, when both sides are asked: in flight as long as the target
# is not.
BY_SOCKETS = {"UCX_TCP_SNDBUF": "32k", "UCX_TCP_RCVBUF": "32k"}
FEW = 16
"""Pages of a request that goes by sockets."""
SOON = 4.0
"""Seconds between two looks at what a long part has come to."""


def faults(session: Session) -> None:
    """What is in flight goes by sockets at once in host memory; on devices where no post was ever
    in flight otherwise."""
    report, in_vram = session.report, session.in_vram
    report.say("\n## Faults across the two processes\n")
    report.say(HEAD)
    notes, later = [""], list[Fault]()
    report.draft = lambda: notes
    tls = "tcp,cuda_copy" if in_vram else "tcp"

    def played(workers: Workers, fault: Fault, pages: int, how: str) -> None:
        found = play(workers, fault, next(session.numbers), pages, in_vram)
        if not found.played and not how and not fault.devices_only:
            later.append(fault)
            return
        session.problems += not found.right
        report.say(found.row())
        notes.extend(f"{line}{how}" for line in found.notes())

    def go(
        some: list[Fault],
        workers: Callable[[], AbstractContextManager[Workers]],
        pages: int,
        how: str = "",
    ) -> None:
        """Whatever one of them does to its processes, the next is played by others."""
        left = list(some)
        while left:
            try:
                with workers() as both:
                    while left:
                        fault = left.pop(0)
                        played(both, fault, pages, how)
            except OverError:
                raise
            except LostError as error:
                why = str(error).replace("\n", "; ").replace("|", "/")
                session.problem(f"| {fault.name} | {fault.mode} | LOST: {why} | | | | |")

    every = [fault for fault in FAULTS if in_vram or not fault.devices_only]
    at_once = [fault for fault in every if in_vram or not fault.flying]
    go(at_once, session.workers, session.pages)
    later += [fault for fault in every if fault not in at_once]
    few = min(session.pages, FEW)
    if later:
        how = f" (by UCX_TLS={tls})"
        go(later, lambda: session.others({"UCX_TLS": tls, **BY_SOCKETS}, few), few, how)
    report.say_draft()


def clean(session: Session) -> None:
    report = session.report
    report.say("\n## Clean transfers between two processes of one key\n")
    report.say(
        "| mode | transfers | WRITE / READ | compared | pages digested | findings "
        "| internal errors | ms each | messages sent / come | of them dropped, lost, refused |\n"
        "|---|---:|---:|---:|---:|---:|---|---:|---:|---|"
    )
    share = session.ends("clean") - time.monotonic()
    for mode in ("assert", "paranoid"):
        _clean_in(session, mode, share / 2 - 2 * SOON)


def _clean_in(session: Session, mode: str, seconds: float) -> None:
    report, wanted = session.report, session.asked.transfers
    began, done, compared, step = time.monotonic(), 0, 0, 10
    report.draft = lambda: [f"| {mode} | {done:,} so far | | {compared:,} | | | | | | |"]
    with session.workers() as workers:
        session.begin(workers, mode)
        while done < wanted and time.monotonic() < began + seconds:
            step, asked = min(step, wanted - done), time.monotonic()
            _, one = workers.both(("clean_ours", done, step), ("clean_theirs", done, step))
            done, compared = done + step, compared + one
            step = max(1, int(step * min(10, SOON / (time.monotonic() - asked))))
            report.keep()
            report.progress(f"{mode}: {done:,} of {wanted:,}")
        spent = time.monotonic() - began
        told = ended(workers)
    report.draft = list
    found = [one for side in told for one in side["found"]]
    errors = {**told[0]["tool_errors"], **told[1]["tool_errors"]}
    digested = sum(side["digests"].get("pages digested", 0) for side in told)
    ours, theirs = (Counter(side.get("exchange", {})) for side in told)
    letters = f"{ours['sent']:,} / {theirs['received']:,}"
    amiss = {n: c for n, c in (ours + theirs).items() if n not in ("sent", "received")}
    reads = -(-done // 3)
    report.say(
        f"| {mode} | {done:,} | {done - reads:,} / {reads:,} | {compared:,} | {digested:,} "
        f"| {len(found)} | {errors or 'none'} | {spent / max(done, 1) * 1000:.2f} "
        f"| {letters} | {amiss or 'none'} |"
    )
    for one in found[:5]:
        session.problem(f"    FALSE: {one['at']}: {one['check']}: {one['message']}")
    if errors or compared != done:
        session.problem(f"    {done - compared:,} not compared: {dict(told[1]['digests'])}")
    if done < wanted:
        session.problem(f"    the time was over after {done:,} of {wanted:,}")


def cost(session: Session) -> None:
    report, asked = session.report, session.asked
    chosen = cases(session.tokens, session.shapes())
    costs = Costs(chosen, session.in_vram)
    report.say("\n## Cost: real transfers in turn, off, log, assert, paranoid\n")
    report.draft = costs.lines
    longest, ends = 0.0, session.ends("cost")
    with session.workers() as workers:
        for number in range(asked.rounds):
            began = time.monotonic()
            if ends - began < 1.2 * longest:
                report.progress(f"the time is over after {number} rounds")
                break
            first = number % len(MODES)
            for mode in (*MODES[first:], *MODES[:first]):
                session.begin(workers, mode)
                for case in chosen:
                    costs.add(case, mode, *measure(workers, case, number, mode, asked.repeats))
                costs.ended(ended(workers))
            longest = max(longest, time.monotonic() - began)
            report.keep()
            report.progress(f"round {number + 1}: {time.monotonic() - began:.0f} s")
    report.say_draft()
    session.problems += costs.wrong


PARTS = {"faults": faults, "clean": clean, "cost": cost}


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    if set(parts) - set(PARTS) or len(set(parts)) < len(parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of {', '.join(PARTS)}")
    return parts


def _tokens(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", type=_parts, default=list(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument(
        "--tokens", type=_tokens, help="of requests: 1024,8192,49152, in host memory 1024"
    )
    parser.add_argument("--rounds", type=int, default=5, help="of all modes, in the time there is")
    parser.add_argument("--repeats", type=int, default=3, help="of each transfer in a round")
    parser.add_argument("--transfers", type=int, default=5000, help="clean ones, in each mode")
    parser.add_argument("--budget", type=float, default=570, help="seconds, for all of it")
    parser.add_argument("--write", type=Path, help="keep what is printed in this file")
    session = Session(parser.parse_args())
    report = session.report
    report.say("# Prefill and decode in two processes\n")
    wanted = {name: PARTS[name] for name in session.asked.parts}
    for name, part in {"look": Session.look, **wanted}.items():
        try:
            part(session)
        except LostError as error:
            report.say_draft()
            session.problem(f"\nLost in {name}: {error}")
            if name == "look" or isinstance(error, OverError):
                break
    session.close()
    if session.problems:
        report.say(f"\nNot as it should be: {session.problems}.")
    return 1 if session.problems else 0


if __name__ == "__main__":
    sys.exit(main())
