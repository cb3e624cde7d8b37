"""Declared regions, and where they lie: made once for all lists of one memory."""

from collections.abc import Sequence
from functools import cached_property
from operator import is_
from typing import Final

from kvlint.geometry import Region
from kvlint.runtime_checks.extents import Extents
from kvlint.runtime_checks.recent import keep

_AGENTS: Final = 256


class Known:
    """Regions that an adapter, or a program, has declared of one memory."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self.regions = regions
        self._of_kind: dict[str, Known] = {}

    def __bool__(self) -> bool:
        return bool(self.regions)

    @cached_property
    def extents(self) -> Extents:
        return Extents.of([(one.address, one.length, one.device) for one in self.regions])

    def of_kind(self, kind: str) -> "Known":
        """Those in memory of one kind."""
        if kind not in self._of_kind:
            those = [region for region in self.regions if region.memory_kind == kind]
            alike = len(those) == len(self.regions)
            self._of_kind[kind] = self if alike else Known(those)
        return self._of_kind[kind]

    def are(self, regions: Sequence[Region]) -> bool:
        """Whether they are these very regions."""
        return len(self.regions) == len(regions) and all(map(is_, self.regions, regions))


NOTHING: Final = Known(())


class KnownOfAgents:
    """By the name of the agent whose memory it is."""

    def __init__(self) -> None:
        self._kept: dict[str, Known] = {}

    def of(self, agent: str, regions: Sequence[Region]) -> Known:
        """What is known, as long as the regions are those of the last call."""
        kept = self._kept.get(agent)
        if kept is None or not kept.are(regions):
            kept = Known(regions) if regions else NOTHING
        keep(self._kept, agent, kept, _AGENTS)
        return kept
