"""What ends too early: lists, handles, registrations and tensors that a transfer still needs."""

import numpy as np

from kvlint.runtime_checks.checks import (
    COLLECTED_MEMORY,
    DEREGISTERED_IN_FLIGHT,
    NEVER_POLLED,
    OVERLAP_IN_FLIGHT,
    RELEASED_HANDLE,
    RELEASED_IN_FLIGHT,
    STALE_LIST,
    Breach,
    Place,
)
from kvlint.runtime_checks.lists import DescriptorList, in_words
from kvlint.runtime_checks.nixl.agents import Agent
from kvlint.runtime_checks.nixl.preparing import Prepared
from kvlint.runtime_checks.registrations import Registration
from kvlint.runtime_checks.transfers import Transfer


def stale(side: Prepared) -> Breach | None:
    """Whether the list lost memory that it was prepared on. Where it did not, that is noted, so
    that the next question costs one comparison."""
    of, owner = side.of, side.owner
    if owner is not None:
        version = owner.registrations.version
        if version == side.version:
            return None
        lost = owner.registrations.still_held(of.kind, of.regions, of.pieces())
        if lost is not None:
            again = owner.registrations.holding(of.kind, of.regions.taken([lost]))[0] >= 0
            return _stale(
                of, lost, "deregistered and registered again" if again else "deregistered"
            )
        side.version = version
        return None
    peer = side.agent.peers.get(of.owner)
    if side.prober is not None and peer is not None and peer.version != side.peer_version:
        for number in range(len(of.regions)):
            if not side.prober.all_registered(of.regions.taken([number])):
                return _stale(of, number, "deregistered, as its newer metadata says")
        side.peer_version = peer.version
    return None


def _stale(of: DescriptorList, region: int, how: str) -> Breach:
    return Breach(
        STALE_LIST,
        f"{of.called(region)} of {of.owner} was {how} after the list was prepared",
        {"registration when prepared": "live", "registration now": how},
        of.place(region, None),
    )


def collected(side: Prepared) -> Breach | None:
    """Whether a tensor that was registered, and that the list lies in, is gone."""
    for registration in side.held:
        if registration.collected is not None and registration.collected():
            of = side.of
            region = int(np.flatnonzero(of.pieces() == registration.number)[0])
            return Breach(
                COLLECTED_MEMORY,
                f"the tensor registered for {of.called(region)} of {of.owner} ({registration}) is "
                "gone, and its memory may be another's",
                {"tensor when registered": "alive", "tensor now": "collected"},
                of.place(region, None),
            )
    return None


def deregistered(transfer: Transfer, agent: Agent, registration: Registration) -> Breach | None:
    """Whether a transfer in flight uses a byte of the registration."""
    for selection in (transfer.local, transfer.remote):
        if selection is None or selection.of.owner != agent.name:
            continue
        if selection.of.kind != registration.kind or not len(selection.indices):
            continue
        begins = selection.addresses
        ends = begins + selection.lengths.astype(np.uint64)
        within = (begins < np.uint64(registration.end)) & (ends > np.uint64(registration.address))
        within &= selection.devices == registration.device
        hits = np.flatnonzero(within)
        if len(hits):
            at = int(hits[0])
            return Breach(
                DEREGISTERED_IN_FLIGHT,
                f"{registration} of {agent.name} is deregistered while {_named(transfer)} still "
                f"moves {selection.call(at)}",
                {"state of the transfer": transfer.state, "registration": "deregistered"},
                selection.place(at),
            )
    return None


def released(transfer: Transfer, *, dropped: bool) -> Breach:
    how = "dropped, so it is released," if dropped else "released"
    return Breach(
        RELEASED_IN_FLIGHT,
        f"the handle of {_named(transfer)} is {how} while it still moves bytes to "
        f"{_first(transfer)}; they land all the same, and no notification is sent",
        {"state of the transfer": transfer.state, "handle": "released"},
        transfer.first_written,
    )


def never_polled(transfer: Transfer) -> Breach:
    return Breach(
        NEVER_POLLED,
        f"{_named(transfer)} to {_first(transfer)} was posted and never asked about: its "
        "notification leaves only when the state is asked for",
        {"posts": 1, "polls": transfer.polls},
        transfer.first_written,
    )


def dead(call: str, transfer: Transfer | None, prepared: Prepared | None) -> Breach:
    place: Place | None = None
    what = "a handle"
    if transfer is not None:
        what = f"the handle of {_named(transfer)}"
        place = transfer.first_written
        what += f" to {in_words(place)}" if place is not None else ""
    elif prepared is not None:
        of = prepared.of
        what = f"the handle of {of.side} list {of.number}"
        if len(of.regions):
            place = of.place(0, None)
            what += f", from {of.called(0)} on"
    return Breach(
        RELEASED_HANDLE,
        f"{call} is given {what}, which was released before: NIXL would read freed memory",
        {"state of the handle": "released", "call": call},
        place,
    )


def overlapping(transfer: Transfer, other: Transfer, position: int) -> Breach:
    destination = transfer.destination
    # The other one may be over, and its selections gone, by the time that it is told.
    sender = other.agent if other.operation == "WRITE" else other.peer
    return Breach(
        OVERLAP_IN_FLIGHT,
        f"{destination.call(position)} of {destination.of.owner} (at {position}) is written by "
        f"{_named(transfer)} while {_named(other)} from {sender} still writes it",
        {"transfer": _named(transfer), "transfer in flight": _named(other)},
        destination.place(position),
    )


def _named(transfer: Transfer) -> str:
    return f"transfer {transfer.name or transfer.number}"


def _first(transfer: Transfer) -> str:
    place = transfer.first_written
    return in_words(place) if place is not None else f"{transfer.destination.of.side} memory"
