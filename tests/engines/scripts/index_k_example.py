"""examples/index_k_bf16 over the index pool of the installed sglang; then the offline test of
sglang's own store kernel, for which the example's stands."""

import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.append(str(Path(__file__).parents[3]))

from sglang.kernels.ops.kvcache.dsa_index_k_cache import _set_k_and_s_triton

from examples.index_k_bf16 import offline, serve


def store(cache, keys, scale, slots):
    _set_k_and_s_triton(cache, slots, keys, scale, page_size=64)


status = serve.main()
print(offline.store_report("fp8", kernel=store))
sys.exit(status)
