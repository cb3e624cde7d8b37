"""What a page is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from kvlint.geometry import Geometry
from kvlint.runtime_checks.reading import Process, Seen, Story

if TYPE_CHECKING:
    from kvlint.runtime_checks.bridge import Judged


@dataclass(frozen=True)
class Given:
    """
    name        of the folder, as the user calls it
    processes   in which kvlint was loaded
    geometries  as captured, by a label
    judged      every hypothesis; None where nobody has given any
    source      file that the hypotheses are from
    """

    name: str
    story: Story
    processes: Sequence[Process] = ()
    geometries: Mapping[str, Geometry] = field(default_factory=dict)
    judged: "Sequence[Judged] | None" = None
    source: str = ""

    def answered(self, answer: str) -> "list[Judged]":
        return [one for one in self.judged or () if one.answer == answer]

    @cached_property
    def numbered(self) -> list[tuple[int, Seen]]:
        """Violations by the numbers that the report in the terminal has, too."""
        return list(enumerate(self.story.violations, 1))

    def number_of(self, seen: Seen) -> int | None:
        return self._numbers.get(id(seen))

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {id(seen): number for number, seen in self.numbered}

    @property
    def unclaimed(self) -> list[tuple[int, Seen]]:
        """Violations that belong to no hypothesis."""
        claimed = {id(seen) for one in self.judged or () for seen in one.violations}
        return [(number, seen) for number, seen in self.numbered if id(seen) not in claimed]
