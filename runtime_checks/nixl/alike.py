"""Transfers in flight by their names. Of several with one notification nobody can tell which of
them it is of: they come to their ends in any order.

Not thread-safe: whoever owns it holds a lock.
"""

from kvlint.runtime_checks.transfers import Transfer, parts_of_name


class Alike:
    def __init__(self) -> None:
        self._named: dict[str, Transfer] = {}
        self._names: dict[int, str] = {}
        self._alike: dict[str, list[Transfer]] = {}

    def enter(self, transfer: Transfer) -> None:
        """It is posted now, under this name."""
        name = transfer.name or ""
        stem, _ = parts_of_name(name)
        alike = self._alike.setdefault(stem, [])
        transfer.alone, transfer.heard = not alike, False
        for other in alike:
            other.alone = False
        alike.append(transfer)
        self._named[name] = transfer
        self._names[transfer.number] = name

    def leave(self, number: int) -> None:
        """It is over. Unknown numbers are none of ours."""
        name = self._names.pop(number, None)
        if name is None:
            return
        stem, _ = parts_of_name(name)
        self._alike[stem].remove(self._named.pop(name))
        if not self._alike[stem]:
            del self._alike[stem]

    def heard(self, name: str) -> None:
        """An agent of this process has read the notification: it is over, whether or not its
        initiator has asked since."""
        transfer = self._named.get(name)
        if transfer is not None:
            transfer.heard = True
