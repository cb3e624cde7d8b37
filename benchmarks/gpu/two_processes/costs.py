"""What transfers between the two processes take in each mode, at both sides, and what that adds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from two_processes.faults import MLA, V4
from two_processes.workers import Workers

MODES = ("off", "log", "assert", "paranoid")
STEPS = ("make", "post", "to the end", "afterwards", "notification")
OURS = STEPS[:4]
# What kvlint does in each: the reason of what it adds there.
WHY = (
    ("make", "the indices of both sides are checked"),
    ("post", "the source's digest is begun, and decode is told which rows come"),
    (
        "to the end",
        "digests share the memory with the transfer, and the source's is told to decode",
    ),
    ("afterwards", "what a device had not done by then is read and told"),
    ("notification", "decode finds the rows among its own memory, and begins their digest"),
)
PAGE_TOKENS = {V4: 256, MLA: 64}
AIMS = {"random order": 0.01, "in order": 0.20}


@dataclass(frozen=True)
class Case:
    """
    slots  of the pool's smallest region
    page   bytes of one page of all regions
    """

    pool: str
    tokens: int
    pages: int
    regions: int
    slots: int
    page: int
    order: str

    def __str__(self) -> str:
        return f"{self.pool}, {self.tokens:,} tokens, {self.order}"

    @property
    def size(self) -> str:
        count, size = self.pages * self.regions, self.pages * self.page
        return f"{count:,} pages, {size / 1e6:,.0f} MB"

    def chosen(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Slots of both sides."""
        if self.order == "in order":
            return np.arange(self.pages), np.arange(self.slots - self.pages, self.slots)
        random = np.random.default_rng([seed, self.pages])
        ours, theirs = (random.permutation(self.slots)[: self.pages] for _ in range(2))
        return ours, theirs


