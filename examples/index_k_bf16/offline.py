"""The offline test: each kernel alone, against torch, over batches and ragged lengths.

python -m examples.index_k_bf16.offline
python -m examples.index_k_bf16.offline --device cuda
"""

import argparse
import functools

import torch

from examples.index_k_bf16 import kernels
from examples.index_k_bf16.chain import TOP_K
from examples.index_k_bf16.pools import HEAD_DIM, PAGE, PAGE_BYTES
from kvlint.runtime_checks.comparing import cases, compare


def read_inputs(case, dtype):
    """A cache of random pages, and a table that scatters each request's."""
    blocks = -(-case.longest // PAGE)
    pages = case.batch * blocks
    cache = torch.zeros((pages, PAGE_BYTES[dtype]), dtype=torch.uint8, device=case.place)
    keys = case.randn(pages * PAGE, HEAD_DIM, dtype="float32")
    every = torch.arange(pages * PAGE, device=case.place)
    kernels.store_in_torch(cache, *kernels.quantized(keys, dtype), every)
    return {
        "queries": case.randn(case.batch, kernels.HEADS, HEAD_DIM, dtype="bfloat16"),
        "weights": case.randn(case.batch, kernels.HEADS, dtype="float32").abs(),
        "cache": cache,
        "table": case.permutation(pages, dtype="int32").reshape(case.batch, blocks),
        "lengths": case.counts(),
    }


def read_report(dtype, one_table=False, batches=(1, 8, 32), lengths=(60,), device=None):
    """Of the read kernel."""
    some = cases(
        functools.partial(read_inputs, dtype=dtype),
        batches=batches,
        lengths=lengths,
        dtypes=["bfloat16"],
        strides=["contiguous"],
        device=device,
    )
    return compare(
        functools.partial(kernels.logits, dtype=dtype, one_table=one_table),
        functools.partial(kernels.logits_in_torch, dtype=dtype),
        some,
        top_k=TOP_K,
    )


def store_inputs(case, dtype):
    keys, scale = kernels.quantized(case.randn(case.batch * PAGE, HEAD_DIM, dtype="float32"), dtype)
    cache = torch.zeros((case.batch + 2, PAGE_BYTES[dtype]), dtype=torch.uint8, device=case.place)
    slots = PAGE + case.permutation(case.batch * PAGE)
    return {"cache": cache, "keys": keys, "scale": scale, "slots": slots}


def store_report(dtype, pages_off=0, kernel=None, batches=(1, 8), device=None):
    """Of the store kernel, or of another one; a batch is so many pages of entries."""
    some = cases(
        functools.partial(store_inputs, dtype=dtype),
        batches=batches,
        lengths=(PAGE,),
        ragged=(False,),
        dtypes=["bfloat16"],
        strides=["contiguous"],
        device=device,
    )
    kernel = kernel or functools.partial(kernels.store, pages_off=pages_off)
    return compare(kernel, kernels.store_in_torch, some, writes=["cache"])


def main():
    parser = argparse.ArgumentParser(description="Both kernels against torch.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = parser.parse_args().device
    for dtype in PAGE_BYTES:
        for name, report in (
            ("store", store_report(dtype, device=device)),
            ("read", read_report(dtype, device=device, lengths=(60, 300))),
            ("store, a page off,", store_report(dtype, pages_off=1, device=device)),
            ("read, one table for all,", read_report(dtype, one_table=True, device=device)),
        ):
            print(f"{dtype} {name} on {device}: {report}\n")


if __name__ == "__main__":
    main()
