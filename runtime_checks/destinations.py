"""What one transfer writes: no slot from two sources, no byte twice.

One slot written twice from the same source is left alone, its bytes are right.
"""

from dataclasses import dataclass

import numpy as np

from kvlint.runtime_checks.checks import DUPLICATE_DESTINATION, OVERLAPPING_DESTINATION, Breach
from kvlint.runtime_checks.regions import Addresses, Integers
from kvlint.runtime_checks.selection import Selection


@dataclass(frozen=True, eq=False)
class Rows:
    """Bytes that a transfer writes, ascending: [begins, ends) of each row, and its position."""

    begins: Addresses
    ends: Addresses
    devices: Integers
    positions: Integers

    @classmethod
    def of(cls, selection: Selection) -> "Rows":
        begins, devices = selection.addresses, selection.devices
        ends = begins + selection.lengths.astype(np.uint64)
        order = np.lexsort((ends, begins, devices))
        return cls(begins[order], ends[order], devices[order], order)

    def without_repeats(self, sources: Addresses, devices: Integers) -> "Rows":
        """Without rows that are written from where the next, at least as long, is written from."""
        kept = np.ones(len(self.begins), np.bool_)
        kept[:-1] = (
            (self.begins[1:] != self.begins[:-1])
            | (self.devices[1:] != self.devices[:-1])
            | (sources[1:] != sources[:-1])
            | (devices[1:] != devices[:-1])
        )
        return Rows(self.begins[kept], self.ends[kept], self.devices[kept], self.positions[kept])


def written_twice(destination: Selection, source: Selection) -> Breach | None:
    """The first slot, or byte, that the transfer writes from two sources."""
    if destination.columns and destination.blocks is not None:
        if not destination.of.regions.overlapping and not _any_twice(destination):
            return None
    return _in_rows(destination, source)


def _any_twice(destination: Selection) -> bool:
    """Whether a column has a slot twice; regions outside of groups are looked at row by row."""
    if destination.loose:
        return True
    for slots in destination.columns.values():
        seen = np.zeros(destination.of.most, np.bool_)
        seen[slots] = True
        if np.count_nonzero(seen) != len(slots):
            return True
    return False


def _in_rows(destination: Selection, source: Selection) -> Breach | None:
    if len(destination.indices) < 2 or len(destination.indices) != len(source.indices):
        return None
    rows = Rows.of(destination)
    rows = rows.without_repeats(source.addresses[rows.positions], source.devices[rows.positions])
    clash = (rows.devices[1:] == rows.devices[:-1]) & (rows.begins[1:] < rows.ends[:-1])
    if not clash.any():
        return None
    number = int(clash.argmax())
    one, other = sorted((int(rows.positions[number]), int(rows.positions[number + 1])))
    whole = rows.begins[number] == rows.begins[number + 1]
    return _breach(destination, source, one, other, whole=bool(whole))


def _breach(
    destination: Selection, source: Selection, one: int, other: int, *, whole: bool
) -> Breach:
    check = DUPLICATE_DESTINATION if whole else OVERLAPPING_DESTINATION
    what = (
        "is written from" if whole else f"shares bytes with {destination.call(one)}, written from"
    )
    return Breach(
        check,
        f"{destination.call(other)} {what} {source.call(one)} (at {one}) and "
        f"{source.call(other)} (at {other})",
        {f"source at {one}": source.call(one), f"source at {other}": source.call(other)},
        destination.place(other),
    )
