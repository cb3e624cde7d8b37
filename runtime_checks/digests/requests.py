"""Which request a notification is about: both sides see it, so both sample the same requests."""

import re
from typing import Final

_KNOWN: Final[dict[str, re.Pattern[bytes]]] = {}


def knows(engine: str, pattern: bytes) -> None:
    """An adapter's word for its engine's notifications; the first group is the request."""
    _KNOWN[engine] = re.compile(pattern, re.DOTALL)


def request_of(notification: bytes) -> bytes:
    """The request's part; all of it, where no engine here writes such notifications."""
    for pattern in _KNOWN.values():
        found = pattern.fullmatch(notification)
        if found:
            return found[1]
    return notification
