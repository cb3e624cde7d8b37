"""Targets in other processes: what they are told goes through their mailbox, and what comes through
the one of this process is for its own targets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from kvlint.runtime_checks.digests.identity import contents, tags
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.digests.rows import Rows
from kvlint.runtime_checks.exchange.channel import Channel
from kvlint.runtime_checks.exchange.messages import Announced, Digested, Stage
from kvlint.runtime_checks.nixl.agents import Agent
from kvlint.runtime_checks.nixl.initiator import Moment
from kvlint.runtime_checks.nixl.target import Target, id_of
from kvlint.runtime_checks.policy import say
from kvlint.runtime_checks.recent import keep
from kvlint.runtime_checks.settings import Settings

MODULE: Final = "exchange"
_STAGES: Final = {
    Moment.POST: Stage.POST,
    Moment.COMPLETION: Stage.COMPLETION,
    Moment.COMMIT: Stage.COMMIT,
}
_MOMENTS: Final = {stage: moment for moment, stage in _STAGES.items()}
# Digests that came before what they are of was announced.
_EARLY: Final = 256


class Exchange:
    """The channels of this process's agents; none, where no key is shared or no bytes are read."""

    def __init__(self, bindings: Any, settings: Settings) -> None:
        self._bindings = bindings
        self._key = settings.key if settings.mode.reads else None
        self._channels: WeakKeyDictionary[Agent, Channel] = WeakKeyDictionary()
        self._said = set[str]()
        self._early: dict[bytes, list[Digested]] = {}

    def open(self, agent: Agent) -> None:
        """Before the agent's metadata are given out. Asked again, nothing happens."""
        of_nixl = agent.object()
        if self._key is None or of_nixl is None:
            return
        channel = self._channels.get(agent)
        if channel is None:
            channel = Channel(of_nixl, self._bindings, self._key)
            self._channels[agent] = channel
        problem = channel.open()
        if problem is not None and problem not in self._said:
            self._said.add(problem)
            say(f"digests are not exchanged: {problem}")

    def to(self, agent: Agent, peer: str) -> "ByMailbox | None":
        """The peer, if it is armed and shares the key."""
        channel = self._channels.get(agent)
        return ByMailbox(channel, peer) if channel is not None and channel.armed(peer) else None

    def forget(self, agent: Agent, peer: str) -> None:
        channel = self._channels.get(agent)
        if channel is not None:
            channel.forget(peer)

    def receive(self, target: Callable[[str], Target | None]) -> None:
        """Hand over what has come.

        target  by the name of an agent of this process
        """
        # They read one mailbox, each for all: nothing is left for the second.
        for channel in list(self._channels.values()):
            for message in channel.receive():
                there = target(message.receiver)
                if there is None:
                    continue
                if isinstance(message, Announced):
                    there.announced(
                        message.transfer,
                        None,
                        message.sender.name,
                        message.operation,
                        message.rows,
                    )
                    for early in self._early.pop(message.transfer, ()):
                        _hand_over(early, there)
                elif not _hand_over(message, there):
                    others = self._early.get(message.transfer, ())
                    waiting = [one for one in others if one.stage is not message.stage]
                    keep(self._early, message.transfer, [*waiting, message], _EARLY)

    def counts(self) -> Mapping[str, int]:
        return next((channel.counts for channel in list(self._channels.values())), {})

    def close(self) -> None:
        for channel in list(self._channels.values()):
            channel.close()


def _hand_over(message: Digested, target: Target) -> bool:
    """Whether it is known what the digests are of."""
    rows = target.rows(message.transfer)
    if rows is None:
        return False
    if len(message.tags) == len(rows):
        digests = contents(message.tags, rows.identities, rows.ordinals)
        target.digested(message.transfer, _MOMENTS[message.stage], digests)
    return True


@dataclass(eq=False)
class ByMailbox:
    """A target of another process."""

    channel: Channel
    peer: str
    was_announced: bool = False

    def announced(self, transfer: str, operation: str, rows: Rows) -> None:
        self.was_announced = self.channel.announce(self.peer, id_of(transfer), operation, rows)

    def digested(
        self,
        transfer: str,
        moment: Moment,
        digests: Digests,
        rows: Rows,
        owners: Sequence[Any] = (),
    ) -> None:
        if self.was_announced:
            told = tags(digests, rows.identities, rows.ordinals)
            self.channel.digested(self.peer, id_of(transfer), _STAGES[moment], told)
