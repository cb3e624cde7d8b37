"""Captures pools of examples/investigation, of the sglang that can be imported, by the command
itself: investigation.py FOLDER KIND... Then prints the first and the last page that SGLang's
allocator has to give.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "examples/investigation"))

import pools
import torch
from sglang.srt.mem_cache.allocator.swa import SWATokenToKVPoolAllocator

from kvlint.cli import app

folder, *kinds = sys.argv[1:]
for kind in kinds:
    command = ["geometry", "capture", f"pools:{kind}", "--output", f"{folder}/{kind}.json"]
    assert not app.main(command, standalone_mode=False)

allocator = SWATokenToKVPoolAllocator(
    size=pools.TOKENS,
    size_swa=4096,
    page_size=pools.PAGE,
    dtype=torch.bfloat16,
    device="cpu",
    kvcache=pools.bf16_in_fp8_bytes(),
    need_sort=False,
)
free = allocator.full_attn_allocator.free_pages
print(json.dumps([int(free.min()), int(free.max())]))
