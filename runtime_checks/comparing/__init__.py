"""A kernel against its reference: the offline test that says which part of a chain is right.

    from kvlint.runtime_checks.comparing import cases, compare

    def make(case):
        keys = case.randn(case.batch, case.longest, 128)
        return {"queries": case.randn(case.batch, 128), "keys": keys, "lengths": case.counts()}

    print(compare(kernel, reference, cases(make, dtypes=["bfloat16"]), top_k=512))

`cases` says which shapes, `compare` runs both on equal inputs, the report says where they part.
In pytest `assert_close` fails with that report, and `kernel_cases` makes each case a test of its
own. These are imported where they are used: a plug-in by entry point would be loaded by each run
of pytest in the environment of whoever has kvlint beside an engine.

torch is imported when the first inputs are made. Triton is not: a kernel is any callable.
"""

from kvlint.runtime_checks.comparing.cases import STRIDES, Case, cases
from kvlint.runtime_checks.comparing.reports import Difference, Outcome, Report
from kvlint.runtime_checks.comparing.running import compare
from kvlint.runtime_checks.comparing.testing import assert_close, kernel_cases
from kvlint.runtime_checks.comparing.tolerances import TOLERANCES, Tolerance

__all__ = [
    "STRIDES",
    "TOLERANCES",
    "Case",
    "Difference",
    "Outcome",
    "Report",
    "Tolerance",
    "assert_close",
    "cases",
    "compare",
    "kernel_cases",
]
