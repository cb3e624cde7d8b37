"""A kernel against its reference: what is wrong, where, and for which shapes only."""

import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="the wheel triton is missing")
pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")

import torch

from kvlint.runtime_checks.comparing import (
    Tolerance,
    assert_close,
    cases,
    compare,
    kernel_cases,
)
from tests.runtime_checks.comparing import kernels
from tests.runtime_checks.comparing.kernels import SHAPES, SMALL, compared, make, reference


def of(kernel, **choices):
    """Of a kernel that is no Triton kernel."""
    return compared(kernel, choices)


@pytest.fixture
def of_triton(interpreted):
    def of_triton(kernel, **choices):
        return interpreted(compared, kernel, choices)

    return of_triton


def told(report):
    """The lines that say what is wrong, without the table."""
    return str(report).partition("\n\n")[0]


def test_a_right_kernel_is_right_in_every_shape_dtype_and_stride(of_triton):
    report = of_triton(
        kernels.right, batches=(1, 8), dtypes=(torch.float32, "bfloat16", "float8_e4m3fn")
    )
    assert report.in_words() == "right in all 36 cases"
    assert all(one.overlap == 1.0 for outcome in report.outcomes for one in outcome.differences)


def test_a_kernel_that_takes_its_row_from_the_wrong_axis_is_wrong_beyond_batch_1(of_triton):
    choices = {"batches": (1, 8, 32), "lengths": (20,), "strides": ["contiguous"]}
    report = of_triton(kernels.of_the_wrong_axis, **choices)
    assert report.in_words() == "wrong in 4 of 6 cases: right at batch 1; wrong at batches 8, 32"
    fault = report.wrong[0].all_faults[0]
    assert fault.startswith("'out' row 1 column 0: kernel ")
    assert "140 of 160 numbers differ" in fault
    assert any("of the top 8 are right" in fault for fault in report.wrong[0].all_faults)
    assert "batch 8, length 20, uniform, float32, contiguous" in told(report)


def test_a_row_that_holds_another_rows_result_is_named_so():
    def shifted(queries, keys, lengths, out):
        return reference(queries, keys, lengths, out).roll(1, dims=0)

    report = of(shifted, batches=(3,), ragged=[False])
    assert "row 0 holds what belongs to row 2" in told(report)


def test_a_kernel_that_forgets_lengths_is_wrong_for_ragged_rows(interpreted):
    choices, asked = {"lengths": (32,)}, {"within_lengths": False}
    filled = interpreted(compared, kernels.past_the_length, choices, asked)
    assert "right for uniform rows; wrong for ragged rows" in filled.in_words()
    assert "(length " in told(filled)
    assert "reference -inf" in told(filled)


@pytest.mark.parametrize(
    ("stride", "batch", "where"),
    [
        ("contiguous", 1, "0 bytes after its end"),
        ("padded", 2, "in a gap between its rows, 160 bytes after its begin"),
    ],
)
def test_a_write_past_a_row_is_named_though_every_number_is_right(of_triton, stride, batch, where):
    report = of_triton(kernels.past_the_length, batches=(batch,), ragged=[False], strides=[stride])
    (outcome,) = report.wrong
    assert outcome.all_faults == [f"it writes outside of 'out', {where}"]


def test_a_stride_that_is_ignored_is_told_from_those_that_are_right(of_triton):
    report = of_triton(kernels.of_packed_queries, batches=(4,))
    assert report.in_words() == (
        "wrong in 4 of 6 cases: right with strides contiguous; wrong with strides padded, sliced"
    )


def test_what_is_wrong_in_two_ways_together_is_said_of_both():
    def kernel(queries, keys, lengths, out):
        found = reference(queries, keys, lengths, out)
        if len(keys) > 1 and keys.dtype is torch.bfloat16:
            found[-1] += 1
        return found

    report = of(kernel, dtypes=("float32", "bfloat16"))
    words = report.in_words()
    assert words.endswith(": wrong at batch 3 in bfloat16; right otherwise")


def test_faults_without_a_pattern_claim_none():
    def kernel(queries, keys, lengths, out):
        found = reference(queries, keys, lengths, out)
        wrong = {(1, 40), (3, 20)}
        return found + (1 if tuple(keys.shape[:2]) in wrong else 0)

    report = of(kernel, lengths=(20, 40), ragged=[False], strides=["contiguous"])
    assert report.in_words() == "wrong in 2 of 4 cases, of every kind"


@pytest.mark.parametrize("kernel", [kernels.into_a_handed_buffer, kernels.into_an_own_buffer])
def test_rows_that_are_never_written_are_seen(of_triton, kernel):
    report = of_triton(kernel, batches=(3,), ragged=[False], strides=["contiguous"])
    fault = report.wrong[0].all_faults[0]
    assert " row 2 column 0: kernel nan, reference " in fault
    assert fault.endswith("40 of them were never written, in rows 2")


