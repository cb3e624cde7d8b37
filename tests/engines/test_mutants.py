"""Guards of released code, taken away: the fault that they repaired is found again.

Of the places that are known to be clean of KV101, KV102 and KV103, these have a guard that
an operator can take away. Four have none: in sglang 0.5.23 the sizes at
`mem_cache/memory_pool_host.py:412` are `[x] * n` of one tensor, the lists at
`disaggregation/decode.py:640` follow an order that only a comment states, and the check at
`nixl/conn.py:251` compares numbers of entries; in vllm 0.9.1 the ids at
`v1/nixl_connector.py:1004` and their list read one field. The comparison of item lengths at
`mooncake/conn.py:1704` of sglang 0.5.23 is no such guard either: it covers one of two
branches, and the place is found as it stands.

Sizes and strides that are measured, written as numbers and lengths instead, are found as well
where the code itself says that a number is bytes.
"""

import shutil
import textwrap
from pathlib import Path

import libcst as cst
import pytest

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.reporters.view import Choice
from tests.engines.wheels import unpacked
from tests.mutants.operators import (
    DropCount,
    MinFirst,
    StrideLength,
    TwoBytes,
    count_places,
    mutate,
)

# What the files take their geometry from.
SUBTREES = {
    "sglang": ("sglang/srt/disaggregation", "sglang/srt/mem_cache"),
    "vllm": ("vllm/distributed/kv_transfer",),
}
CONN = "sglang/srt/disaggregation/nixl/conn.py"
HOST, MLA, LATENT = (
    f"sglang/srt/mem_cache/{name}.py"
    for name in ("pool_host/common", "pool_host/mla", "deepseek_v4_memory_pool")
)
HISPARSE, STORE = (
    f"vllm/distributed/kv_transfer/kv_connector/v1/{name}.py"
    for name in ("hisparse/worker", "mooncake/store/data")
)

# Package, file, operator, the lines it works on, and what it brings: code, first and last line.
CASES = [
    ("sglang==0.5.22", CONN, MinFirst, (361, 374), [("KV101", 361, 374), ("KV102", 834, 834)]),
    ("sglang==0.5.22", CONN, DropCount, (1183, 1190), [("KV103", 1751, 1753)]),
    ("sglang==0.5.23", CONN, MinFirst, (483, 496), [("KV101", 483, 496), ("KV102", 1204, 1204)]),
    ("sglang==0.5.23", CONN, DropCount, (1388, 1397), [("KV103", 2444, 2446)]),
    ("sglang==0.5.23", CONN, DropCount, (1553, 1560), [("KV103", 2130, 2132)]),
    ("sglang==0.5.23", HOST, TwoBytes, (227, 229), [("KV201", 228, 228)]),
    ("sglang==0.5.23", MLA, TwoBytes, (369, 375), [("KV201", 369, 375)]),
    ("sglang==0.5.23", LATENT, TwoBytes, (299, 304), [("KV201", 301, 301)]),
    ("vllm==0.33.0", HISPARSE, TwoBytes, (701, 705), [("KV201", 703, 703)]),
    ("vllm==0.33.0", HISPARSE, TwoBytes, (829, 832), [("KV201", 831, 831)]),
    ("vllm==0.33.0", STORE, StrideLength, (289, 289), [("KV205", 341, 341)]),
]


def copied(package: str, root: Path) -> Path:
    for folder in SUBTREES[package.partition("==")[0]]:
        shutil.copytree(unpacked(package) / folder, root / folder)
    (root / "pyproject.toml").touch()
    return root


def shown(root: Path, path: str) -> set[tuple[str, int]]:
    report = check(root, [root / path], all_rules())
    return {(f.code, f.span.line) for f in report.findings if Choice().shows(f)}


@pytest.fixture(scope="module")
def as_released(tmp_path_factory):
    """What is shown of each file before anything is taken away."""
    roots: dict[str, Path] = {}
    found = {}
    for package, path in dict.fromkeys((package, path) for package, path, *_ in CASES):
        if package not in roots:
            roots[package] = copied(package, tmp_path_factory.mktemp("released").resolve())
        found[package, path] = shown(roots[package], path)
    return found


@pytest.mark.parametrize(
    ("package", "path", "operator", "lines", "places"),
    [
        pytest.param(*case, id=f"{case[0]}-{Path(case[1]).stem}-{case[2].__name__}-{case[3][0]}")
        for case in CASES
    ],
)
def test_a_mutant_of_released_code_is_found(
    package, path, operator, lines, places, as_released, tmp_path
):
    root = copied(package, tmp_path.resolve())
    text = (root / path).read_text(encoding="utf-8")
    mutant = mutated(text, operator, lines)
    (root / path).write_text(mutant, encoding="utf-8")
    moved = mutant.count("\n") - text.count("\n")
    found = shown(root, path)
    for code, first, last in places:
        assert not holds(as_released[package, path], code, first, last)
        shift = moved if first > lines[1] else 0
        assert holds(found, code, first + shift, last + shift)


def holds(found: set[tuple[str, int]], code: str, first: int, last: int) -> bool:
    return any(c == code and first <= line <= last for c, line in found)


def mutated(text: str, operator, lines: tuple[int, int]) -> str:
    """The operator at work on whole statements, where it must find one place."""
    first, last = lines
    all_lines = text.splitlines(keepends=True)
    block = "".join(all_lines[first - 1 : last])
    indent = block[: len(block) - len(block.lstrip())]
    module = cst.parse_module(textwrap.dedent(block))
    assert count_places(module, operator) == 1
    changed = textwrap.indent(mutate(module, operator, 0), indent)
    return "".join([*all_lines[: first - 1], changed, *all_lines[last:]])
