"""Descriptor lists made of what an engine prepares, with all that is known about their memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.bounds import (
    beyond_address_space,
    declared_for,
    past_declared,
    run_into_next,
    unheld,
    wraps,
)
from kvlint.runtime_checks.checks import OUT_OF_REGION, UNREGISTERED, Breach, Side
from kvlint.runtime_checks.declared import declared
from kvlint.runtime_checks.extents import cut, cut_at, joined
from kvlint.runtime_checks.known import Known, KnownOfAgents
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.nixl.agents import Agent, Prober, as_name
from kvlint.runtime_checks.regions import Integers, Regions
from kvlint.runtime_checks.registrations import Registration
from kvlint.runtime_checks.stacks import Stack
from kvlint.runtime_checks.violations import Violation


@dataclass(eq=False)
class Prepared:
    """A list, and what it takes to tell later whether it still stands.

    owner         the agent whose memory it is, where it lives in this process
    held          registrations of tensors that hold its regions, where the owner lives here
    version       of the owner's registrations when it was last found in order
    peer_version  of the peer's metadata likewise
    raises        what was found while preparing, for the first use
    number        of the first list like it
    """

    of: DescriptorList
    agent: Agent
    owner: Agent | None
    prober: Prober | None
    held: list[Registration]
    version: int
    peer_version: int
    stack: Stack
    raises: Violation | None = None
    number: int = field(init=False)

    def __post_init__(self) -> None:
        self.number = self.of.number

    def looked(self) -> tuple[str, ...]:
        """Names of the checks that had something to decide by."""
        bounded = self.of.named or self.owner is not None or self.prober is not None
        return (OUT_OF_REGION.name,) if bounded else ()

    def entry(self) -> "Listed":
        """What the ring keeps, long after the list is gone."""
        of, known = self.of, self.of.declared[:_TOLD]
        regions = of.regions if len(of.regions) <= _TOLD else of.regions.taken(range(_TOLD))
        more = len(of.regions) - len(regions)
        return Listed(of.number, self.agent.name, of.owner, of.side, of.kind, regions, known, more)


@dataclass(frozen=True, eq=False)
class Listed:
    """A list in the ring. It holds nothing of NIXL's: an agent ends when the engine lets it go.

    regions, declared  the first 256, a list may be one request's and long
    more               how many regions there are besides
    """

    number: int
    agent: str
    owner: str
    side: Side
    kind: str
    regions: Regions
    declared: Sequence[Region | None]
    more: int

    def to_dict(self) -> dict[str, object]:
        """Regions as counts and lengths; addresses are not told."""
        regions = self.regions
        return {
            "kind": "list",
            "number": self.number,
            "agent": self.agent,
            "owner": self.owner,
            "side": self.side,
            "memory": self.kind,
            "regions": [
                {
                    "slots": int(regions.slots[number]),
                    "length": int(regions.lengths[number]),
                    "stride": int(regions.strides[number]),
                    "name": known.name if known else None,
                    "layer": known.layer if known else None,
                }
                for number, known in enumerate(self.declared)
            ],
            "more": self.more,
        }


_TOLD = 256
_NUMBERS = count(1)


class Preparing:
    """Makes lists for one module of NIXL."""

    def __init__(self, bindings: Any) -> None:
        self._bindings = bindings
        self._known = KnownOfAgents()

    def prepare(
        self,
        agent: Agent,
        agent_object: Any,
        name: object,
        kind: str,
        rows: Regions,
        stack: Stack,
        *,
        prepped: bool,
    ) -> Prepared:
        """What `prep_xfer_dlist(name, rows, kind)` of the agent prepares, or a side of an
        `initialize_xfer`, NIXL having agreed or not. Its breaches are those NIXL does not see."""
        owner_name = as_name(name)
        local = owner_name in ("", "NIXL_INIT_AGENT")
        side: Side = "local" if local else "remote"
        owner_name = agent.name if local else owner_name
        peer = None if owner_name == agent.name else agent.peers.get(owner_name)
        owner = agent if owner_name == agent.name else peer.twin if peer else None
        known = self._known.of(owner_name, declared(owner_name, here=owner is not None))
        if owner is not None and not owner.whole:
            owner = None
        wrapped = beyond_address_space(rows)
        prober = None
        if owner is None and owner_name != agent.name:
            segment = agent_object.nixl_mems[kind]
            prober = Prober(agent_object, self._bindings, owner_name, segment)
        if wrapped is None:
            regions, named, pieces, held = _placed(
                owner, known, kind, rows, prober, prepped=prepped
            )
        else:
            regions, named, held = rows, [None] * len(rows), []
            nowhere = np.full(len(rows), -1, np.int64)
            pieces = lambda: nowhere  # noqa: E731
        of = DescriptorList(
            next(_NUMBERS),
            side,
            owner_name,
            kind,
            regions,
            named,
            pieces,
            known=known.of_kind(kind),
        )
        found = wraps(of, wrapped) if wrapped is not None else None
        if found is None and prepped:
            # Runs of pages that one transfer describes may go on from one region into the next.
            found = past_declared(of) or run_into_next(of) or _overrun(of, owner, prober)
        if found is not None:
            of.breaches.append(found)
        version = owner.registrations.version if owner else 0
        return Prepared(of, agent, owner, prober, held, version, peer.version if peer else 0, stack)

    def refused(self, prepared: Prepared) -> Breach | None:
        """Why NIXL did not agree, if it is for the memory."""
        of, found = prepared.of, None
        if prepared.owner is not None:
            extents, live = prepared.owner.registrations.extents(of.kind)
            found = unheld(of, extents, live)
        elif prepared.prober is not None:
            found = _not_at_peer(of, prepared.prober)
        return found or next(iter(of.breaches), None)


def _overrun(of: DescriptorList, owner: Agent | None, prober: Prober | None) -> Breach | None:
    """The first region that goes over from one registration into another, where it could not be
    cut: NIXL looks at each row by itself. It has agreed, so what nobody is known to have
    registered was registered unseen, and is left alone."""
    if of.kind not in ("DRAM", "VRAM"):
        return None
    if owner is not None:
        extents, live = owner.registrations.extents(of.kind)
        regions = of.regions
        for number in np.flatnonzero(of.pieces() < 0).tolist():
            end, device = int(regions.ends[number]), int(regions.devices[number])
            first, length = int(regions.addresses[number]), int(regions.lengths[number])
            ends = (first, first + length), (end - length, end)
            if all(extents.holding(*slot, device) is not None for slot in ends):
                return unheld(of, extents, live)
    elif prober is not None and not prober.all_registered(of.regions):
        return _not_at_peer(of, prober)
    return None


def _placed(
    owner: Agent | None,
    known: Known,
    kind: str,
    rows: Regions,
    prober: Prober | None,
    *,
    prepped: bool,
) -> tuple[Regions, list[Any], Callable[[], Integers], list[Registration]]:
    """The rows cut where the memory is, with the declared region of each, and what holds them.

    What one transfer alone describes are any runs of pages: no regions but those declared.
    """
    regions = cut(rows, known.extents, listed=prepped)
    held: list[Registration] = []
    pieces: Callable[[], Integers]
    if owner is not None:
        registrations = owner.registrations
        if prepped:
            regions = cut(regions, registrations.extents(kind)[0])
        numbers = registrations.holding(kind, regions)
        if prepped:
            in_one = known.extents.holding_all(regions) if known else numbers
            joint = joined(regions, in_one)
            if joint is not regions:
                regions, numbers = joint, registrations.holding(kind, joint)
        held = registrations.tensors(numbers)
        pieces = lambda: numbers  # noqa: E731
    elif prober is not None:
        if prepped:
            regions = _cut_at_peer(regions, prober)
            if bool(((regions.strides < regions.lengths) & (regions.slots > 1)).any()):
                # Folding has taken the first of rows that overlap for one of the region before.
                in_one = known.extents.holding_all(regions) if known else prober.pieces(regions)
                regions = joined(regions, in_one)
        pieces = _once(lambda: prober.pieces(regions))
    else:
        nowhere = np.full(len(regions), -1, np.int64)
        pieces = lambda: nowhere  # noqa: E731
    return regions, declared_for(regions, kind, known.extents, known.regions), pieces, held


def _once(ask: Callable[[], Integers]) -> Callable[[], Integers]:
    answers: list[Integers] = []

    def asked() -> Integers:
        if not answers:
            answers.append(ask())
        return answers[0]

    return asked


def _cut_at_peer(regions: Regions, prober: Prober) -> Regions:
    """`cut`, by what the peer has registered."""
    if not len(regions) or prober.all_registered(regions):
        return regions
    several = np.flatnonzero(regions.slots > 1).tolist()
    return cut_at(regions, several, lambda number: _seams_at_peer(regions, number, prober))


def _seams_at_peer(regions: Regions, number: int, prober: Prober) -> tuple[list[int], bool]:
    """`Extents.seams`, by asking."""
    address, device = int(regions.addresses[number]), int(regions.devices[number])
    length, stride = int(regions.lengths[number]), int(regions.strides[number])
    slot, slots, found = 0, int(regions.slots[number]), list[int]()
    while True:
        left = slots - slot
        fits = prober.fitting(address + slot * stride, length, stride, left + 1, device)
        if not fits:
            # What lies in no registration has not come to another one.
            return found[:-1], False
        if fits >= left:
            return found, fits == left
        slot += fits
        found.append(slot)


def _not_at_peer(of: DescriptorList, prober: Prober) -> Breach | None:
    """The first slot that the peer has not registered, as its metadata says."""
    regions = of.regions
    for number in range(len(regions)):
        address, device = int(regions.addresses[number]), int(regions.devices[number])
        length, stride = int(regions.lengths[number]), int(regions.strides[number])
        slots = int(regions.slots[number])
        fits = prober.fitting(address, length, stride, slots, device)
        given = {f"slots given for region {number}": slots, "slots registered": fits}
        if not fits:
            return Breach(
                UNREGISTERED,
                f"{of.called(number)} lies in no memory that {of.owner} has registered, as far as "
                "the metadata loaded says",
                given,
                of.place(number, 0),
            )
        if fits < slots:
            return Breach(
                OUT_OF_REGION,
                f"{of.called(number)} is given {slots} slots, what {of.owner} has registered ends "
                f"after {fits}: {of.called(number, fits)} is past it",
                given,
                of.place(number, fits),
            )
    return None
