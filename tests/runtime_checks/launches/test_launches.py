"""Launches of real kernels in Triton's interpreter: refused where they would touch other bytes."""

import pytest

pytest.importorskip("triton", reason="the wheel triton is missing")
pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")
pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

from tests.runtime_checks.launches import kernels

EXTENT, OVERFLOW, INDEX = "launch-extent", "launch-overflow", "launch-index-range"
EXPECTED = {
    "a row too many": (EXTENT, "touches byte 238 of the storage of x in program (4, 0, 0) lane 23"),
    "rows of another stride": (EXTENT, "of the storage of x in program (3, 0, 0)"),
    "elements that are not there": (EXTENT, "in program (1, 0, 0) lane 63, which has 400 bytes"),
    "a view that begins late": (EXTENT, "strides (24, 1) from its byte 48"),
    "rows counted from the end": (EXTENT, "of the storage of x in program (3, 0, 0)"),
    "a grid too large for a kernel without a mask": (EXTENT, "round 3"),
    "columns for rows": (EXTENT, "of the storage of out"),
    "a shape that is not the tensor's": (EXTENT, "of the storage of x in program (1, 0, 0)"),
    "a product of 32 bits": (OVERFLOW, "is 2147483648 in program (2, 0, 0)"),
    "the same in 64 bits": (EXTENT, "of the storage of out"),
    "a slot past the end": (INDEX, "16, loaded from slots in program (3, 0, 0)"),
    "a slot before the beginning": (INDEX, "-7, loaded from slots in program (1, 0, 0)"),
    "the second half of a cache": (INDEX, "leads store to byte 960 of the storage of cache"),
    "a loaded product of 32 bits": (OVERFLOW, "9, loaded from slots in program (1, 0, 0)"),
    "tokens that are not there": (EXTENT, "load touches byte 192 of the storage of x"),
    "a page that is not there": (INDEX, "8, loaded from table in program (1, 1, 0)"),
    "a slot in a helper": (INDEX, "4, loaded from slots in program (1, 0, 0)"),
    "rows counted in bytes": (
        "launch-element-size",
        "24 elements apart, which are 24 bytes of uint8; the region has elements of 2 bytes, and "
        "its rows are 48 bytes apart",
    ),
}


@pytest.mark.parametrize("name", kernels.WRONG)
def test_a_wrong_launch_is_refused(interpreted, name):
    found, violations, errors = interpreted(kernels.outcome, "wrong", name)
    assert found is not None, errors
    check, words = EXPECTED[name]
    assert (found[0], words in found[2]) == (check, True), found[2]
    assert violations
    assert errors == {}


@pytest.mark.parametrize("name", kernels.RIGHT)
def test_nothing_is_said_of_a_right_launch(interpreted, name):
    assert interpreted(kernels.outcome, "right", name) == (None, 0, {})


def test_a_refused_launch_has_touched_nothing(interpreted):
    assert interpreted(kernels.untouched, "store") == 0


def test_a_verdict_is_remembered_and_disarming_leaves_nothing(interpreted):
    hooks, found, quiet, restored = interpreted(kernels.remembered)
    assert set(hooks) == {
        "triton.CompiledKernel.launch_metadata",
        "triton.InterpretedFunction.run",
    }
    assert set(hooks.values()) == {"installed"}
    assert (found, quiet, restored) == (0, 0, True)
