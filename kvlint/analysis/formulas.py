"""Whether the pools behind a list of regions count their slots by one formula."""

from kvlint.analysis.bodies import Body
from kvlint.analysis.link import Program
from kvlint.analysis.terms import Term


def one_formula(program: Program, regions: Term, body: Body) -> str | None:
    """`every count is (size + page + 1) // page (pool.py:88)`, None if it cannot be said."""
    del program, regions, body
    return None
