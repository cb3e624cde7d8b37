"""What a number counts, by API, by arithmetic, and by name last."""

import pytest

from kvlint.analysis.quantities import Quantity, Unit, quantity
from kvlint.analysis.roles import Strength

STRONG, WEAK = Strength.STRONG, Strength.WEAK


@pytest.mark.parametrize(
    ("text", "unit", "strength"),
    [
        ("x.nbytes", Unit.BYTES, STRONG),
        ("x.numel()", Unit.ELEMENTS, STRONG),
        ("x.numel() * x.element_size()", Unit.BYTES, STRONG),
        ("head_dim * dtype.itemsize", Unit.BYTES, STRONG),
        ("head_dim * torch._utils._element_size(kv_dtype)", Unit.BYTES, STRONG),
        ("x.element_size()", Unit.ELEMENT_SIZE, STRONG),
        ("x.nbytes // x.element_size()", Unit.ELEMENTS, STRONG),
        ("x.shape[-1] * 2", Unit.ELEMENTS, STRONG),
        ("x.stride(0)", Unit.ELEMENTS, STRONG),
        ("math.prod(block_shape)", Unit.ELEMENTS, STRONG),
        ("x.data_ptr() + offset", Unit.ADDRESS, STRONG),
        ("base_addr + offset", Unit.ADDRESS, WEAK),
        ("page_bytes * num_pages", Unit.BYTES, WEAK),
        ("state_dtype_size * kv_lora_rank", Unit.BYTES, WEAK),
        ("num_kv_heads * head_dim", Unit.ELEMENTS, WEAK),
        ("num_kv_heads", Unit.HEADS, WEAK),
        ("num_layers", Unit.LAYERS, WEAK),
        ("page_size", Unit.TOKENS, WEAK),
        ("num_pages", Unit.SLOTS, WEAK),
        ("len(kv_caches)", Unit.REGIONS, STRONG),
    ],
)
def test_it_counts(lowered, text, unit, strength):
    body = lowered(
        "import math\nimport torch\n\n\n"
        "def f(x, offset, kv_caches, head_dim, dtype, kv_dtype, base_addr, page_bytes, num_pages,\n"
        "      state_dtype_size, kv_lora_rank, num_kv_heads, num_layers, page_size, block_shape):\n"
        f"    return {text}\n"
    )
    assert quantity(body.returns[0].term, body) == Quantity(unit, strength)


@pytest.mark.parametrize("text", ["2", "x.nbytes // y.nbytes", "seed", "head_dim // v_head_dim"])
def test_it_counts_nothing_known(lowered, text):
    body = lowered(f"def f(x, y, seed, head_dim, v_head_dim):\n    return {text}\n")
    assert quantity(body.returns[0].term, body) is None
