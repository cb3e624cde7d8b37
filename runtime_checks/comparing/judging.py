"""One result of a kernel against that of its reference."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kvlint.runtime_checks.comparing.cases import Case
from kvlint.runtime_checks.comparing.layouts import unwritten
from kvlint.runtime_checks.comparing.reports import Difference
from kvlint.runtime_checks.comparing.tolerances import Tolerance
from kvlint.runtime_checks.comparing.topk import chosen_overlap, overlap


@dataclass(frozen=True)
class Question:
    """What is asked of results.

    top_k           best entries of the last dimension that must be the same
    within_lengths  whether columns past a row's length are left out
    poisoned        whether what the kernel does not write holds poison
    """

    tolerance: Tolerance
    top_k: int | None = None
    within_lengths: bool = False
    poisoned: bool = True


def judged(case: Case, name: str, kernel: Tensor, reference: Tensor, asked: Question) -> Difference:
    """Numbers of one result. Whole numbers must be equal."""
    if kernel.shape != reference.shape:
        sides = f"{tuple(kernel.shape)}, the reference {tuple(reference.shape)}"
        return _refused(name, f"{name!r} has the shape {sides}")
    if not kernel.numel():
        return Difference(name, 0.0, 0.0, None, ())
    found = _Numbers(case, kernel, reference.to(kernel.device), asked)
    return Difference(name, found.max_error(), found.norm(), *found.verdict(name))


def judged_choice(
    case: Case, name: str, chosen: Tensor, scores: Tensor, asked: Question
) -> Difference:
    """Indices that a kernel has chosen, by the reference's scores."""
    if chosen.shape[:-1] != scores.shape[:-1]:
        sides = f"{tuple(chosen.shape)} for scores {tuple(scores.shape)}"
        return _refused(name, f"{name!r} has the shape {sides}")
    found = _Numbers(case, scores, scores, asked)
    rows = chosen.reshape(-1, chosen.shape[-1]).to(scores.device)
    k = asked.top_k or rows.shape[1]
    shares = chosen_overlap(rows, found.scores(found.reference), k, found.room())
    worst = int(shares.argmin())
    faults = _missed(name, shares, worst, k, asked.tolerance)
    return Difference(name, 0.0, 0.0, float(shares[worst]), tuple(faults))


def _refused(name: str, fault: str) -> Difference:
    return Difference(name, float("inf"), float("inf"), None, (fault,))