@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn", "int32", "uint8"]
)
def test_every_format_of_a_buffer_has_a_poison(dtype):
    def buffers(case):
        return {"rows": case.randn(case.batch, 4), "out": case.empty(case.batch, 4, dtype=dtype)}

    def half(rows, out):
        out[:1] = 1

    def whole(rows, out):
        out[:] = 1

    (outcome,) = compare(
        half, whole, cases(buffers, batches=[2], lengths=[4], ragged=[False]), out=["out"]
    ).wrong[:1]
    assert "4 of them were never written, in rows 1" in outcome.all_faults[0]


def test_a_kernel_that_writes_into_its_inputs_is_told_which_and_where():
    def careless(queries, keys, lengths, out):
        found = reference(queries, keys, lengths, out)
        keys[1, 2, 3] = 0
        return found

    report = of(careless, batches=(3,), ragged=[False])
    assert len(report.wrong) == 3
    assert "it writes into its input 'keys', at [1, 2, 3]" in told(report)


def test_inputs_are_the_same_for_both_and_in_each_run():
    seen = []

    def watching(queries, keys, lengths, out):
        seen.append((queries.clone(), keys.stride(), keys.storage_offset()))
        keys.zero_()  # of its own copy
        return torch.zeros(len(keys), keys.shape[1])

    compare(watching, watching, cases(make, **SMALL), out=["out"])
    assert len(seen) == 24
    for first, second in zip(seen[::2], seen[1::2], strict=True):
        assert torch.equal(first[0], second[0])
        assert first[1:] == second[1:]
    again, strides = seen.copy(), {stride for _, stride, _ in seen}
    seen.clear()
    compare(watching, watching, cases(make, **SMALL), out=["out"])
    assert all(torch.equal(a[0], b[0]) for a, b in zip(again, seen, strict=True))
    assert len(strides) == 3


def test_another_seed_makes_other_numbers_and_other_lengths():
    one, other = (cases(make, batches=[32], ragged=[True], seed=seed)[0] for seed in (0, 1))
    assert one.lengths != other.lengths
    assert not torch.equal(one.inputs()["queries"], other.inputs()["queries"])


def test_ragged_rows_have_the_shortest_and_the_longest_among_them():
    for case in cases(make, ragged=[True], shortest=0):
        assert len(case.lengths) == case.batch
        assert case.batch == 1 or {0, case.longest} <= set(case.lengths)


def test_gaps_between_rows_are_poisoned():
    (padded,) = cases(make, batches=[2], lengths=[5], ragged=[False], strides=["padded"])
    queries = padded.inputs()["queries"]
    around = torch.empty(0).set_(queries.untyped_storage())
    assert around.isnan().sum() == 2 * 16
    assert not queries.isnan().any()


@pytest.mark.parametrize(("dtype", "off"), [("bfloat16", 2**-8), ("float8_e4m3fn", 2**-4)])
def test_what_a_format_rounds_is_allowed_and_ten_times_as_much_is_not(dtype, off):
    def values(case):
        return {"rows": case.randn(case.batch, 64).float()}

    def rounded(factor):
        return lambda rows: rows.to(getattr(torch, dtype)).float() * (1 + factor * off / 8)

    some = cases(values, batches=[4], lengths=[64], ragged=[False], dtypes=[dtype])
    assert compare(rounded(1), lambda rows: rows, some).right
    assert not compare(rounded(32), lambda rows: rows, some).right


def test_one_bad_row_in_a_batch_is_not_hidden_by_the_others():
    def values(case):
        return {"rows": case.randn(case.batch, 256)}

    def kernel(rows):
        found = rows.clone()
        found[7] += 0.006 * found[7].abs().max() * torch.sign(found[7])
        return found

    some = cases(values, batches=[32], lengths=[256], ragged=[False], strides=["contiguous"])
    bound = Tolerance(relative=0.01)
    fault = compare(kernel, lambda rows: rows, some, tolerance=bound).wrong[0].all_faults[0]
    assert fault.startswith("'result' row 7: norm of the difference 0.0")


def test_infinities_and_nans_must_be_where_the_reference_has_them():
    def of_values(*values):
        return lambda rows: torch.tensor([values])

    def values(case):
        return {"rows": case.randn(1, 3)}

    some = cases(values, batches=[1], lengths=[3], ragged=[False], strides=["contiguous"])
    inf, nan = float("inf"), float("nan")
    assert compare(of_values(inf, -inf, nan), of_values(inf, -inf, nan), some).right
    for wrong in ((inf, inf, nan), (inf, -inf, 0.0), (1.0, -inf, nan)):
        report = compare(of_values(*wrong), of_values(inf, -inf, nan), some)
        assert "1 of 3 numbers differ" in told(report)


def test_what_a_kernel_raises_is_a_fault_of_its_case():
    def choosy(queries, keys, lengths, out):
        if len(keys) > 1:
            raise NotImplementedError("one row only\nnot more")
        return reference(queries, keys, lengths, out)

    report = of(choosy)
    assert "right at batch 1; wrong at batch 3" in report.in_words()
    assert "it raises NotImplementedError: one row only" in told(report)


