"""What rounding may do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Tolerance:
    """Bounds of a difference; each row is judged by itself, so that a batch hides none of them.

    relative  a number may be off by this times the largest magnitude in its row of the reference:
              where terms cancel, the error of a sum is that of its terms, not of the sum
    absolute  and by this
    norm      length of the row's difference over that of the reference's row, at most
    overlap   share of the right top-k entries, at least; an exchange of entries whose reference
              scores `relative` and `absolute` do not tell apart is none
    """

    relative: float
    absolute: float = 0.0
    norm: float | None = None
    overlap: float = 1.0

    @property
    def most(self) -> float:
        """The bound of the norm: that of single numbers, where none is given."""
        return self.relative if self.norm is None else self.norm


# A few roundings of each format; of float32 also those of TF32, in which `tl.dot` multiplies.
# Of eight bits one step, where two sides round to either side of a value.
TOLERANCES: Final[Mapping[str, Tolerance]] = {
    "float64": Tolerance(1e-9),
    "float32": Tolerance(1e-3),
    "float16": Tolerance(2e-3),
    "bfloat16": Tolerance(1e-2),
    "float8_e4m3fn": Tolerance(0.13, norm=0.05),
    "float8_e4m3fnuz": Tolerance(0.13, norm=0.05),
    "float8_e5m2": Tolerance(0.26, norm=0.1),
    "float8_e5m2fnuz": Tolerance(0.26, norm=0.1),
}


def coarsest(*dtypes: str) -> Tolerance:
    """Of what a case and its results are made; whole numbers take no part. Without any: none."""
    found = [TOLERANCES[name] for name in dtypes if name in TOLERANCES]
    return max(found, key=lambda one: one.relative, default=Tolerance(0.0))
