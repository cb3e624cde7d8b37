"""What is known of each agent of this process, and of the peers that it has loaded."""

import hashlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np

from kvlint.runtime_checks.recent import keep
from kvlint.runtime_checks.regions import Integers, Regions
from kvlint.runtime_checks.registrations import Registrations
from kvlint.runtime_checks.transfers import Names

if TYPE_CHECKING:
    from kvlint.runtime_checks.nixl.target import Target

_KNOWN: Final = 256


@dataclass(eq=False)
class Peer:
    """A remote agent as one agent of this process knows it.

    version  changes with every metadata loaded or dropped
    twin     the same agent, where it lives in this process: its registrations are then known
    """

    version: int = 0
    twin: "Agent | None" = None


@dataclass(eq=False)
class Agent:
    """One agent of this process.

    whole   whether it was made while armed, so that all its registrations are known
    target  what is known of transfers that others post to its memory, once there is any
    """

    name: str
    object: "ref[Any]"
    whole: bool
    registrations: Registrations = field(default_factory=Registrations)
    peers: dict[str, Peer] = field(default_factory=dict)
    arrivals: Names = field(default_factory=Names)
    target: "Target | None" = None


class Agents:
    """All agents of this process, by identity; and by metadata, which says who a peer is."""

    def __init__(self) -> None:
        self._agents: dict[int, Agent] = {}
        self._published: dict[bytes, ref[Agent]] = {}
        self._names: dict[bytes, str] = {}

    def of(self, agent: Any, *, born: bool = False) -> Agent:
        known = self._agents.get(id(agent))
        if known is None or known.object() is not agent:
            number = id(agent)
            reference = ref(agent, lambda _: self._agents.pop(number, None))
            name = as_name(getattr(agent, "name", ""))
            known = self._agents[number] = Agent(name, reference, whole=born)
        return known

    def all(self) -> list[Agent]:
        return list(self._agents.values())

    def named(self, name: str) -> list[Agent]:
        return [agent for agent in self.all() if agent.name == name]

    def published(self, agent: Agent, metadata: bytes) -> None:
        """The agent has given out this metadata; the same bytes loaded elsewhere mean it."""
        keep(self._published, hashlib.blake2b(metadata).digest(), ref(agent), _KNOWN)

    def loaded(self, agent: Agent, name: str, metadata: bytes) -> None:
        peer = agent.peers.setdefault(name, Peer())
        peer.version += 1
        given = metadata if isinstance(metadata, bytes) else b""
        digest = hashlib.blake2b(given).digest()
        reference = self._published.get(digest)
        peer.twin = reference() if reference is not None else None
        keep(self._names, digest, name, _KNOWN)

    def described_by(self, metadata: bytes) -> str | None:
        """Name of the agent that these metadata, loaded not long ago, are of."""
        return self._names.get(hashlib.blake2b(metadata).digest())

    def dropped(self, agent: Agent, name: str) -> None:
        peer = agent.peers.setdefault(name, Peer())
        peer.version += 1
        peer.twin = None


def as_name(name: object) -> str:
    """Names are text, or the bytes that `add_remote_agent` gives back."""
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name)


class Prober:
    """Asks NIXL what a peer has registered: it knows from the metadata, and tells for one piece
    of memory at a time whether one registration holds all of it."""

    def __init__(self, agent: Any, bindings: Any, peer: str, segment: Any) -> None:
        self._ask = agent.agent.checkRemoteMD
        self._make = bindings.nixlXferDList
        self._yes = bindings.NIXL_SUCCESS
        self._peer = peer
        self._segment = segment

    def registered(self, address: int, length: int, device: int) -> bool:
        """Whether one registration of the peer holds these bytes."""
        return self._all([(address, length, device)])

    def all_registered(self, regions: Regions) -> bool:
        """Whether each region lies in one registration of the peer."""
        lengths = (regions.ends - regions.addresses).astype(np.int64)
        columns = (regions.addresses.tolist(), lengths.tolist(), regions.devices.tolist())
        return self._all(list(zip(*columns, strict=True)))

    def _all(self, pieces: list[tuple[int, int, int]]) -> bool:
        answer: bool = self._ask(self._peer, self._make(self._segment, pieces)) == self._yes
        return answer

    def pieces(self, regions: Regions) -> Integers:
        """(R,) which registration holds each region, as numbers without a meaning: equal for
        neighbours that one registration spans."""
        order = np.argsort(regions.addresses, kind="stable")
        numbers = np.zeros(len(regions), np.int64)
        for before, at in pairwise(order.tolist()):
            address, device = int(regions.addresses[before]), int(regions.devices[before])
            length = int(regions.ends[at]) - address
            same = device == int(regions.devices[at]) and self.registered(address, length, device)
            numbers[at] = numbers[before] + (0 if same else 1)
        return numbers

    def fitting(self, address: int, length: int, stride: int, slots: int, device: int) -> int:
        """How many slots from the first on lie in one registration of the peer."""
        low, high = 0, slots
        while low < high:
            middle = (low + high + 1) // 2
            if self.registered(address, (middle - 1) * stride + length, device):
                low = middle
            else:
                high = middle - 1
        return low
