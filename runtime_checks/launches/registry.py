"""The pools of this process as launches need them: which region holds an address."""

from bisect import bisect_right
from typing import TYPE_CHECKING

from kvlint.geometry import Region
from kvlint.runtime_checks import declared
from kvlint.runtime_checks.pools.watching import Pools

if TYPE_CHECKING:
    from kvlint.runtime_checks.pools.tensors import Gone


class Registry:
    """Regions by address. What is declared for another process's agent is not among them."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._seen = -1
        self._begins: list[int] = []
        self._regions: list[tuple[Region, Gone]] = []

    def stamp(self) -> int:
        """Another one whenever anything was declared; cheap."""
        return declared.changes() + self._pools.changes

    def read(self) -> None:
        """Ask what is declared, if that has changed."""
        now = self.stamp()
        if now == self._seen:
            return
        self._seen = now
        told = (*declared.of_this_process(), *self._pools.regions())
        found = {region.address: (region, gone) for region, gone in told}
        self._begins = sorted(found)
        self._regions = [found[address] for address in self._begins]

    def region_of(self, address: int) -> Region | None:
        at = bisect_right(self._begins, address) - 1
        if at < 0:
            return None
        region, gone = self._regions[at]
        return region if address < region.address + region.length and not gone() else None

    def differs(self, address: int, element_size: int) -> bool:
        """Whether the region there has elements of another size."""
        region = self.region_of(address)
        return region is not None and region.element_size not in (None, element_size)
