"""Transfers that are really in flight: UCX moves bytes by TCP, `transfer` returns before the end.

Each scenario is a function that gets a fresh pair of hosts; what was found in it is told as JSON.
"""

import gc
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from nixl._bindings import NIXL_IN_PROG, nixlRepostActiveError

from kvlint import runtime_checks
from kvlint.geometry import Geometry, Region
from kvlint.runtime_checks import arming
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.hosts import Host, fill, regions, rows3, rows5

SCENARIOS: list[Callable[["Stage"], None]] = []
SLOTS, LENGTH = 8, 4 << 20
KEPT: list[Any] = []
"""What bytes may still be moved to after a scenario has ended."""


def scenario(play: Callable[["Stage"], None]) -> Callable[["Stage"], None]:
    SCENARIOS.append(play)
    return play


class TooFastError(Exception):
    """The bytes were there before the call returned: there is nothing to see, try again."""


class Stage:
    """Two hosts with two regions each, large enough that a transfer takes a while."""

    def __init__(self) -> None:
        # Without threads of their own the sides move bytes only when they are asked. The target
        # is asked by `finish` and `wait` alone, so what does not fit the sockets stays in flight,
        # however fast or slow the machine is and however often kvlint asks the other side.
        self.one, self.other = (
            Host(name, regions([SLOTS, SLOTS], LENGTH), thread=False) for name in ("here", "there")
        )
        for host in (self.one, self.other):
            host.register()
        self.one.meet(self.other)
        self.local = self.one.prepare(None, rows5(self.one.regions))
        self.remote = self.one.prepare(self.other, rows5(self.other.regions))
        # The connection is made by the first transfer, which is small.
        self.finish(self.post([0], [0], whole=False))

    def post(self, ours: list[int], theirs: list[int], *, whole: bool = True) -> Any:
        both = ([*side, *(slot + SLOTS for slot in side)] for side in (ours, theirs))
        mine, peers = both
        handle = self.one.agent.make_prepped_xfer(
            "WRITE", self.local, mine, self.remote, peers, b"m"
        )
        status = self.one.agent.transfer(handle)
        if whole and status != "PROC":
            raise TooFastError
        return handle

    def wait(self, handle: Any) -> None:
        """Until the bytes are there, without a question that the engine would ask."""
        while handle._agent.getXferStatus(handle._handle) == NIXL_IN_PROG:
            self.other.agent.get_new_notifs()

    def finish(self, handle: Any) -> None:
        """Until the bytes are there and the engine knows it."""
        self.one.finish(handle, self.other)


@scenario
def right(stage: Stage) -> None:
    stage.finish(stage.post([1, 2, 3], [4, 5, 6]))


@scenario
def released(stage: Stage) -> None:
    KEPT.append(stage)
    stage.post([1, 2, 3, 4], [1, 2, 3, 4]).release()


@scenario
def dropped(stage: Stage) -> None:
    KEPT.append(stage)
    stage.post([1, 2, 3, 4], [1, 2, 3, 4])


@scenario
def dropped_while_collecting(stage: Stage) -> None:
    KEPT.append(stage)
    cycle: list[Any] = [stage.post([1, 2, 3, 4], [1, 2, 3, 4])]
    cycle.append(cycle)
    del cycle
    gc.collect(0)


@scenario
def deregistered_at_the_source(stage: Stage) -> None:
    handle = stage.post([1, 2, 3], [1, 2, 3])
    stage.one.deregister(1)
    stage.finish(handle)


@scenario
def deregistered_at_the_destination(stage: Stage) -> None:
    handle = stage.post([1, 2, 3], [1, 2, 3])
    stage.other.deregister(1)
    stage.finish(handle)


@scenario
def deregistered_elsewhere(stage: Stage) -> None:
    unused = np.zeros(4096, np.uint8)
    stage.one.register_bytes(unused.ctypes.data, unused.nbytes)
    handle = stage.post([1, 2, 3], [1, 2, 3])
    stage.one.deregister(2)
    stage.finish(handle)


@scenario
def deregistered_afterwards(stage: Stage) -> None:
    stage.finish(stage.post([1, 2, 3], [1, 2, 3]))
    stage.one.deregister(1)
    stage.other.deregister(1)


@scenario
def overlapping(stage: Stage) -> None:
    first, second = stage.post([1, 2, 3], [1, 2, 3]), stage.post([4, 5], [3, 7])
    stage.finish(first)
    stage.finish(second)


@scenario
def overlapping_by_another_list(stage: Stage) -> None:
    remote = stage.one.prepare(stage.other, rows3(stage.other.regions, [4, 4]))
    local = stage.one.prepare(None, rows5(stage.one.regions, [4, 4]))
    second = stage.one.agent.make_prepped_xfer("WRITE", local, [2, 6], remote, [2, 6])
    first = stage.post([1, 2, 3], [1, 2, 3])
    stage.one.agent.transfer(second)
    stage.finish(first)
    stage.finish(second)


@scenario
def overlapping_after_the_other_ended(stage: Stage) -> None:
    # The engine has not asked yet, but the bytes are there.
    first = stage.post([1], [1])
    stage.wait(first)
    second = stage.post([2], [1])
    stage.finish(first)
    stage.finish(second)


@scenario
def apart(stage: Stage) -> None:
    first, second = stage.post([1, 2], [1, 2]), stage.post([1, 2], [3, 4])
    stage.finish(second)
    stage.finish(first)


