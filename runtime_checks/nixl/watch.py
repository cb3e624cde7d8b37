"""What an engine does with NIXL in this process, and what the checks say to each step.

Each method belongs to one moment of one call. Those before the call give back what to raise
instead of it, if anything; those after only take note.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.service import MODULE, Digesting
from kvlint.runtime_checks.folding import RowsError, fold
from kvlint.runtime_checks.nixl import lifetimes
from kvlint.runtime_checks.nixl.agents import Agent, Agents, as_name
from kvlint.runtime_checks.nixl.descriptors import (
    ReadRows,
    Remembered,
    collected_of,
    kind_of,
    pieces_of,
)
from kvlint.runtime_checks.nixl.exchanging import MODULE as EXCHANGE
from kvlint.runtime_checks.nixl.exchanging import Exchange
from kvlint.runtime_checks.nixl.flights import Flights
from kvlint.runtime_checks.nixl.folded import MODULE as FOLDING
from kvlint.runtime_checks.nixl.folded import Folded
from kvlint.runtime_checks.nixl.initiator import Initiator
from kvlint.runtime_checks.nixl.initiator import Target as Told
from kvlint.runtime_checks.nixl.making import Making
from kvlint.runtime_checks.nixl.preparing import Prepared, Preparing
from kvlint.runtime_checks.nixl.target import Target
from kvlint.runtime_checks.nixl.teller import Teller, Verdict
from kvlint.runtime_checks.nixl.using import Use
from kvlint.runtime_checks.policy import Policy, Site
from kvlint.runtime_checks.pools.watching import Pools
from kvlint.runtime_checks.stacks import Stack, here
from kvlint.runtime_checks.transfers import Notified, as_bytes, now
from kvlint.runtime_checks.violations import Violation

if TYPE_CHECKING:
    from kvlint.runtime_checks.registrations import Collected

KINDS = {"cpu": "DRAM", "cuda": "VRAM"}
"""What NIXL still takes, and its name for it."""

Messages = dict[Any, list[bytes]]


class Watch:
    """All that is known of one module of NIXL in this process."""

    def __init__(self, bindings: Any, policy: Policy, pools: Pools, digests: Digesting) -> None:
        self._bindings = bindings
        self._policy = policy
        self._pools = pools
        self._teller = Teller(policy)
        self._digesting = digests
        self._exchange = Exchange(bindings, policy.settings)
        self.flights = Flights(bindings, self._teller, Initiator(digests, self._teller))
        self._agents = Agents()
        self._rows = ReadRows()
        self._tensors: Remembered[list[Collected]] = Remembered()
        self._preparing = Preparing(bindings)
        self._lists: dict[int, Prepared] = {}
        self._folded = Folded(lambda agent, geometry: pools.on_folded(agent, geometry))

    def start_afresh(self) -> None:
        """In a forked child, whose agents are its parent's, and nothing comes for them."""
        self.flights.start_afresh()
        for agent in self._agents.all():
            agent.target = None

    # Agents and registrations.

    def born(self, agent: Any) -> None:
        self._exchange.open(self._agents.of(agent, born=True))

    def publishing(self, agent: Any) -> None:
        """The agent is about to give out its metadata."""
        self._exchange.open(self.agent(agent))

    def agent(self, agent: Any) -> Agent:
        return self._agents.of(agent)

    def registered_by(self, name: str) -> list[tuple[str, int, int, int]]:
        """(kind, address, length in bytes, device) of all that an agent has registered; nothing,
        where it is not known whole."""
        return [
            (one.kind, one.address, one.length, one.device)
            for agent in self._agents.named(name)
            if agent.whole
            for one in list(agent.registrations.live.values())
        ]

    def published(self, agent: Any, metadata: bytes) -> None:
        self._agents.published(self.agent(agent), metadata)

    def loaded(self, agent: Any, name: object, metadata: bytes) -> None:
        known = self.agent(agent)
        self._agents.loaded(known, as_name(name), metadata)
        self._exchange.forget(known, as_name(name))

    def described_by(self, metadata: bytes) -> str | None:
        return self._agents.described_by(metadata)

    def using(self, pages: Pages) -> list[Use]:
        """See `nixl.using.Transport`."""
        return self.flights.using(pages, lambda name: bool(self._agents.named(name)))

    def dropped(self, agent: Any, name: object) -> None:
        known = self.agent(agent)
        self._agents.dropped(known, as_name(name))
        self._exchange.forget(known, as_name(name))

    def described(self, descriptors: Any, given: object) -> None:
        """`get_reg_descs` has made the object of what was given."""
        if descriptors is not None and descriptors is not given:
            collected = collected_of(given)
            if collected:
                self._tensors[descriptors] = collected

    def rows_made(self, descriptors: Any, given: object) -> None:
        """`get_xfer_descs` has made the object of what was given."""
        if descriptors is not None and descriptors is not given:
            self._rows.made(descriptors, given)

    def registered(self, agent: Any, descriptors: Any) -> None:
        if descriptors is not None:
            pieces, collected = pieces_of(descriptors), self._tensors.get(descriptors)
            kind = kind_of(descriptors)
            with self.flights.lock:
                self.agent(agent).registrations.add(kind, pieces, collected)
            self._policy.called("register_memory", here(), self.agent(agent).name)
            if self._digesting.reads and self._policy.armed(MODULE):
                with self._policy.contained(MODULE):
                    for device in {piece[2] for piece in pieces}:
                        self._digesting.prepare(kind, device)

    def deregistering(self, agent: Any, descriptors: Any) -> Verdict:
        if not isinstance(descriptors, self._bindings.nixlRegDList):
            return Verdict()
        registrations = self.agent(agent).registrations
        found = registrations.found(kind_of(descriptors), pieces_of(descriptors))
        return self.flights.deregistering(self.agent(agent), found)

    def deregistered(self, agent: Any, descriptors: Any) -> None:
        registrations = self.agent(agent).registrations
        kind, pieces = kind_of(descriptors), pieces_of(descriptors)
        with self.flights.lock:
            registrations.remove(registrations.found(kind, pieces))

    # Lists.

    def prepare(
        self,
        agent: Any,
        name: object,
        given: Any,
        memory: str | None,
        stack: Stack,
        *,
        prepped: bool = True,
    ) -> Prepared | None:
        """The list that NIXL has prepared, or refused to; None where it is no list at all.

        given  an Nx5 array with its memory kind, or a descriptor object
        """
        try:
            if isinstance(given, np.ndarray):
                if memory is None or memory not in agent.nixl_mems:
                    return None
                kind, rows = KINDS.get(memory, memory), fold(given)
            elif isinstance(given, self._bindings.nixlXferDList):
                kind, rows = kind_of(given), self._rows.regions(given)
            else:
                return None
        except RowsError:
            return None
        return self._preparing.prepare(
            self.agent(agent), agent, name, kind, rows, stack, prepped=prepped
        )

    def prepared(self, handle: Any, prepared: Prepared) -> Violation | None:
        """NIXL has agreed. What it does not see is told now, and raised at first use."""
        self._lists[id(handle)] = prepared
        if self._policy.armed(FOLDING):
            with self._policy.contained(FOLDING):
                self._folded.note(prepared)
        self._policy.recorder.keep(prepared.entry())
        self._listed(prepared)
        for breach in prepared.of.breaches:
            prepared.raises = self._tell_list(breach, prepared)
        # Also an agent that was there before this process was armed moves memory of its own.
        here = prepared.owner is not None or prepared.of.owner == prepared.agent.name
        if prepared.raises is None and here:
            prepared.raises = self._pools.raises_for(prepared.of.regions)
        return prepared.raises if self._policy.settings.strict_prepare else None

    def refused(self, prepared: Prepared) -> str | None:
        """NIXL has not agreed; the reason in words, if the list shows it."""
        self._listed(prepared)
        return self._reason(prepared)

    def _listed(self, prepared: Prepared) -> None:
        name, looked = prepared.agent.name, prepared.looked()
        numbers = (prepared.number,)
        self._policy.called("prep_xfer_dlist", prepared.stack, name, looked, numbers)

    def _reason(self, prepared: Prepared) -> str | None:
        breach = self._preparing.refused(prepared)
        if breach is None:
            return None
        self._tell_list(breach, prepared)
        return breach.message

    def _tell_list(self, breach: Breach, prepared: Prepared) -> Violation | None:
        peer = prepared.of.owner if prepared.of.side == "remote" else None
        sites = [Site("prep_xfer_dlist", prepared.stack)]
        return self._teller.tell(breach, sites, prepared.agent.name, peer)

    def forget_list(self, handle: Any) -> None:
        """The handle is gone; another may get its identity."""
        self._lists.pop(id(handle), None)

    # Making a transfer.

    def making(
        self,
        agent: Any,
        operation: str,
        lists: tuple[Any, Any],
        indices: tuple[object, object],
        notification: object,
    ) -> Making:
        """Before `make_prepped_xfer`: handles and indices of the local and the remote side."""
        local, remote = (self._lists.get(id(handle)) for handle in lists)
        making = Making(self._teller, self.agent(agent), operation, prepped=True)
        if local is not None and remote is not None:
            making.asked = tuple(map(self._pools.asked, indices))
            making.check((local, remote), indices, notification, next(self.flights.numbers))
        numbers = [side.number for side in making.sides]
        name = making.agent.name
        looked = tuple(making.looked)
        self._policy.called("make_prepped_xfer", making.stack, name, looked, numbers)
        return making

    def describing(
        self,
        agent: Any,
        operation: str,
        objects: tuple[Any, Any],
        remote_name: object,
        notification: object,
    ) -> Making:
        """Before `initialize_xfer`, with the descriptor objects of both sides."""
        making = Making(self._teller, self.agent(agent), operation, prepped=False)
        stack = making.stack
        local = self.prepare(agent, "", objects[0], None, stack, prepped=False)
        remote = self.prepare(agent, remote_name, objects[1], None, stack, prepped=False)
        if local is not None and remote is not None:
            making.sides = (local, remote)
            for side in making.sides:
                for breach in side.of.breaches:
                    making.tell(breach, side)
            making.check((local, remote), None, notification, next(self.flights.numbers))
        self._policy.called("initialize_xfer", stack, making.agent.name, tuple(making.looked))
        return making

    def why(self, making: Making) -> list[str]:
        """NIXL has refused an `initialize_xfer`; reasons in words that its lists show."""
        found = [self._reason(side) for side in making.sides]
        return [message for message in found if message is not None]

    # Handles.

    def dead(self, handle: Any, call: str) -> str | None:
        """What to say where a handle was released before this call."""
        if not getattr(handle, "_released", False):
            return None
        transfer, prepared = self.flights.of(handle), self._lists.get(id(handle))
        breach = lifetimes.dead(call, transfer, prepared)
        made = Site(transfer.call, transfer.stack) if transfer else None
        listed = Site("prep_xfer_dlist", prepared.stack) if prepared else None
        sites = [site for site in (made, listed) if site] + [Site(call, here())]
        agent = transfer.agent if transfer else prepared.agent.name if prepared else ""
        peer = transfer.peer if transfer else None
        self._teller.tell(breach, sites, agent, peer, transfer)
        return breach.message

    # Notifications.

    def notified(self, agent: Any, messages: Messages) -> None:
        """The agent has read these new notifications, by sender."""
        known = self.agent(agent)
        target = None
        if self._digesting.reads:
            # What was announced may have come in the meantime.
            self._receive()
            target = self._target_of(known)
        for sender, texts in messages.items():
            for text in texts:
                name = known.arrivals.next(as_name(sender), known.name, as_bytes(text), 0)
                entry = Notified(name, known.name, as_name(sender), now())
                self._policy.recorder.append(entry)
                self.flights.heard(name)
                if target is not None and self._policy.armed(MODULE):
                    with self._policy.contained(MODULE):
                        target.notified(name)

    # Digests.

    def target(self, agent: Agent, peer: str) -> "Told | None":
        """Who is told what a transfer to a peer moves, if it can be told."""
        known = agent.peers.get(peer)
        if known is not None and known.twin is not None:
            return self._target_of(known.twin).of(agent.name)
        told = self._exchange.to(agent, peer)
        if told is None:
            self._digesting.unheard(
                "the peer is in another process that is not armed with the same KVLINT_DIGEST_KEY"
            )
        return told

    def _target_of(self, agent: Agent) -> Target:
        if agent.target is None:
            agent.target = Target(agent, self._digesting, self._teller)
        return agent.target

    def at_exit(self) -> None:
        """What devices still work on is waited for: there is no later."""
        self._receive()
        self._digesting.drain(wait=True)
        for agent in self._agents.all():
            if agent.target is not None and self._policy.armed(MODULE):
                with self._policy.contained(MODULE):
                    agent.target.settle(wait=False)

    def close(self) -> None:
        self._exchange.close()

    def exchanged(self) -> Mapping[str, int]:
        """How many messages went and came, and what was refused."""
        return self._exchange.counts()

    def _receive(self) -> None:
        if self._policy.armed(EXCHANGE):
            with self._policy.contained(EXCHANGE):
                self._exchange.receive(self._target_named)
                for agent in self._agents.all():
                    if agent.target is not None:
                        agent.target.settle()

    def _target_named(self, name: str) -> Target | None:
        agents = self._agents.named(name)
        return self._target_of(agents[0]) if agents else None

    def late(self) -> Violation | None:
        """What digests have shown since; what to raise in the call that comes now."""
        if not self._digesting.reads:
            return None
        self._receive()
        self._digesting.drain()
        return self._digesting.raised()

    def unread(self, agent: Any, before: Messages, now: Messages) -> None:
        """The agent's own collection, in which notifications stay until they are asked for, has
        grown."""
        new: Messages = {}
        for sender, texts in now.items():
            old = list(before.get(sender, ()))
            new[sender] = [text for text in texts if not _taken(old, text)]
        self.notified(agent, new)


def _taken(texts: list[bytes], text: bytes) -> bool:
    """Whether the text is there; once taken it is not."""
    if text in texts:
        texts.remove(text)
        return True
    return False
