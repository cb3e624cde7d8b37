"""Ids stay when code moves: the baseline and every report's fingerprints rest on it."""

import shutil
from pathlib import Path

import pytest

from tests.moves import MOVES, ids

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "examples/prepared_lists", ROOT / "tests/mutants/faulty")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("ids").resolve()
    for source in SOURCES:
        shutil.copytree(source, root / source.name)
    return root


@pytest.fixture(scope="module")
def before(tree):
    found = ids(tree)
    assert len({path for *_, path in found}) >= 5
    return found


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_code_that_moves_keeps_its_ids(tree, before, move):
    texts = {path: path.read_text(encoding="utf-8") for path in tree.rglob("*.py")}
    for path, text in texts.items():
        path.write_text(move(text), encoding="utf-8")
    after = ids(tree)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    assert after == before


def test_a_file_that_is_renamed_gets_others(tree, before):
    (tree / "faulty").rename(tree / "moved")
    after = ids(tree)
    (tree / "moved").rename(tree / "faulty")
    assert len(after) == len(before)
    assert {key for key, *_, path in before if path.startswith("faulty/")}.isdisjoint(
        key for key, *_ in after
    )
