"""Digests begun now and read later, wherever the pages lie."""

from dataclasses import dataclass
from typing import Protocol

from kvlint.runtime_checks.digests import device
from kvlint.runtime_checks.digests.host import UnreadableError, digests_of
from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.reference import Digests


class Pending(Protocol):
    """Digests that a device may still be working on."""

    def ready(self) -> bool:
        """Whether `digests` would not wait."""

    def digests(self) -> Digests:
        """(N,) in the pages' order; waits for the device if it must. Raises `UnreadableError`."""


@dataclass(frozen=True, eq=False)
class Read:
    """Digests that are there."""

    found: Digests

    def ready(self) -> bool:
        return True

    def digests(self) -> Digests:
        return self.found


class Digester:
    """Digests of one seed, which both sides of a transfer must share to compare them. With two
    lanes they have 128 bits: (N, 2)."""

    def __init__(self, seed: int, lanes: int = 1) -> None:
        self.seed, self.lanes = seed, lanes

    def prepare(self, kind: str, index: int) -> None:
        """What the first digest of such memory would wait for. Raises `UnreadableError`."""
        if kind == "VRAM":
            device.prepare(index, self.seed, self.lanes)

    def start(self, pages: Pages) -> Pending:
        """What the pages hold now. On a device that is: after all that the calling thread's
        current stream was given so far, and before what it is given next; nothing waits for it.
        Raises `UnreadableError` where the pages cannot be read: no page of the memory kind is
        ever touched through a pointer that is not its."""
        if pages.kind == "DRAM":
            return Read(digests_of(pages, self.seed, self.lanes))
        if pages.kind == "VRAM":
            return device.start(pages, self.seed, self.lanes)
        raise UnreadableError(f"no digests of memory of kind {pages.kind}")
