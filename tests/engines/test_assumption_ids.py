"""Ids stay when released code moves. A part of the engine is enough, and quicker."""

import shutil

import pytest

from tests.engines.wheels import unpacked
from tests.moves import MOVES, ids

PARTS = ("sglang/srt/disaggregation", "sglang/srt/mem_cache")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("sglang").resolve()
    for part in PARTS:
        shutil.copytree(unpacked("sglang==0.5.21") / part, root / part)
    return root


@pytest.fixture(scope="module")
def before(tree):
    found = ids(tree)
    assert len(found) >= 20
    return found


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_released_code_that_moves_keeps_its_ids(tree, before, move):
    texts = {tree / path: (tree / path).read_text(encoding="utf-8") for *_, path in before}
    for path, text in texts.items():
        path.write_text(move(text), encoding="utf-8")
    after = ids(tree)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    assert after == before
