"""The faults of the campaign that are in time: the arguments are right, and what they name is gone.

Each story is told twice over the same geometry, once with its fault and once without: two
regions on either side, made anew. Transfers in flight need `UCX_TLS=tcp`, and peers without a
progress thread, which get on only when they are asked.
"""

import ctypes
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import numpy as np
from nixl._bindings import NIXL_IN_PROG

from tests.runtime_checks.hosts import Bytes, Host, fill, indices, regions, rows3, rows5, starts

Places = frozenset[tuple[str, int, int | None]]


@dataclass(frozen=True)
class Told:
    """What must be found: one of the checks, at one of the places (side, region, slot)."""

    checks: frozenset[str]
    places: Places


class Stage:
    """An initiator and a peer with two regions each, and a transfer between them."""

    def __init__(self, initiator: Host, peer: Host, random: Random) -> None:
        self.initiator, self.peer, self.random = initiator, peer, random
        self.operation = random.choice(("WRITE", "READ"))
        self.rows = random.choice((rows3, rows5))
        shape = [random.randint(4, 64)] * 2, 8 * random.randint(1, 64)
        for host in (initiator, peer):
            host.regions = regions(*shape)
            host.register()
        self.gone: list[Any] = []  # memory that is used after its time must not be another's
        self.slots = random.sample(range(shape[0][0]), random.randint(1, 4))
        self.others = random.sample(range(shape[0][0]), len(self.slots))
        fill(self.source.regions, random.getrandbits(32))
        initiator.meet(peer)
        self.local = initiator.prepare(None, self.rows(initiator.regions))
        self.remote = initiator.prepare(peer, self.rows(peer.regions))

    def host(self, side: str) -> Host:
        return self.initiator if side == "local" else self.peer

    @property
    def source(self) -> Host:
        return self.initiator if self.operation == "WRITE" else self.peer

    @property
    def target(self) -> Host:
        return self.peer if self.operation == "WRITE" else self.initiator

    def make(self, mine: list[int] | None = None, theirs: list[int] | None = None) -> Any:
        """`slots` here, `others` there, in both regions, unless said otherwise."""
        return self.initiator.agent.make_prepped_xfer(
            self.operation,
            self.local,
            indices(starts(self.initiator.regions), mine or self.slots),
            self.remote,
            indices(starts(self.peer.regions), theirs or self.others),
            b"a story",
        )

    def post(self, handle: Any) -> bool:
        """Whether it is still in flight."""
        return bool(self.initiator.agent.transfer(handle) == "PROC")

    def finish(self, handle: Any) -> None:
        self.initiator.finish(handle, self.peer)

    def release(self, handle: Any) -> None:
        self.initiator.agent.release_xfer_handle(handle)

    def whole(self) -> None:
        """The right story: post, finish, release."""
        handle = self.make()
        self.post(handle)
        self.finish(handle)
        self.release(handle)

    def held_back(self) -> None:
        """As `whole`, but NIXL gets no post: it crashes where its own side is deregistered."""
        agent, handle = self.initiator.agent, self.make()
        agent.agent = _NoPost(agent.agent)
        _refused(lambda: agent.transfer(handle))
        agent.agent = agent.agent.behind
        self.release(handle)

    def settle(self) -> None:
        """Let what nobody waits for come to rest."""
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            self.peer.agent.get_new_notifs()
            self.initiator.agent.get_new_notifs()

    def come_to_rest(self, handle: Any) -> None:
        """Until the bytes are there, without a question that the engine would ask."""
        end = time.monotonic() + 10
        while handle._agent.getXferStatus(handle._handle) == NIXL_IN_PROG:
            assert time.monotonic() < end, "the transfer does not end"
            self.settle()

    def arrived(self) -> bool:
        there, here = (self.others, self.slots)
        if self.operation == "READ":
            there, here = here, there
        return all(
            np.array_equal(got[there], sent[here])
            for got, sent in zip(self.target.regions, self.source.regions, strict=True)
        )

    def places(self, side: str, region: int | None = None) -> Places:
        """What is selected on a side, or no slot in particular."""
        slots = self.slots if side == "local" else self.others
        numbers = range(2) if region is None else [region]
        return frozenset((side, number, slot) for number in numbers for slot in [*slots, None])

    def close(self) -> None:
        for handle in (self.local, self.remote):
            handle.release()
        for host in (self.initiator, self.peer):
            while host.registered:
                host.deregister(-1)
        self.initiator.agent.remove_remote_agent(self.peer.name)


class _NoPost:
    """NIXL's bindings of an agent, all but one of them."""

    def __init__(self, behind: Any) -> None:
        self.behind = behind

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    def postXferReq(self, *_: object) -> None:  # noqa: N802 (NIXL's name)
        from nixl._bindings import nixlBackendError

        raise nixlBackendError("held back")


def _refused(call: Callable[[], Any]) -> None:
    """The companion refuses what would crash the process, with an error of NIXL's own."""
    try:
        call()
    except Exception as error:
        if not type(error).__module__.endswith("_bindings"):
            raise
    else:
        raise AssertionError("a released handle was let through")


Story = Callable[[Stage, bool], Told | None]
STORIES: Final[dict[str, Story]] = {}
CRASHES: Final = ("stale handle", "stale list handle")  # where nothing is armed


def story(name: str) -> Callable[[Story], Story]:
    def register(told: Story) -> Story:
        STORIES[name] = told
        return told

    return register


