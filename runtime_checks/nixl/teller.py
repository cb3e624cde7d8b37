"""Runs checks, and tells what they say with the calls and earlier transfers that belong to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.policy import Policy, Site
from kvlint.runtime_checks.transfers import Transfer
from kvlint.runtime_checks.violations import Violation

HISTORY: Final = 4


@dataclass(eq=False)
class Verdict:
    """What the checks say before a call.

    raises   what to raise instead of the call
    refusal  the same, should NIXL not refuse the call by itself, as it is known to
    notes    what is added to NIXL's own exception
    """

    raises: Violation | None = None
    refusal: Violation | None = None
    notes: list[str] = field(default_factory=list)
    transfer: Transfer | None = None


class Teller:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def run(self, check: str, look: Callable[[], Breach | None]) -> Breach | None:
        """What the check says; nothing, where it fails by itself or has before."""
        if self.policy.armed(check):
            with self.policy.contained(check):
                return look()
        return None

    def tell(
        self,
        breach: Breach,
        sites: Sequence[Site],
        agent: str,
        peer: str | None,
        transfer: Transfer | None = None,
    ) -> Violation | None:
        """Record it; what to raise, where the mode raises."""
        return self.policy.judge(
            breach,
            sites,
            agent=agent,
            peer=peer,
            transfer=transfer.name if transfer else None,
            history=self._history(agent, peer, transfer),
        )

    def _history(
        self, agent: str, peer: str | None, itself: Transfer | None
    ) -> list[dict[str, object]]:
        """The last transfers between the two, newest last."""
        found: list[dict[str, object]] = []
        with self.policy.contained("history"):
            for entry in reversed(self.policy.recorder.entries()):
                if isinstance(entry, Transfer) and entry is not itself:
                    if (entry.agent, entry.peer) == (agent, peer):
                        found.append(dict(entry.to_dict()))
                        if len(found) == HISTORY:
                            break
        return found[::-1]
