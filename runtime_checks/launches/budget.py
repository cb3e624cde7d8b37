"""How much time may go into what is only done now and then."""

import time
from collections.abc import Callable


class Budget:
    """A share of the time since it began. One debt may always be made: what is next waits for the
    time that it took."""

    def __init__(self, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._clock = clock
        self._begun = clock()
        self._spent = 0.0

    def allows(self) -> bool:
        return self._spent <= self._share * (self._clock() - self._begun)

    def spend(self, seconds: float) -> None:
        self._spent += seconds