class _Numbers:
    """Both sides as float64, and where they differ by more than they may; columns past a row's
    length are put out of question."""

    def __init__(self, case: Case, kernel: Tensor, reference: Tensor, asked: Question) -> None:
        self.case, self.asked = case, asked
        self.raw, self.raw_reference = kernel, reference
        self.whole = not (kernel.is_floating_point() or kernel.is_complex())
        self.asked_of = self._asked_of(kernel)
        self.kernel, self.reference = (
            torch.where(self.asked_of, one.double(), 0.0) for one in (kernel, reference)
        )
        finite = self.kernel.isfinite() & self.reference.isfinite()
        same = (self.kernel == self.reference) | (self.kernel.isnan() & self.reference.isnan())
        self.odd = ~finite & ~same
        self.error = torch.where(finite, (self.kernel - self.reference).abs(), 0.0)
        # Whole numbers by themselves: float64 holds those up to 2^53 only.
        unequal = (kernel != reference) & self.asked_of
        self.wrong = unequal if self.whole else self.odd | (self.error > self._allowed())

    def _asked_of(self, result: Tensor) -> Tensor:
        asked_of = torch.ones_like(result, dtype=torch.bool)
        rows = result.ndim >= 2 and result.shape[0] == self.case.batch
        if self.asked.within_lengths and rows and result.shape[-1] == self.case.longest:
            columns = torch.arange(self.case.longest, device=result.device)
            inside = columns < torch.tensor(self.case.lengths, device=result.device)[:, None]
            asked_of &= inside.reshape(len(inside), *[1] * (result.ndim - 2), -1)
        return asked_of

    def _rows(self, of: Tensor) -> Tensor:
        """(R, N): all but the last dimension are rows; a result of one dimension has rows of one
        number where there is one for each request, and else is one row."""
        if of.ndim <= 1:
            return of.reshape(-1, 1) if of.numel() == self.case.batch else of.reshape(1, -1)
        return of.reshape(-1, of.shape[-1])

    def _allowed(self) -> Tensor:
        if self.whole:
            return torch.zeros((), device=self.kernel.device)
        return self.room()[:, None].expand_as(self._rows(self.error)).reshape(self.error.shape)

    def room(self) -> Tensor:
        """(R,) by how much a number of each row may be off."""
        rows = self._rows(self.reference)
        largest = torch.where(rows.isfinite(), rows.abs(), 0.0).amax(dim=1)
        return self.asked.tolerance.absolute + self.asked.tolerance.relative * largest

    def max_error(self) -> float:
        return float("inf") if bool(self.odd.any()) else float(self.error.max())

    def norms(self) -> Tensor:
        """(R,) of each row; NaN and infinity count in `odd`. Of whole numbers there is none."""
        numbers = self._rows(torch.where(self.reference.isfinite(), self.reference, 0.0))
        whole, part = (
            torch.linalg.vector_norm(of, dim=1) for of in (numbers, self._rows(self.error))
        )
        return torch.where(part > 0, part / whole, 0.0)

    def norm(self) -> float:
        if self.whole:
            return float("nan")
        return float("inf") if bool(self.odd.any()) else float(self.norms().max())

    def scores(self, of: Tensor) -> Tensor:
        return self._rows(torch.where(self.asked_of, of, -torch.inf))

    def verdict(self, name: str) -> tuple[float | None, tuple[str, ...]]:
        """The overlap of the worst row, and the faults."""
        faults, tolerance = [], self.asked.tolerance
        if bool(self.wrong.any()):
            faults.append(self._where(name))
        elif not self.whole and self.norm() > tolerance.most:
            norms = self.norms()
            row = int(norms.argmax())
            faults.append(
                f"{name!r} row {row}: norm of the difference {float(norms[row]):.3g} of the "
                f"reference's, {tolerance.most:.3g} is allowed"
            )
        if self.asked.top_k is None or self.whole or self.kernel.ndim < 2:
            return None, tuple(faults)
        k = self.asked.top_k
        shares = overlap(self.scores(self.kernel), self.scores(self.reference), k, self.room())
        worst = int(shares.argmin())
        return float(shares[worst]), (*faults, *_missed(name, shares, worst, k, tolerance))

    def _where(self, name: str) -> str:
        """The first wrong number, what it is, and what it seems to be."""
        at = self.wrong.nonzero()[0].tolist()
        values = f"kernel {_value(self.raw, at)}, reference {_value(self.raw_reference, at)}"
        allowed = float(self._allowed().expand_as(self.error)[tuple(at)])
        many = f"{int(self.wrong.sum())} of {int(self.asked_of.sum())} numbers differ"
        said = f"{name!r} {self._place(at)}: {values}, {allowed:.3g} is allowed; {many}"
        return said + self._never_written() + self._misplaced(at)

    def _place(self, at: list[int]) -> str:
        if not at:
            return "as a whole"
        if len(at) == 1:
            return f"row {at[0]}" if self.raw.numel() == self.case.batch else f"at {at[0]}"
        length = self.case.lengths[at[0]] if self.raw.shape[0] == self.case.batch else None
        row = f"row {at[0]}" + (f" (length {length})" if length and self.case.ragged else "")
        inner = f" {at[1:-1]}" if len(at) > 2 else ""
        return f"{row}{inner} column {at[-1]}"

    def _never_written(self) -> str:
        if not self.asked.poisoned:
            return ""
        holes = unwritten(self.raw) & self.wrong
        by_row = self._rows(holes)
        if self.whole or self.raw.element_size() == 1:
            # There a number may be the mark by chance; a whole row is not.
            full = (by_row | ~self._rows(self.asked_of)).all(dim=1)
            by_row = by_row & full[:, None]
        count = int(by_row.sum())
        if not count:
            return ""
        rows = by_row.any(dim=1).nonzero().flatten().tolist()
        shown = ", ".join(map(str, rows[:6])) + (", ..." if len(rows) > 6 else "")
        return f"; {count} of them were never written, in rows {shown}"

    def _misplaced(self, at: list[int]) -> str:
        """Whether the row that is wrong is another row of the reference."""
        if self.raw.ndim < 2 or self.raw.shape[0] < 2:
            return ""
        row = at[0]
        asked_of, held = self.asked_of[row], self.kernel[row]
        room = self._allowed().expand_as(self.error)[row]
        near = (held - self.reference).abs() <= room
        fits = (near | ~asked_of).flatten(1).all(dim=1)
        fits[row] = False
        if not bool(fits.any()) or bool((held == held.flatten()[0]).all()):
            return ""
        return f"; row {row} holds what belongs to row {int(fits.nonzero()[0])}"


def _missed(name: str, shares: Tensor, worst: int, k: int, tolerance: Tolerance) -> tuple[str, ...]:
    if float(shares[worst]) >= tolerance.overlap:
        return ()
    below = int((shares < tolerance.overlap).sum())
    return (
        f"{name!r} row {worst}: {float(shares[worst]):.4f} of the top {k} are right, "
        f"{tolerance.overlap:.4g} are needed; so in {below} of {len(shares)} rows",
    )


def _value(of: Tensor, at: list[int]) -> Any:
    value = of[tuple(at)].item()
    return f"{value:.6g}" if isinstance(value, float) else value
