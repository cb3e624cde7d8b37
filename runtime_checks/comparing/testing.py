"""For pytest: a comparison that fails with its report, and each case as a test of its own."""

from collections.abc import Callable, Iterable
from typing import Any

from kvlint.runtime_checks.comparing.cases import Case, Inputs, cases
from kvlint.runtime_checks.comparing.running import Called, compare


def assert_close(
    kernel: Called, reference: Called, some: Case | Iterable[Case], **asked: Any
) -> None:
    """Raises AssertionError with the report where a case is wrong; `asked` as `compare` has it.

    With all cases in one test the report says which of them go wrong together; of a single case
    (`kernel_cases`) it says what is wrong there."""
    __tracebackhide__ = True
    report = compare(kernel, reference, [some] if isinstance(some, Case) else some, **asked)
    if not report.right:
        raise AssertionError(str(report))


def kernel_cases(make: Callable[[Case], Inputs], **choices: Any) -> Any:
    """A mark for a test with an argument `case`: one test for each of `cases(make, **choices)`,
    named by it, so that `-k "batch-8 and ragged"` runs some.

        @kernel_cases(make, batches=(1, 8, 32), dtypes=("bfloat16",))
        def test_logits(case):
            assert_close(kernel, reference, case, top_k=512)
    """
    import pytest

    found = cases(make, **choices)
    names = [str(case).replace(", ", "-").replace(" ", "-") for case in found]
    return pytest.mark.parametrize("case", found, ids=names)