def _moved(stage: Stage, side: str, faulty: bool) -> Told:
    """A region moves after the lists were prepared; the right engine prepares them again."""
    host, number = stage.host(side), stage.random.randrange(2)
    old = host.regions[number]
    stage.gone.append(old)
    new: Bytes = np.zeros_like(old)
    new[:] = old if host is stage.source else 0
    host.deregister(number)
    host.regions[number] = new
    descriptors = host.agent.register_memory([(new.ctypes.data, new.nbytes, 0, "")], "DRAM")
    host.registered.insert(number, descriptors)
    if side == "remote":
        stage.initiator.meet(host)
    if not faulty:
        name = "local" if side == "local" else "remote"
        getattr(stage, name).release()
        prepared = stage.initiator.prepare(
            None if side == "local" else host, stage.rows(host.regions)
        )
        setattr(stage, name, prepared)
    if faulty and side == "local":
        stage.held_back()
    else:
        stage.whole()
    return Told(frozenset({"stale-list"}), stage.places(side, number))


@story("stale list, local")
def stale_here(stage: Stage, faulty: bool) -> Told:
    return _moved(stage, "local", faulty)


@story("stale list, remote")
def stale_there(stage: Stage, faulty: bool) -> Told:
    return _moved(stage, "remote", faulty)


@story("stale handle")
def used_after_release(stage: Stage, faulty: bool) -> Told:
    agent, handle = stage.initiator.agent, stage.make()
    stage.post(handle)
    stage.finish(handle)
    stage.release(handle)
    if faulty:
        use = stage.random.choice((agent.transfer, agent.check_xfer_state))
        _refused(lambda: use(handle))
    return Told(frozenset({"released-handle"}), stage.places("local") | stage.places("remote"))


@story("stale list handle")
def list_used_after_release(stage: Stage, faulty: bool) -> Told:
    stage.whole()
    side = stage.random.choice(("local", "remote"))
    if faulty:
        getattr(stage, side).release()
        _refused(stage.make)
    return Told(frozenset({"released-handle"}), stage.places(side))


@story("release in flight")
def released_in_flight(stage: Stage, faulty: bool) -> Told | None:
    handle = stage.make()
    if not stage.post(handle) and faulty:
        stage.finish(handle)
        return None
    if not faulty:
        stage.finish(handle)
    how = stage.random.randrange(3)
    if how == 0:
        stage.release(handle)
    elif how == 1:
        handle.release()
    del handle  # which releases, too
    stage.settle()
    side = "remote" if stage.operation == "WRITE" else "local"
    return Told(frozenset({"released-in-flight"}), stage.places(side))


@story("never polled")
def never_polled(stage: Stage, faulty: bool) -> Told | None:
    """Done long since, and released without having been asked: no notification has left."""
    handle = stage.make()
    in_flight = stage.post(handle)
    if faulty:
        stage.come_to_rest(handle)
    else:
        stage.finish(handle)
    stage.release(handle)
    side = "remote" if stage.operation == "WRITE" else "local"
    return Told(frozenset({"never-polled"}), stage.places(side)) if in_flight else None


@story("deregistration in flight")
def deregistered_in_flight(stage: Stage, faulty: bool) -> Told | None:
    handle = stage.make()
    if not stage.post(handle) and faulty:
        stage.finish(handle)
        return None
    if not faulty:
        stage.finish(handle)
    side, number = stage.random.choice(("local", "remote")), stage.random.randrange(2)
    stage.host(side).deregister(number)
    if faulty:
        stage.finish(handle)
    stage.release(handle)
    return Told(frozenset({"deregistered-in-flight"}), stage.places(side, number))


@story("overlap in flight")
def overlapping_in_flight(stage: Stage, faulty: bool) -> Told | None:
    """Two transfers write one slot at a time; the right engine waits for the first."""
    slots = range(len(stage.source.regions[0]))
    other = next(s for s in slots if s not in (stage.slots[0], stage.others[0]))
    if stage.operation == "WRITE":
        second = [other], [stage.others[0]]
        side, place = "remote", stage.others[0]
    else:
        second = [stage.slots[0]], [other]
        side, place = "local", stage.slots[0]
    one = stage.make(*second)
    in_flight = stage.post(one)
    if not faulty or not in_flight:
        stage.finish(one)
    two = stage.make()
    stage.post(two)
    for handle in (one, two):
        stage.finish(handle)
        stage.release(handle)
    if not in_flight:
        return None
    places = frozenset((side, number, place) for number in range(2))
    return Told(frozenset({"overlap-in-flight"}), places)


@story("collected tensor")
def collected(stage: Stage, faulty: bool) -> Told | None:
    """A source registered as a tensor; the right engine keeps another view of it."""
    try:
        import torch
    except ImportError:
        return None
    stage.operation = "WRITE"
    host, number = stage.initiator, stage.random.randrange(2)
    fill(host.regions, stage.random.getrandbits(32))
    while host.registered:
        host.deregister(-1)
    stage.local.release()
    # torch's own memory, seen by arrays that do not keep it. It goes back to the allocator, which
    # keeps it mapped: what was allocated behind it is still there.
    tensors = [torch.from_numpy(region).clone() for region in host.regions]
    behind = torch.zeros(1 << 16)
    host.regions = [
        np.ctypeslib.as_array((ctypes.c_uint8 * t.numel()).from_address(t.data_ptr())).reshape(
            t.shape
        )
        for t in tensors
    ]
    for tensor in tensors:
        host.registered.append(host.agent.register_memory(tensor))
    stage.local = host.prepare(None, stage.rows(host.regions))
    kept = None if faulty else tensors[number][:1]
    del tensors[number], tensor
    gc.collect()
    stage.whole()
    # What is alive stays so until its bytes have been compared.
    stage.gone += [tensors, kept, behind]
    return Told(frozenset({"collected-memory"}), stage.places("local", number))
