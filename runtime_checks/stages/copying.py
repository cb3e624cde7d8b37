"""Copies between a device's pool and its copy in host memory, as stages.

What is written back is followed under a name of its own until its host pages are given back: by
then the request may be long gone, and its id may be another's. Whose pages they were is in the
name, where stages have told it.
"""

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.stages.memory import Memory
from kvlint.runtime_checks.stages.notes import Owned, Stage
from kvlint.runtime_checks.stages.noting import Stages


class Copies:
    """After a copy was begun on the current stream, each of these is told of it. Slot k of the
    one pool goes to slot k of the other; both pools have the same regions, by key."""

    def __init__(self, stages: Callable[[], Stages | None]) -> None:
        self._stages = stages
        self._numbers = count(1)

    @property
    def wanted(self) -> bool:
        """Whether anybody looks at the bytes of copies."""
        return self._stages() is not None

    def written_back(
        self, device: Memory, device_slots: Integers, host: Memory, host_slots: Integers
    ) -> None:
        stages = self._stages()
        if stages is None:
            return
        # What lies on the device without a stage told is not known from one copy to the next.
        requests = [one for one in stages.owners(device, device_slots) if one.request]
        copy = self._copy(np.arange(len(device_slots)), requests)
        stages.forget(host, host_slots)
        stages.noted(Stage.WRITE_BACK, device, device_slots, [copy, *requests], writes=False)
        stages.noted(Stage.WRITE_BACK, host, host_slots, [copy], writes=True)
        stages.raise_found()

    def loaded_back(
        self, host: Memory, host_slots: Integers, device: Memory, device_slots: Integers
    ) -> None:
        stages = self._stages()
        if stages is None:
            return
        owners = stages.owners(host, host_slots)
        known = np.zeros(len(host_slots), bool)
        for one in owners:
            known[one.positions] = True
        if not known.all():
            owners = [*owners, self._copy(np.flatnonzero(~known))]
        stages.noted(Stage.LOAD_BACK, host, host_slots, owners, writes=False)
        stages.noted(Stage.LOAD_BACK, device, device_slots, owners, writes=True)
        stages.raise_found()

    def freed(self, host: Memory, slots: Integers) -> None:
        """What comes there next, from a device or from storage, may come unseen."""
        stages = self._stages()
        if stages is not None:
            stages.forget(host, slots)

    def _copy(self, positions: Integers, requests: Sequence[Owned] = ()) -> Owned:
        name = f"host copy {next(self._numbers)}"
        if requests:
            name += f" of request {requests[0].owner}{' and others' if len(requests) > 1 else ''}"
        return Owned(name, positions, np.arange(len(positions)), request=False)