def test_what_is_wrong_in_one_run_of_several_is_wrong():
    calls = []

    def racy(queries, keys, lengths, out):
        calls.append(len(keys))
        found = reference(queries, keys, lengths, out)
        return found + 1 if len(calls) == 3 else found

    choices = {"batches": (2,), "ragged": [False], "strides": ["contiguous"]}
    assert compared(racy, choices, {"runs": 2}).right
    calls.clear()
    report = compared(racy, choices, {"runs": 5})
    assert len(calls) == 3
    assert "in run 3 of 5: 'result' row 0 column 0: kernel " in told(report)
    with pytest.raises(ValueError, match=r"^runs are 1 or more$"):
        compared(racy, choices, {"runs": 0})


def test_shapes_must_agree():
    report = of(lambda queries, keys, lengths, out: torch.zeros(2, 2), batches=(3,))
    assert "'result' has the shape (2, 2), the reference (3, 40)" in told(report)


def test_a_cache_that_is_written_in_part_is_compared_as_a_whole():
    def cache(case):
        return {
            "cache": case.randn(6, 4),
            "rows": case.randn(case.batch, 4),
            "slots": case.permutation(6)[: case.batch],
        }

    def store(cache, rows, slots):
        cache[slots] = rows

    def store_one_too_far(cache, rows, slots):
        cache[(slots + 1) % 6] = rows

    some = cases(cache, batches=[2], lengths=[4], ragged=[False])
    assert compare(store, store, some, writes=["cache"]).right
    report = compare(store_one_too_far, store, some, writes=["cache"])
    assert not report.right
    assert "'cache' row " in told(report)


def test_a_page_of_bytes_that_lies_in_anothers_place_is_named_so():
    def cache(case):
        return {
            "cache": case.randint(0, 256, 8, 64, dtype="uint8"),
            "pages": case.randint(0, 256, case.batch, 64, dtype="uint8"),
            "slots": 2 + case.permutation(6)[: case.batch],
        }

    def store(cache, pages, slots):
        cache[slots] = pages

    def store_one_too_early(cache, pages, slots):
        cache[slots - 1] = pages

    some = cases(cache, batches=[2], lengths=[64], ragged=[False], strides=["contiguous"])
    report = compare(store_one_too_early, store, some, writes=["cache"])
    slots = sorted(some[0].inputs()["slots"].tolist())
    fault = report.wrong[0].all_faults[0]
    assert fault.startswith(f"'cache' row {slots[0] - 1} column 0: kernel ")
    assert fault.endswith(f"; row {slots[0] - 1} holds what belongs to row {slots[0]}")


def test_inputs_in_lists_that_share_memory_still_do():
    def views(case):
        whole = case.randn(4, case.batch, 8)
        return {"layers": [whole[0], whole[1]]}

    def kernel(layers):
        assert layers[0].untyped_storage().data_ptr() == layers[1].untyped_storage().data_ptr()
        layers[1][0, 0] += 1
        return layers[0] * 2

    some = cases(views, batches=[2], lengths=[8], ragged=[False], strides=["contiguous"])
    report = compare(kernel, lambda layers: layers[0] * 2, some)
    assert report.wrong[0].all_faults == ["it writes into its input 'layers[1]', at [0, 0]"]


def off_by_one(queries, keys, lengths, out):
    return reference(queries, keys, lengths, out).roll(1, dims=1)


def test_assert_close_fails_with_the_report():
    some = cases(make, **SMALL)
    assert_close(reference, reference, some, **SHAPES)
    with pytest.raises(AssertionError) as failed:
        assert_close(off_by_one, reference, some, **SHAPES)
    assert str(failed.value) == str(of(off_by_one))


@kernel_cases(make, batches=[2], lengths=[33], dtypes=["bfloat16"])
def test_each_case_can_be_a_test_of_its_own(case, request):
    assert_close(reference, reference, case, **SHAPES)
    shape = "ragged" if case.ragged else "uniform"
    assert request.node.name.endswith(f"[batch-2-length-33-{shape}-bfloat16-{case.stride}]")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"strides": ["packed"]}, "stride 'packed' is none of contiguous, padded, sliced"),
        ({"batches": [0]}, "batches and lengths are 1 or more, and no shortest row is longer"),
        ({"shortest": 999}, "batches and lengths are 1 or more, and no shortest row is longer"),
        ({"dtypes": []}, "no cases: one of the choices is empty"),
    ],
)
def test_choices_that_make_no_sense_are_refused(choices, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        cases(make, **choices)


def test_bad_inputs_are_one_clear_line():
    with pytest.raises(ValueError, match=r"^torch has no dtype 'float99'$"):
        of(reference, dtypes=["float99"])
    with pytest.raises(TypeError, match=r"^make gives a list, not a mapping of names to inputs$"):
        compare(reference, reference, cases(lambda case: []))
    with pytest.raises(ValueError, match=r"^make gives no input 'result'$"):
        compare(reference, reference, cases(make, **SMALL), out=["result"])


def test_importing_it_imports_neither_torch_nor_triton_nor_pytest():
    script = (
        "import sys, kvlint.runtime_checks.comparing as it; it.cases(lambda case: {}); "
        "print({'torch', 'triton', 'pytest', 'numpy'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.stdout.strip() == "set()", ran.stderr