def cases(tokens: Sequence[int], shapes: Mapping[str, list[tuple[int, int]]]) -> list[Case]:
    """Of each pool, number of tokens and order; more than a pool holds is all that it holds."""
    found = []
    for pool, regions in shapes.items():
        of = PAGE_TOKENS[pool]
        slots, page = min(n for n, _ in regions), sum(size for _, size in regions)
        most = (slots - 1) * of
        for count in sorted({min(one, most) for one in tokens}):
            pages = max(1, count // of)
            found += [
                Case(pool, pages * of, pages, len(regions), slots, page, order)
                for order in ("in order", "random order")
            ]
    return found


def measure(
    workers: Workers, case: Case, number: int, mode: str, repeats: int
) -> tuple[list[dict[str, float]], bool]:
    """Each of the transfers, in seconds, without the first; and whether all bytes are there."""
    ours, theirs = case.chosen(number)
    times = repeats + 1
    sent, received = workers.both(
        ("send", case.pool, ours, theirs, times, f"{case} {mode}"), ("receive", times)
    )
    one, other = workers.both(("sums", case.pool, ours), ("sums", case.pool, theirs))
    rows = []
    for here, there in list(zip(sent, received, strict=True))[1:]:
        both = {**here, **there}
        both["notification"] = both["heard"] - both["done"]
        both["whole"] = both["heard"] - both["began"]
        both["prefill"] = sum(both[step] for step in OURS)
        rows.append(both)
    return rows, one == other


class Costs:
    """
    wrong   findings, faults of kvlint itself, wrong bytes and transfers that were not compared
    """

    def __init__(self, chosen: Sequence[Case], in_vram: bool) -> None:
        self._cases, self.wrong = chosen, 0
        self._in_vram = in_vram
        self._rows: dict[tuple[Case, str], list[dict[str, float]]] = {}
        self._transfers, self._notes = 0, list[str]()

    def add(self, case: Case, mode: str, rows: list[dict[str, float]], right: bool) -> None:
        self._rows.setdefault((case, mode), []).extend(rows)
        self._transfers += len(rows) + 1
        if not right:
            self._wrong(f"{case}, {mode}: not the bytes that were sent")
        missed = sum(not row["compared"] for row in rows)
        if missed and mode in ("assert", "paranoid"):
            self._wrong(f"{case}, {mode}: {missed} of {len(rows)} not compared")

    def ended(self, told: Sequence[Mapping[str, Any]]) -> None:
        for side in told:
            for one in side.get("found", []):
                self._wrong(f"FALSE: {one['check']}: {one['message']}")
            if side.get("tool_errors"):
                self._wrong(f"faults of kvlint itself: {side['tool_errors']}")

    def _wrong(self, line: str) -> None:
        self.wrong += 1
        self._notes.append(f"* {line}")

    def median(self, case: Case, mode: str, what: str) -> float:
        """In microseconds."""
        return statistics.median(row[what] for row in self._rows[case, mode]) * 1e6

    def spread(self, case: Case) -> float:
        """Half of what the middle half of `off` differs by."""
        wholes = [row["whole"] for row in self._rows[case, "off"]]
        if len(wholes) < 2:
            return 0.0
        low, _, high = statistics.quantiles(wholes, n=4)
        return (high - low) / 2 * 1e6

    def added(self, case: Case, mode: str, what: str) -> tuple[float, float]:
        """Microseconds, and as a share of the whole transfer with nothing armed."""
        more = self.median(case, mode, what) - self.median(case, "off", what)
        return more, more / self.median(case, "off", "whole")

    def complete(self, case: Case) -> bool:
        return all(self._rows.get((case, mode)) for mode in MODES)

    def lines(self) -> list[str]:
        """All that is known by now."""
        done = [case for case in self._cases if self.complete(case)]
        if not done:
            return [*self._notes, "Nothing was measured in all modes."]
        samples = len(self._rows[done[0], "off"])
        lines = [
            f"Microseconds, medians of {samples}, agents anew for each mode and round. *Whole*: "
            "from make to the notification in decode's hands; shares are of that with nothing "
            "armed. *Prefill adds*: to its calls from make to afterwards. *Decode's calls*: what "
            "its calls for notifications took beyond those that find nothing.",
            "",
            "| pages | mode | make | post | to the end | afterwards | notification | whole | added "
            "| prefill adds | decode's calls | decode adds |",
            f"|---|---|{'---:|' * 10}",
        ]
        for case in done:
            for mode in MODES:
                first = f"{case}: {case.size}" if mode == "off" else ""
                steps = " | ".join(f"{self.median(case, mode, step):,.0f}" for step in STEPS)
                whole, calls = (self.median(case, mode, what) for what in ("whole", "calls"))
                more = [self._more(case, mode, what) for what in ("whole", "prefill", "calls")]
                lines.append(
                    f"| {first} | {mode} | {steps} | {whole:,.0f} | {more[0]} | {more[1]} "
                    f"| {calls:,.0f} | {more[2]} |"
                )
        idle = [
            statistics.median(self.median(case, mode, "idle") for case in done) for mode in MODES
        ]
        told = ", ".join(f"{mode} {each:.1f}" for mode, each in zip(MODES, idle, strict=True))
        lines += ["", f"A call at decode that finds nothing: {told} microseconds.", ""]
        lines += self._goals(done)
        lines += [
            "",
            f"{self._transfers:,} transfers; wrong bytes, findings, not compared: {self.wrong}.",
        ]
        return [*lines, *self._notes]

    def _more(self, case: Case, mode: str, what: str) -> str:
        if mode == "off":
            return "-"
        more, share = self.added(case, mode, what)
        return f"{more:+,.0f} ({share:+.1%})"

    def _goals(self, done: Sequence[Case]) -> list[str]:
        if not self._in_vram:
            return ["The aims are for devices: host memory is read by the program's own thread."]
        lines = [
            "Aims for `assert`: at most 1 % of a scattered transfer, 20 % of a merged one.",
            "",
            "| pages | off, whole | assert adds to it | to prefill | to decode | aim | and where |",
            "|---|---:|---:|---:|---:|---:|---|",
        ]
        for case in done:
            share = max(
                self.added(case, "assert", what)[1] for what in ("whole", "prefill", "calls")
            )
            aim = AIMS[case.order]
            steps = {step: self.added(case, "assert", step)[0] for step in STEPS}
            most = sorted(STEPS, key=lambda step: -steps[step])[:3]
            why = ", ".join(f"{step} {steps[step]:+,.0f}" for step in most)
            off = f"{self.median(case, 'off', 'whole'):,.0f} ± {self.spread(case):,.0f}"
            each = (self._more(case, "assert", what) for what in ("whole", "prefill", "calls"))
            lines.append(
                f"| {case} | {off} | {' | '.join(each)} | {aim:.0%} "
                f"| {'met' if share <= aim else f'{share:.1%}'}: {why} |"
            )
        told = "; ".join(f"{step}: {what}" for step, what in WHY)
        return [*lines, "", f"What `assert` does in each step: {told}."]
