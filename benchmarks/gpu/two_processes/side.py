"""What one side of the transfers between two processes does and measures.

Each method is one question that the process in front of the two asks. `prefill` posts, `decode` is
posted to; what they tell each other directly are single words, so that neither is ahead.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from two_processes.endpoint import PAUSE, WAIT, Endpoint
from two_processes.workers import LostError

from kvlint.runtime_checks import Violation, stage

NOW = time.perf_counter  # CLOCK_MONOTONIC: one clock for both processes


class Side(Endpoint):
    """
    handle   of the transfer that is played with
    written  by a kernel of another stream, an event
    """

    handle: Any = None
    written: Any = None

    def end(self) -> dict[str, Any]:
        told = super().end()
        self.handle = None
        return told

    # What it costs.

    def send(
        self, pool: str, ours: np.ndarray, theirs: np.ndarray, times: int, text: str
    ) -> list[dict[str, float]]:
        """As often, each when decode is ready. In seconds: make, post, to the end, and what calls
        afterwards take until nothing is left to be told; `began` and `done` by the clock."""
        told = []
        for number in range(times):
            self.link.hear("ready")
            self.sync()
            marks = [NOW()]
            message = f"{text} {number}".encode()
            handle = self.make("WRITE", pool, ours, theirs, message)
            marks.append(NOW())
            self.agent.transfer(handle)
            marks.append(NOW())
            self.finish(handle)
            marks.append(NOW())
            self.agent.release_xfer_handle(handle)
            after = NOW() - marks[-1] + sum(self.polled(lambda: not self.late))
            make, post, wait = np.diff(marks).tolist()
            told.append(
                {"make": make, "post": post, "to the end": wait, "afterwards": after}
                | {"began": marks[0], "done": marks[-1]}
            )
        return told

    def polled(self, over: Callable[[], bool], seconds: float = 2.0) -> Iterator[float]:
        """Seconds of each call that asks for notifications, until it is over; none is to come."""
        end = time.monotonic() + seconds
        while True:
            began = NOW()
            self.agent.get_new_notifs()
            yield NOW() - began
            if over() or time.monotonic() > end:
                return
            time.sleep(PAUSE)

    def receive(self, times: int) -> list[dict[str, float]]:
        """As often: ask for notifications, as an engine does, until one is there and its transfer
        compared. `heard` by the clock; in seconds: a call that finds nothing (`idle`), and what all
        calls took beyond that (`calls`); `compared`, whether it was."""
        told = []
        for _ in range(times):
            before, each = self.counted(), []
            self.link.tell("ready")
            end = time.monotonic() + WAIT
            while True:
                began = NOW()
                news = self.agent.get_new_notifs()
                heard = NOW()
                each.append(heard - began)
                if news:
                    break
                if time.monotonic() > end:
                    raise LostError(f"no notification for {WAIT:.0f} s")
            *earlier, notice = each
            idle = statistics.median(earlier) if earlier else 0.0
            # Of thousands of calls those that did something: the rest is the machine's noise.
            busy = sum(spent - idle for spent in earlier if spent > 3 * idle + 20e-6)
            reads = self.reads()
            after = list(self.polled(lambda: not reads or self.counted() > before))  # noqa: B023
            calls = busy + notice + sum(spent for spent in after if reads)
            compared = float(self.counted() > before)
            told.append({"heard": heard, "idle": idle, "calls": calls, "compared": compared})
        return told

    def sums(self, pool: str, slots: np.ndarray) -> list[list[int]]:
        """A number a page, of the first, the middle and the last region."""
        regions = self.pools[pool]
        told = []
        for region in (regions[0], regions[len(regions) // 2], regions[-1]):
            words = region[torch.from_numpy(slots).to(region.device)].view(torch.int32).long()
            weights = torch.arange(1, words.shape[1] + 1, device=region.device)
            told.append((words * weights).sum(dim=1).tolist())
        return told

    # Clean ones.

    def drawn(self, number: int) -> tuple[str, str, np.ndarray, np.ndarray]:
        """What transfer of this number is: both sides draw the same."""
        random = np.random.default_rng([11, number])
        pool = list(self.pools)[number % len(self.pools)]
        slots = min(len(region) for region in self.pools[pool])
        # Host memory is read by the engine's own thread, much slower.
        most = min(16 if self.kind == "VRAM" else 3, slots)
        count = int(random.integers(1, most + 1))
        ours, theirs = (random.choice(slots, count, replace=False) for _ in range(2))
        return "READ" if number % 3 == 0 else "WRITE", pool, ours, theirs

    def refill(self, number: int) -> None:
        """Once in a while what will be sent is new."""
        if number % 25 == 0:
            regions = self.pools[list(self.pools)[number // 25 % len(self.pools)]]
            regions[number % len(regions)].random_(1, 255)

    def clean_ours(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            handle = self.persist(lambda: self.make(*self.drawn(number), b"room %d" % number))  # noqa: B023
            self.persist(lambda: self.agent.transfer(handle))  # noqa: B023
            self.persist(lambda: self.finish(handle))  # noqa: B023
            self.link.hear("seen")
            self.persist(lambda: self.agent.release_xfer_handle(handle))  # noqa: B023
            self.refill(number)
            # Pages are given to others when the device has read them.
            self.sync()
        self.settle()

    def clean_theirs(self, first: int, count: int) -> int:
        """How many were compared."""
        before = self.counted()
        for number in range(first, first + count):
            self.notice()
            self.refill(number)
            self.sync()
            self.link.tell("seen")
        self.settle(before + count, 5.0)
        return self.counted() - before

    def persist(self, call: Callable[[], Any]) -> Any:
        """What is raised late, in place of a call, was recorded: the call is made again."""
        for _ in range(10):
            with self.held():
                return call()
        return call()

    # Faults.

    @contextmanager
    def held(self) -> Iterator[None]:
        """What is raised was recorded, and what is played goes on."""
        with suppress(Violation):
            yield

    def index(
        self, pool: str, ours: np.ndarray, theirs: np.ndarray, stride: int | None, swapped: bool
    ) -> None:
        """Make a transfer with wrong indices, and send it if that is accepted."""
        here, there = (self.indices(pool, slots, stride) for slots in (ours, theirs))
        if swapped:
            blocks = there.reshape(len(self.pools[pool]), -1)
            blocks[[3, 4]] = blocks[[4, 3]]
        local, remote = self.lists[pool]
        with self.held():
            self.agent.make_prepped_xfer("WRITE", local, here, remote, there, b"wrong")

    def store(self, owner: str, pool: str, slots: np.ndarray) -> None:
        """New bytes."""
        for region in self.pools[pool]:
            at = torch.from_numpy(slots).to(region.device)
            shape = (len(slots), region.shape[1])
            region[at] = torch.randint(1, 255, shape, dtype=torch.uint8, device=region.device)
        self.note("store", owner, pool, slots)

    def note(self, name: str, owner: str, pool: str, slots: np.ndarray) -> None:
        with self.held():
            stage(name, owner=owner, pool=self.names[pool][0].split()[-1], slots=slots)
        self.sync()

    def post(
        self, pool: str, ours: np.ndarray, theirs: np.ndarray, text: str, plant: str | None
    ) -> bool:
        """Post, and do `plant` in flight. Whether it was in flight."""
        self.handle = self.make("WRITE", pool, ours, theirs, text.encode())
        self.sync()
        if plant == "kernel":
            early = self.write_later(pool, ours)
            self.agent.transfer(self.handle)
            return not early and bool(self.written.query())
        flies = self.agent.transfer(self.handle) == "PROC"
        if flies and plant is not None:
            with self.held():
                getattr(self, plant)(pool, ours)
        return flies

    def write(self, pool: str, slots: np.ndarray) -> None:
        self.pools[pool][1][int(slots[-1]), 77] ^= 1

    def write_later(self, pool: str, slots: np.ndarray) -> bool:
        """By another stream of the device, some milliseconds after this call: a post of scattered
        pages only comes back when most of them are sent. Whether it has written already."""
        for _ in range(2):  # twice is not at all; its kernels are loaded then
            self.write(pool, slots)
        self.sync()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(40_000_000)  # cycles
            self.write(pool, slots)
            self.written = torch.cuda.Event()
            self.written.record()
        return bool(self.written.query())

    def reuse(self, pool: str, slots: np.ndarray) -> None:
        """Another request gets the last of the pages."""
        for region in self.pools[pool]:
            region[int(slots[-1])] = 5
        self.note("store", "B", pool, slots[-1:])

    def release(self, pool: str, slots: np.ndarray) -> None:
        self.agent.release_xfer_handle(self.handle)

    def complete(self) -> None:
        """Until it is over."""
        end = time.monotonic() + WAIT
        done = False
        while not done and time.monotonic() < end:
            with self.held():
                done = self.agent.check_xfer_state(self.handle) == "DONE"
        if not done:
            raise LostError(f"a transfer is not over after {WAIT:.0f} s")
        with self.held():
            self.agent.release_xfer_handle(self.handle)
        self.settle()

    def spoil(self, pool: str, region: int, slot: int, other: int | None) -> None:
        """A byte of a page here, or the page and that of another region are exchanged."""
        regions = self.pools[pool]
        if other is None:
            regions[region][slot, 77] ^= 1
        else:
            one, two = regions[region][slot].clone(), regions[other][slot].clone()
            regions[region][slot], regions[other][slot] = two, one

    def notice(self) -> None:
        """Read the notification. What it raises is recorded, and the notification not lost."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            with self.held():
                if self.agent.get_new_notifs():
                    return
            # Where cores are few the other side needs this one.
            os.sched_yield()
        raise LostError(f"no notification for {WAIT:.0f} s")

    def wait(self, seconds: float) -> None:
        """What the other process tells comes in calls."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self.held():
                self.agent.get_new_notifs()
            time.sleep(0.002)
