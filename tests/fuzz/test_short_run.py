"""A short, seeded piece of the fuzz run; README.md beside this file has the long one."""

import os
from pathlib import Path

import pytest

from tests.fuzz.inputs import answer, files_below

ROOT = Path(__file__).parent.parent.parent
INPUTS = 25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="inputs are judged in forked processes")
def test_edited_files_are_judged_or_refused_and_nothing_else():
    pool = files_below([ROOT / "examples", ROOT / "tests/mutants"], most_lines=400)
    wrong = {number: answer(7, number, pool) for number in range(INPUTS)}
    assert {number: found for number, found in wrong.items() if found} == {}
