"""One geometry on real agents: memory, registrations, prepared lists, and transfers that run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import numpy as np

from kvlint.geometry import Geometry, Region
from kvlint.runtime_checks import declare
from tests.runtime_checks.campaign.calls import Call, Selection, Side, flat, runs, starts, typed
from tests.runtime_checks.campaign.memory import Memory
from tests.runtime_checks.campaign.oracle import Effect, after, taken
from tests.runtime_checks.campaign.shapes import Shape
from tests.runtime_checks.hosts import Host

DTYPES: Final = (np.int32, np.int32, np.int64, list, np.uint32)


class Fleet:
    """An initiator and as many peers as any geometry wants, and a pair apart from them.

    Agents are dear, so they stay.
    """

    def __init__(self, peers: int = 3) -> None:
        self.initiator = Host("initiator", [], thread=False)
        self.peers = [Host("peer", [], thread=False) for _ in range(peers)]
        self.pair = Host("initiator", [], thread=False), Host("peer", [], thread=False)


@dataclass
class Running:
    """A transfer that was posted."""

    call: Call
    handle: Any


class World:
    """`shape` on the agents of a fleet, from registration to deregistration."""

    def __init__(self, fleet: Fleet, shape: Shape) -> None:
        self.shape, self.random = shape, Random(shape.seed)
        self.initiator, self.peers = fleet.initiator, fleet.peers[: shape.peers]
        self.mine = self._memory([group.local for group in shape.groups])
        self.theirs = [self._memory([g.remote for g in shape.groups]) for _ in self.peers]
        for host, memory in self._all():
            for piece in memory.registrations():
                host.register_bytes(*piece)
            if shape.layout == "one":
                declare(_geometry(memory), host.name)
        self.initiator.meet(*self.peers, strangers=shape.strangers)
        self.messages = 0
        form, other = shape.forms
        sides = [Side(runs(self.mine), form, [], ())]
        sides += [Side(runs(memory), other, [], ()) for memory in self.theirs]
        hosts = [None, *self.peers]
        self.lists = [self._prepared(*both) for both in zip(hosts, sides, strict=True)]

    def _prepared(self, host: Host | None, side: Side) -> Any:
        rows = side.rows()
        if side.form == "object":
            rows = self.initiator.agent.get_xfer_descs(rows, "DRAM")
        return self.initiator.prepare(host, rows)

    def _memory(self, slots: list[int]) -> Memory:
        cuts = [(slots[g], self.shape.groups[g].item, g) for g in self.shape.order]
        return Memory(cuts, self.shape.layout, self.random)

    def _all(self) -> Iterator[tuple[Host, Memory]]:
        return zip([self.initiator, *self.peers], [self.mine, *self.theirs], strict=True)

    def close(self) -> None:
        for handle in self.lists:
            self.initiator.agent.release_dlist_handle(handle)
        for host, _ in self._all():
            if self.shape.layout == "one":
                declare(Geometry(()), host.name)
            while host.registered:
                host.deregister(-1)
        for peer in self.peers:
            self.initiator.agent.remove_remote_agent(peer.name)

    def right(self, peer: int) -> Call:
        """A call with nothing wrong in it, over the lists of all slots."""
        mine, theirs = self.mine, self.theirs[peer]
        return self._call(peer, Selection.draw(mine, theirs, self.random), mine.slots, theirs.slots)

    def by_least(self, peer: int) -> Call:
        """Another one: all regions are listed with the least count of them, as far as a page of
        all of them goes. Adjacent regions then look like one that runs into the next."""
        mine, theirs = self.mine.slots, self.theirs[peer].slots
        least = min(mine), min(theirs)
        chosen = Selection.draw_one(least, len(self.shape.groups), self.random)
        return self._call(peer, chosen, [least[0]] * len(mine), [least[1]] * len(theirs))

    def _call(self, peer: int, chosen: Selection, mine: list[int], theirs: list[int]) -> Call:
        sides = []
        for name, memory, form, counts in (
            ("local", self.mine, self.shape.forms[0], mine),
            ("remote", self.theirs[peer], self.shape.forms[1], theirs),
        ):
            places = chosen.places(memory, name)
            indices = typed(flat(places, starts(counts)), self.random.choice(DTYPES))
            sides.append(Side(runs(memory, counts), form, indices, places))
        return Call(self.shape.operation, peer, *sides)

    # What an engine does.

    def run(self, *calls: Call) -> None:
        """Post all, then wait for each. Raises what NIXL raises."""
        running = []
        for call in calls:
            with self._list(0, call.local) as local, self._list(1 + call.peer, call.remote) as far:
                running.append(self._posted(call, local, far))
        for one in running:
            self.initiator.finish(one.handle, *self.peers)
            self.initiator.agent.release_xfer_handle(one.handle)

    def _posted(self, call: Call, local: Any, remote: Any) -> Running:
        self.messages += 1
        agent, message = self.initiator.agent, b"request %d" % self.messages
        handle = agent.make_prepped_xfer(
            call.operation, local, call.local.indices, remote, call.remote.indices, message
        )
        agent.transfer(handle)
        return Running(call, handle)

    def run_described(self, call: Call) -> None:
        """The same in one call, without prepared lists."""
        agent, objects = self.initiator.agent, []
        for side in (call.local, call.remote):
            addresses, lengths = (column[taken(side.indices)] for column in side.descriptors())
            rows = np.stack([addresses, lengths, np.zeros_like(addresses)], axis=1)
            objects.append(agent.get_xfer_descs(rows.astype(np.uint64), "DRAM"))
        handle = agent.initialize_xfer(call.operation, *objects, self.peers[call.peer].name, b"all")
        agent.transfer(handle)
        self.initiator.finish(handle, *self.peers)
        agent.release_xfer_handle(handle)

    @contextmanager
    def _list(self, number: int, side: Side) -> Iterator[Any]:
        """The world's own list where the call has that one, else one of its own."""
        memory, host = (self.mine, None) if not number else self._peer(number - 1)
        if side.runs == runs(memory) and side.form == self.shape.forms[bool(number)]:
            yield self.lists[number]
            return
        handle = self._prepared(host, side)
        try:
            yield handle
        finally:
            self.initiator.agent.release_dlist_handle(handle)

    def _peer(self, number: int) -> tuple[Memory, Host]:
        return self.theirs[number], self.peers[number]

    # What comes of it.

    def landed(self, run: Callable[[], None], *effects: tuple[int, Effect]) -> bool:
        """Whether after `run` just these effects, each with its peer, are seen in all memory.

        Sources hold a value in each word that no other word has.
        """
        writes = self.shape.operation == "WRITE"
        for memory in self.theirs if not writes else [self.mine]:
            memory.fill(self.random)
        targets = self.theirs if writes else [self.mine]
        for memory in targets:
            memory.words[:] = 0
        expected = [memory.words.copy() for memory in targets]
        sources = [memory.words.copy() for memory in ([self.mine] if writes else self.theirs)]
        run()
        for peer, done in effects:
            source = self.mine if writes else self.theirs[peer]
            number = peer if writes else 0
            bases = source.base, targets[number].base
            expected[number] = after(expected[number], source.words, done, bases)
        still = [self.mine] if writes else self.theirs
        return all(
            np.array_equal(memory.words, words)
            for memory, words in zip([*targets, *still], [*expected, *sources], strict=True)
        )


def _geometry(memory: Memory) -> Geometry:
    """What an adapter would declare: two groups with the same counts are told apart by it."""
    return Geometry(
        tuple(
            Region(
                name=f"layer {number} part {cut.group}",
                address=memory.base + cut.offset,
                length=cut.length,
                stride=cut.item,
                transfer_length=cut.item,
                memory_kind="DRAM",
                device=0,
                list="kv",
                layer=number,
                group=f"part {cut.group}",
            )
            for number, cut in enumerate(memory.regions)
        )
    )
