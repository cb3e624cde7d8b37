"""The geometry of a process's agents as files: `kvlint.geometry.Geometry` in JSON, schema 1.

One file an agent, replaced when its regions are declared again. Addresses are absolute, as that
schema has them: they tell where the memory of the process lies. In a folder of evidence, which may
be given to others, the lowest region begins at 0 instead; distances stay. Files are like those of
`evidence`: for their owner only, no links followed, and bounded.
"""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from kvlint.geometry import Geometry
from kvlint.runtime_checks import evidence
from kvlint.runtime_checks.evidence import MIB
from kvlint.runtime_checks.policy import say

# All files of a process together.
MOST: Final = 64 * MIB
# In the place of an engine's name: nobody has declared these regions.
FOLDED: Final = "folded by kvlint from prepared lists"


class CaptureError(ValueError):
    """What is not written, and why, in one line."""


class Capture:
    """The files of one process, and of what is forked from it.

    relative  whether addresses count from the lowest region
    most      bytes that all files of the process may have together
    """

    def __init__(
        self, folder: Path, run: str, *, relative: bool = False, most: int | None = None
    ) -> None:
        self.folder = folder
        self._run = run
        self._relative = relative
        self._most = MOST if most is None else most
        self._sizes: dict[str, int] = {}

    def keep(self, agent: str, geometry: Geometry) -> None:
        """Write it, or say why not: a server goes on."""
        try:
            self.write(agent, geometry)
        except OSError as error:
            say(f"geometry of agent {agent} is not captured: {error.strerror}")
        except CaptureError as error:
            say(str(error))

    def write(self, agent: str, geometry: Geometry) -> Path:
        """Gives back the file. Raises CaptureError beyond the bound, and OSError; then the file is
        what it was."""
        if self._relative:
            geometry = rebased(geometry)
        content = geometry.to_json().encode() + b"\n"
        name = f"geometry-{self._run}-{os.getpid()}-{_part(agent)}.json"
        others = sum(size for other, size in self._sizes.items() if other != name)
        most = self._most
        if others + len(content) > most:
            raise CaptureError(f"geometry of agent {agent} is not captured: beyond {most} bytes")
        evidence.replace(self.folder, name, content)
        self._sizes[name] = len(content)
        return self.folder / name


def rebased(geometry: Geometry) -> Geometry:
    """The same with addresses that count from the lowest region."""
    lowest = min((region.address for region in geometry.regions), default=0)
    regions = [replace(one, address=one.address - lowest) for one in geometry.regions]
    return replace(geometry, regions=tuple(regions))


def _part(agent: str) -> str:
    """An agent may have any name, a file may not."""
    plain = agent.replace("-", "").replace("_", "")
    if plain.isascii() and plain.isalnum() and len(agent) <= 64:
        return agent
    return hashlib.sha256(agent.encode("utf-8", "surrogatepass")).hexdigest()[:16]
