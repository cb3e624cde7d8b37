"""The faults that are planted between two processes, and who names each, where and at which stage.

One entry of `FAULTS` is one fault: how it is played, and the check that has to name it. What must
happen in flight is tried until a post was not over when it came back, or it is not played.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from two_processes.workers import Workers

ATTEMPTS = 10
V4, MLA = "DeepSeek-V4", "MLA"
KEY, ANOTHER = "the key that two sides share", "the key of somebody else"


@dataclass
class Scene:
    """Both sides, armed and met.

    pages    of a request, of MLA; what is in flight takes all of them, in order
    in_vram  whether they lie on devices
    """

    workers: Workers
    pages: int
    in_vram: bool
    text: str = "request"
    attempts: int = 1

    @property
    def run(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(self.pages) + 1, np.arange(self.pages) + 3

    @property
    def few(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([5, 6, 0, 7]), np.array([2, 4, 1, 3])

    def flies(
        self, plant: str, check: str, slots: tuple[np.ndarray, np.ndarray] | None = None
    ) -> bool:
        """Post with `plant` in flight until that was seen by `check`; whether it was ever in
        flight. Each is brought to its end."""
        ours, theirs = slots or self.run
        ask, both = self.workers.ask, self.workers.both
        # The connection is made by the first one, which is small.
        ask("prefill", "post", MLA, *self.few, f"{self.text}, the first", None)
        both(("complete",), ("notice",))
        ever = False
        for self.attempts in range(1, ATTEMPTS + 1):
            text = f"{self.text} {self.attempts}"
            ever |= ask("prefill", "post", MLA, ours, theirs, text, plant)
            both(("complete",), ("notice",))
            both(("wait", 0.1), ("wait", 0.1))
            if any(one["check"] == check for one in ask("prefill", "found")):
                break
        return ever

    def arrives(self, pool: str, spoil: tuple[Any, ...] | None = None) -> None:
        """A transfer that is over, and what is done at decode before that reads of it."""
        self.workers.ask("prefill", "post", pool, *self.few, self.text, None)
        self.workers.ask("prefill", "complete")
        if spoil is not None:
            self.workers.ask("decode", "spoil", pool, *spoil)
        self.workers.ask("decode", "notice")
        self.workers.both(("wait", 0.1), ("wait", 0.1))


def nothing(scene: Scene) -> bool:
    for pool in (V4, MLA):
        scene.text = f"request of {pool}"
        scene.arrives(pool)
    return True


def one_stride(scene: Scene) -> bool:
    pages = np.array([0, 2]), np.array([1, 3])
    scene.workers.ask("prefill", "index", V4, *pages, 164, False)
    return True


def exchanged_indices(scene: Scene) -> bool:
    pages = np.array([0, 2]), np.array([1, 3])
    scene.workers.ask("prefill", "index", V4, *pages, None, True)
    return True


def early_read(scene: Scene) -> bool:
    ours, theirs = scene.few
    scene.workers.ask("prefill", "store", "A", MLA, ours)
    scene.workers.ask("decode", "note", "read", "A", MLA, theirs)
    scene.arrives(MLA)
    scene.workers.ask("decode", "note", "arrival", "A", MLA, theirs)
    return True


def written(scene: Scene) -> bool:
    return scene.flies("write", "source-changed")


def written_by_a_kernel(scene: Scene) -> bool:
    if not scene.in_vram:
        return False
    random = np.random.default_rng(5)
    ours, theirs = (random.permutation(side) for side in scene.run)
    return scene.flies("kernel", "source-changed", (ours, theirs))


def reused(scene: Scene) -> bool:
    scene.workers.ask("prefill", "store", "A", MLA, scene.run[0])
    return scene.flies("reuse", "page-reused")


def released(scene: Scene) -> bool:
    return scene.flies("release", "released-in-flight")


def overwritten(scene: Scene) -> bool:
    scene.arrives(MLA, (2, 4, None))
    return True


def exchanged_pages(scene: Scene) -> bool:
    scene.arrives(MLA, (3, 1, 4))
    return True


@dataclass(frozen=True)
class Fault:
    """
    check   that names it; "" where nothing is to be said
    side    whose process does
    flying  whether a transfer has to be in flight
    key     decode's
    """

    name: str
    play: Callable[[Scene], bool]
    mode: str
    check: str
    side: str = "prefill"
    flying: bool = False
    key: str = KEY
    devices_only: bool = False


FAULTS = (
    Fault("nothing is wrong", nothing, "paranoid", ""),
    Fault("one stride for all regions, i * 164 + page", one_stride, "assert", "column"),
    Fault("blocks of two regions exchanged", exchanged_indices, "assert", "pairing"),
    Fault("decode reads before the pages arrive", early_read, "assert", "early-read", "decode"),
    Fault("the source is written in flight", written, "paranoid", "source-changed", flying=True),
    Fault(
        "the source is written in flight, by a kernel while a post of pages in random order blocks",
        written_by_a_kernel,
        "paranoid",
        "source-changed",
        flying=True,
        devices_only=True,
    ),
    Fault("pages are reused in flight", reused, "paranoid", "page-reused", flying=True),
    Fault("a handle is released in flight", released, "assert", "released-in-flight", flying=True),
    Fault(
        "a byte changes at decode before it reads the notification",
        overwritten,
        "paranoid",
        "arrived-wrong",
        "decode",
    ),
    Fault(
        "pages of two regions are exchanged at decode",
        exchanged_pages,
        "paranoid",
        "arrived-wrong",
        "decode",
    ),
    Fault("decode has another key: nothing is told it", nothing, "paranoid", "", key=ANOTHER),
)


@dataclass
class Played:
    """What became of a fault.

    played    whether it could be
    attempts  that it took
    told    by side, what was found there and counted
    """

    fault: Fault
    played: bool
    attempts: int
    told: Mapping[str, Mapping[str, Any]]

    @property
    def named(self) -> Mapping[str, Any] | None:
        """What has named it."""
        found = self.told[self.fault.side]["found"] if self.told else []
        return next((one for one in found if one["check"] == self.fault.check), None)

    @property
    def others(self) -> list[tuple[str, Mapping[str, Any]]]:
        """What else was told, each check of a stage once."""
        seen, kept = set(), []
        for side, told in self.told.items():
            for one in told["found"]:
                key = side, one["check"], one["at"]
                if one is not self.named and key not in seen:
                    seen.add(key)
                    kept.append((side, one))
        return kept

    @property
    def right(self) -> bool:
        """Whether what had to be said was, and nothing where nothing had to be."""
        errors = any(told["tool_errors"] for told in self.told.values())
        if not self.fault.check:
            compared = 2 if self.fault.key == KEY else 0
            silent = not any(told["found"] for told in self.told.values())
            return silent and not errors and self.compared == compared
        return (self.named is not None or not self.played) and not errors

    @property
    def compared(self) -> int:
        return self.count("decode", "digests", "transfers compared")

    def count(self, side: str, of: str, what: str) -> int:
        return int(self.told[side].get(of, {}).get(what, 0)) if self.told else 0

    def row(self) -> str:
        fault = self.fault
        messages = (
            f"{self.count('prefill', 'exchange', 'sent')} / "
            f"{self.count('decode', 'exchange', 'received')}"
        )
        start = f"| {fault.name} | {fault.mode} |"
        if not self.played:
            return f"{start} not played: nothing was in flight when a post came back | | | | |"
        named = self.named
        if named is None:
            said = "NOT NAMED" if fault.check else "nothing is said, as it should be"
            said = said if self.right or fault.check else "SOMETHING IS SAID"
            return f"{start} {said} | | | {messages} | {self.compared} |"
        code = f" [{named['code']}]" if named["code"] else ""
        place = ", ".join(
            f"{word} {named[word]}"
            for word in ("region", "slot", "byte")
            if named[word] is not None
        )
        return (
            f"{start} {named['check']}{code} | {fault.side}, {named['at']} | {place} "
            f"| {messages} | {self.compared} |"
        )

    def notes(self) -> list[str]:
        said = [(self.fault.side, self.named)] if self.named else []
        often = f" (in {self.attempts} attempts)" if self.attempts > 1 else ""
        return [
            f"* {self.fault.name}{often}: {side}, {one['at']}: {one['check']}: {one['message']}"
            for side, one in [*said, *self.others]
        ]


HEAD = (
    "| what is wrong | mode | check | named by, at | place | messages sent / come | compared |\n"
    "|---|---|---|---|---|---:|---:|"
)


def play(workers: Workers, fault: Fault, number: int, pages: int, in_vram: bool) -> Played:
    """One fault, with agents of its own."""
    # Without NIXL's thread the target of what is in flight does nothing before it is asked.
    how = fault.mode, number, not fault.flying
    decode = workers.ask("decode", "begin", *how, fault.key)
    workers.ask("prefill", "begin", *how, KEY)
    workers.ask("prefill", "meet", *decode)
    scene = Scene(workers, pages, in_vram)
    played = fault.play(scene)
    ours, theirs = ended(workers)
    return Played(fault, played, scene.attempts, {"prefill": ours, "decode": theirs})


def ended(workers: Workers) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Both disarm, and tell what was found. What prefill tells decode goes to an agent that is
    still there."""
    workers.both(("settle",), ("settle",))
    return workers.ask("prefill", "end"), workers.ask("decode", "end")
