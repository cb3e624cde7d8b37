"""A kernel and its reference on equal inputs, case by case."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvlint.runtime_checks.comparing.cases import Case, Inputs
from kvlint.runtime_checks.comparing.reports import Difference, Outcome, Report
from kvlint.runtime_checks.comparing.tolerances import Tolerance, coarsest

if TYPE_CHECKING:
    from torch import Tensor

Called = Callable[..., Any]


def compare(
    kernel: Called,
    reference: Called,
    cases: Iterable[Case],
    *,
    out: Sequence[str] = (),
    writes: Sequence[str] = (),
    top_k: int | None = None,
    chosen: Mapping[str, str] | None = None,
    within_lengths: bool = False,
    tolerance: Tolerance | Mapping[str, Tolerance] | None = None,
    runs: int = 1,
) -> Report:
    """Run both on each case, each with inputs of its own, and compare what comes out.

    kernel, reference  take the inputs by name. A result is what is returned (a tensor, or several
                       in a tuple, list or mapping), and the inputs named in `out` and `writes`,
                       as they are left. The kernel may fill what the reference returns
    out                inputs that are buffers for results: filled with NaN, or the largest whole
                       number, before either runs. What the kernel makes by `torch.empty` is, too
    writes             inputs that are written in part, a cache: compared as a whole afterwards
    top_k              of each row of floating results, so many best entries must be the same
    chosen             results that hold indices of entries, each with the name of the reference's
                       result that scores them; those below 0 are none
    within_lengths     whether columns past a row's length are left out of results that have a
                       column for each of `case.longest`
    tolerance          by default `TOLERANCES` of the coarsest dtype among the case and its results
    runs               of the kernel, each on inputs of its own: what is wrong in any run is wrong.
                       A race may need many

    What else the kernel writes is a fault: inputs, gaps between rows, and 64 KiB around each. What
    it raises is one of that case; what the reference raises is raised, and so is ValueError where
    the two do not have the same results, or nothing is to run.
    """
    if runs < 1:
        raise ValueError("runs are 1 or more")
    one = _Comparison(
        kernel,
        reference,
        tuple(out),
        tuple(writes),
        dict(chosen or {}),
        tolerance if isinstance(tolerance, Tolerance) else dict(tolerance or {}),
        {"top_k": top_k, "within_lengths": within_lengths},
        runs,
    )
    return Report(tuple(one.outcome(case) for case in cases))


@dataclass(frozen=True)
class _Comparison:
    """What `compare` was given, but for the cases."""

    kernel: Called
    reference: Called
    out: tuple[str, ...]
    writes: tuple[str, ...]
    chosen: Mapping[str, str]
    tolerance: Tolerance | Mapping[str, Tolerance]
    asked: Mapping[str, Any]
    runs: int

    def outcome(self, case: Case) -> Outcome:
        """Of the first run that is wrong, else of the last."""
        from kvlint.runtime_checks.comparing.layouts import copied, poison

        inputs = case.inputs()
        absent = [name for name in (*self.out, *self.writes) if name not in inputs]
        if absent:
            raise ValueError(f"make gives no input {absent[0]!r}")
        for name in self.out:
            poison(inputs[name])
        theirs = copied(inputs)
        right = self._results(self.reference(**theirs), theirs)
        for run in range(1, self.runs + 1):
            found = self._run(case, inputs, right)
            if not found.right:
                return found if run == 1 else found.in_run(run, self.runs)
        return found

    def _run(self, case: Case, inputs: Inputs, right: Mapping[str, "Tensor"]) -> Outcome:
        from kvlint.runtime_checks.comparing.layouts import copied, stray_write
        from kvlint.runtime_checks.comparing.poisoning import Poisoned

        before, mine = copied(inputs), copied(inputs)
        try:
            with Poisoned():  # type: ignore[no-untyped-call]
                returned = self.kernel(**mine)
            _wait(case)
        except Exception as error:
            text = str(error).strip().partition("\n")[0]
            return Outcome(case, (), (f"it raises {type(error).__name__}: {text}",))
        pairs = _paired(self._results(returned, mine), right)
        found = [self._judged(case, name, pair, right) for name, pair in pairs.items()]
        stray = stray_write(before, mine, {*self.out, *self.writes})
        return Outcome(case, tuple(found), () if stray is None else (stray,))

    def _results(self, returned: Any, inputs: Mapping[str, Any]) -> dict[str, "Tensor"]:
        """By name: what is returned, and the inputs that were handed over to be written. One that
        is returned as well counts once, and one that is untouched beside what is returned is not
        meant."""
        import torch

        from kvlint.runtime_checks.comparing.layouts import unwritten

        left = {name: inputs[name] for name in self.writes}
        for name in self.out:
            if returned is None or not bool(unwritten(inputs[name]).all()):
                left[name] = inputs[name]
        given = _by_name(returned)
        strange = [name for name, one in given.items() if not isinstance(one, torch.Tensor)]
        if strange:
            raise TypeError(f"{strange[0]!r} is a {type(given[strange[0]]).__name__}, no tensor")
        own = {one.data_ptr() for one in left.values()}
        return {n: t for n, t in given.items() if t.data_ptr() not in own or not t.numel()} | left

    def _judged(
        self,
        case: Case,
        name: str,
        pair: tuple["Tensor", "Tensor"],
        right: Mapping[str, "Tensor"],
    ) -> Difference:
        from kvlint.runtime_checks.comparing.judging import Question, judged, judged_choice

        poisoned = name not in self.writes
        asked = Question(self._bounds(case, pair), poisoned=poisoned, **self.asked)
        if name not in self.chosen:
            return judged(case, name, *pair, asked)
        if self.chosen[name] not in right:
            raise ValueError(f"the reference has no result {self.chosen[name]!r}")
        return judged_choice(case, name, pair[0], right[self.chosen[name]], asked)

    def _bounds(self, case: Case, pair: tuple["Tensor", "Tensor"]) -> Tolerance:
        if isinstance(self.tolerance, Tolerance):
            return self.tolerance
        dtypes = (str(of.dtype).removeprefix("torch.") for of in pair)
        return self.tolerance.get(case.dtype) or coarsest(case.dtype, *dtypes)


def _wait(case: Case) -> None:
    """For the device, so that what fails there fails in its case."""
    import torch

    if case.place.startswith("cuda"):
        torch.cuda.synchronize(case.place)


def _by_name(returned: Any) -> dict[str, Any]:
    if returned is None:
        return {}
    if isinstance(returned, Mapping):
        return dict(returned)
    if isinstance(returned, tuple | list):
        return {f"result {number}": one for number, one in enumerate(returned)}
    return {"result": returned}


def _paired(
    found: Mapping[str, "Tensor"], right: Mapping[str, "Tensor"]
) -> dict[str, tuple["Tensor", "Tensor"]]:
    """By name, else in order: what the one returns the other may leave in a buffer."""
    if found.keys() == right.keys():
        return {name: (found[name], right[name]) for name in found}
    if len(found) != len(right):
        raise ValueError(f"the kernel has results {list(found)}, the reference {list(right)}")
    return {name: (found[name], theirs) for name, theirs in zip(found, right.values(), strict=True)}
