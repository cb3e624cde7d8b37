"""Guards of released code, taken away: the fault that they repaired is found again.

Of the places that are known to be clean of KV101, KV102 and KV103, these have a guard that
an operator can take away. Four have none: in sglang 0.5.23 the sizes at
`mem_cache/memory_pool_host.py:412` are `[x] * n` of one tensor, the lists at
`disaggregation/decode.py:640` follow an order that only a comment states, and the check at
`nixl/conn.py:251` compares numbers of entries; in vllm 0.9.1 the ids at
`v1/nixl_connector.py:1004` and their list read one field. The comparison of item lengths at
`mooncake/conn.py:1704` of sglang 0.5.23 is no such guard either: it covers one of two
branches, and the place is found as it stands.
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
from tests.mutants.operators import DropCount, MinFirst, count_places, mutate

CONN = "sglang/srt/disaggregation/nixl/conn.py"
# What the file takes its geometry from.
SUBTREE = ("sglang/srt/disaggregation", "sglang/srt/mem_cache")

# Version, operator, the lines it works on, and what it brings back: code, first and last line.
CASES = [
    ("0.5.22", MinFirst, (361, 374), [("KV101", 361, 374), ("KV102", 834, 834)]),
    ("0.5.22", DropCount, (1183, 1190), [("KV103", 1751, 1753)]),
    ("0.5.23", MinFirst, (483, 496), [("KV101", 483, 496), ("KV102", 1204, 1204)]),
    ("0.5.23", DropCount, (1388, 1397), [("KV103", 2444, 2446)]),
    ("0.5.23", DropCount, (1553, 1560), [("KV103", 2130, 2132)]),
]


def copied(version: str, root: Path) -> Path:
    for folder in SUBTREE:
        shutil.copytree(unpacked(f"sglang=={version}") / folder, root / folder)
    (root / "pyproject.toml").touch()
    return root


def shown(root: Path) -> set[tuple[str, int]]:
    report = check(root, [root / CONN], all_rules())
    return {(f.code, f.span.line) for f in report.findings if Choice().shows(f)}


@pytest.fixture(scope="module")
def as_released(tmp_path_factory):
    """What is shown of each version's copy before anything is taken away."""
    versions = {version for version, *_ in CASES}
    return {
        version: shown(copied(version, tmp_path_factory.mktemp(version).resolve()))
        for version in versions
    }


@pytest.mark.parametrize(
    ("version", "operator", "lines", "places"),
    [pytest.param(*case, id=f"{case[0]}-{case[1].name}-{case[2][0]}") for case in CASES],
)
def test_a_mutant_of_released_code_is_found(
    version, operator, lines, places, as_released, tmp_path
):
    root = copied(version, tmp_path.resolve())
    text = (root / CONN).read_text(encoding="utf-8")
    mutant = mutated(text, operator, lines)
    (root / CONN).write_text(mutant, encoding="utf-8")
    moved = mutant.count("\n") - text.count("\n")
    found = shown(root)
    for code, first, last in places:
        assert not holds(as_released[version], code, first, last)
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
