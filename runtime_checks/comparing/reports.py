"""What a comparison found, in words and as a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Final

from kvlint.runtime_checks.comparing.cases import Case, chosen_values

_SHOWN: Final = 5


@dataclass(frozen=True)
class Difference:
    """One result of one case.

    max_error  largest difference of two numbers; infinite where one side has a number and the
               other has none
    norm       length of the difference over that of the reference, of the worst row; NaN for
               whole numbers
    overlap    share of the right top-k entries in the worst row, None where none was asked for
    faults     what is wrong, in words, the place first
    """

    name: str
    max_error: float
    norm: float
    overlap: float | None
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """One case.

    differences  of its results
    faults       what is wrong and is no result's
    """

    case: Case
    differences: tuple[Difference, ...]
    faults: tuple[str, ...]

    @property
    def right(self) -> bool:
        return not self.faults and not any(one.faults for one in self.differences)

    def in_run(self, number: int, of: int) -> "Outcome":
        """The same, said of one run of several."""
        first, *rest = self.all_faults
        bare = tuple(replace(one, faults=()) for one in self.differences)
        return Outcome(self.case, bare, (f"in run {number} of {of}: {first}", *rest))

    @property
    def all_faults(self) -> list[str]:
        return [*self.faults, *(fault for one in self.differences for fault in one.faults)]


@dataclass(frozen=True)
class Report:
    """Every case in its order. As a string: what is wrong, where, and the table."""

    outcomes: tuple[Outcome, ...]

    @property
    def right(self) -> bool:
        return not self.wrong

    @property
    def wrong(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.right]

    def in_words(self) -> str:
        """One line: which choices of batch, length, type and stride the faults go with."""
        wrong, of = self.wrong, len(self.outcomes)
        if not wrong:
            return f"right in all {of} cases"
        return f"wrong in {len(wrong)} of {of} cases{_pattern(self.outcomes)}"

    def table(self) -> str:
        """One line a case and result."""
        head: tuple[str, ...] = ("case", "result", "max error", "norm", "overlap", "")
        rows = [head, *(row for outcome in self.outcomes for row in _rows(outcome))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines = []
        for row in rows:
            left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
            right = [cell.rjust(width) for cell, width in zip(row[2:5], widths[2:5], strict=True)]
            lines.append("  ".join([*left, *right, row[5]]).rstrip())
        return "\n".join(lines)

    def __str__(self) -> str:
        wrong = self.wrong
        lines = [self.in_words()]
        for outcome in wrong[:_SHOWN]:
            lines += [f"  {outcome.case}: {fault}" for fault in outcome.all_faults]
        if len(wrong) > _SHOWN:
            lines.append(f"  and {len(wrong) - _SHOWN} more cases")
        return "\n".join([*lines, "", self.table()])


def _rows(outcome: Outcome) -> list[tuple[str, ...]]:
    word = "right" if outcome.right else "wrong"
    found: list[tuple[str, ...]] = [
        (
            str(outcome.case),
            one.name,
            f"{one.max_error:.3g}",
            "" if isnan(one.norm) else f"{one.norm:.3g}",
            "" if one.overlap is None else f"{one.overlap:.4f}",
            word,
        )
        for one in outcome.differences
    ]
    return found or [(str(outcome.case), "", "", "", "", word)]


# How each property is spoken of: before its values, and these in plain words.
_SPOKEN: Final = (
    ("batch", "at batch", "at batches"),
    ("longest", "at length", "at lengths"),
    ("ragged", "for", "for"),
    ("dtype", "in", "in"),
    ("stride", "with strides", "with strides"),
)
_OF_RAGGED: Final = {True: "ragged rows", False: "uniform rows"}


def _pattern(outcomes: Sequence[Outcome]) -> str:
    """The choices that a fault goes with: exactly, or at least all wrong cases share them."""
    wrong = [outcome.case for outcome in outcomes if not outcome.right]
    every = [outcome.case for outcome in outcomes]
    shared: dict[str, list[object]] = {}
    for name, *_ in _SPOKEN:
        bad = chosen_values(wrong, name)
        if len(bad) < len(chosen_values(every, name)):
            shared[name] = bad
    if not shared:
        return "" if len(wrong) == len(every) else ", of every kind"
    where = " ".join(_phrase(name, bad) for name, bad in shared.items())
    covered = sum(all(getattr(case, name) in bad for name, bad in shared.items()) for case in every)
    if covered > len(wrong):
        return f", all of them {where}"
    if len(shared) > 1:
        return f": wrong {where}; right otherwise"
    ((name, bad),) = shared.items()
    good = [value for value in chosen_values(every, name) if value not in bad]
    return f": right {_phrase(name, good)}; wrong {where}"


def _phrase(name: str, values: Sequence[object]) -> str:
    one, several = next(spoken[1:] for spoken in _SPOKEN if spoken[0] == name)
    if name == "ragged":
        values = [_OF_RAGGED[bool(value)] for value in values]
    return f"{one if len(values) == 1 else several} {', '.join(map(str, values))}"