@scenario
def posted_twice(stage: Stage) -> None:
    handle = stage.post([1, 2, 3, 4], [1, 2, 3, 4])
    with suppress(nixlRepostActiveError):
        stage.one.agent.transfer(handle)
    stage.finish(handle)
    stage.one.agent.transfer(handle)
    stage.finish(handle)


@scenario
def source_changed(stage: Stage) -> None:
    handle = stage.post([2], [2])
    stage.one.regions[1][2, 77] ^= 1
    with suppress(Violation):
        stage.finish(handle)


@scenario
def source_kept(stage: Stage) -> None:
    handle = stage.post([2], [2])
    stage.one.regions[1][5, 77] ^= 1
    stage.finish(handle)
    stage.one.regions[1][2, 77] ^= 1


@scenario
def source_changed_before_it_is_posted_again(stage: Stage) -> None:
    # The engine has not asked in between, but the bytes are there.
    handle = stage.post([2], [2])
    stage.wait(handle)
    stage.one.regions[1][2, 77] ^= 1
    stage.one.agent.transfer(handle)
    stage.finish(handle)


@scenario
def never_polled_at_release(stage: Stage) -> None:
    handle = stage.post([1], [1])
    stage.wait(handle)
    handle.release()


@scenario
def never_polled_at_exit(stage: Stage) -> None:
    KEPT.append(stage.post([1], [1]))
    stage.wait(KEPT[-1])
    arming._armed.at_exit()


@scenario
def polled_at_exit(stage: Stage) -> None:
    handle = stage.post([1, 2, 3, 4], [1, 2, 3, 4])
    stage.one.agent.check_xfer_state(handle)
    arming._armed.at_exit()
    stage.finish(handle)


def note(stage: Stage, name: str, owner: str, pool: str, slots: list[int]) -> None:
    host = stage.one if pool == "here" else stage.other
    runtime_checks.stage(name, owner=owner, pool=pool, slots=slots, agent=host.name)


def pools(stage: Stage) -> None:
    """The pages of both sides by name, and what request A has stored to send."""
    for pool, host in (("here", stage.one), ("there", stage.other)):
        parts = [
            Region(
                name=f"layer {layer}",
                address=part.ctypes.data,
                length=part.nbytes,
                stride=LENGTH,
                transfer_length=LENGTH,
                memory_kind="DRAM",
                device=0,
                list=f"kv.{pool}",
                layer=layer,
            )
            for layer, part in enumerate(host.regions)
        ]
        runtime_checks.declare(Geometry(tuple(parts)), agent=host.name)
    note(stage, "store", "A", "here", [1, 2, 3])
    note(stage, "send", "A", "here", [1, 2, 3])


@scenario
def stages_of_right_pages(stage: Stage) -> None:
    pools(stage)
    handle = stage.post([1, 2, 3], [4, 5, 6])
    stage.wait(handle)
    # The peer has been told, the engine here has not asked.
    note(stage, "arrival", "A", "there", [4, 5, 6])
    note(stage, "read", "A", "there", [4, 5, 6])
    stage.finish(handle)
    note(stage, "store", "B", "here", [3])


@scenario
def stage_read_in_flight(stage: Stage) -> None:
    pools(stage)
    handle = stage.post([1, 2, 3], [4, 5, 6])
    with suppress(Violation):
        note(stage, "read", "C", "there", [7, 6])
    stage.finish(handle)


@scenario
def stage_reused_in_flight(stage: Stage) -> None:
    pools(stage)
    handle = stage.post([1, 2, 3], [4, 5, 6])
    with suppress(Violation):
        note(stage, "store", "B", "here", [0, 3])
    stage.finish(handle)


@scenario
def stage_reused_where_it_comes(stage: Stage) -> None:
    pools(stage)
    handle = stage.post([1, 2, 3], [4, 5, 6])
    with suppress(Violation):
        note(stage, "store", "B", "there", [5])
    stage.finish(handle)


@scenario
def stage_in_flight_elsewhere(stage: Stage) -> None:
    pools(stage)
    handle = stage.post([1, 2, 3], [4, 5, 6])
    note(stage, "read", "C", "there", [7])
    note(stage, "store", "B", "here", [4])
    stage.finish(handle)


def played(play: Callable[[Stage], None]) -> dict[str, Any]:
    """What was found in a scenario."""
    runtime_checks.arm(
        "assert" if "stage" in play.__name__ else "paranoid" if "source" in play.__name__ else "log"
    )
    if play.__name__.startswith("deregistered_at"):
        runtime_checks.disarm()
        runtime_checks.arm("log")
    policy = arming._armed.policy
    try:
        stage = Stage()
        fill(part[:1] for part in stage.one.regions)
        play(stage)
        del stage
        gc.collect()
        found = [record["check"] for record in policy.violations]
        said = [record["message"] for record in policy.violations if "stage" in play.__name__]
        return {"found": found, "faults": dict(policy.faults)} | ({"said": said} if said else {})
    finally:
        runtime_checks.disarm()


def run() -> None:
    told = {}
    for play in SCENARIOS:
        for left in reversed(range(10)):
            try:
                told[play.__name__.replace("_", " ")] = played(play)
                break
            except TooFastError:
                if not left:
                    raise
    print(json.dumps(told))
