"""The files that are left unread for what words they hold: nothing is lost by that."""

import gc
import random

import pytest

from kvlint.analysis.files import Texts
from kvlint.analysis.link import Program
from kvlint.engine.discover import discover
from kvlint.engine.registry import all_rules
from kvlint.engine.triggers import speaker
from kvlint.engine.unit import unit
from kvlint.tree import Tree
from tests.engines.wheels import unpacked

TREES = ["sglang==0.5.23", "vllm==0.33.0"]
QUIET, SPEAKING = 80, 20  # files of each tree; what speaks takes longer


@pytest.mark.parametrize("package", TREES)
def test_what_is_found_is_found_without_the_unread_files_too(package):
    root = unpacked(package)
    tree = Tree(root)
    known = discover(root, [root]).known
    speaks = speaker(all_rules())
    speaking = {path for path in known if speaks(tree.read(path))}
    drawn = random.Random(20261129)
    quiet = drawn.sample([path for path in known if path not in speaking], QUIET)
    loud = drawn.sample([path for path in known if path in speaking], SPEAKING)
    gc.disable()
    try:
        everything = Program(Texts(tree, known))
        read = Program(Texts(tree, speaking))
        for path in quiet:
            assert unit(everything, all_rules(), path).findings == ()
        for path in loud:
            with_all = unit(everything, all_rules(), path).findings
            assert unit(read, all_rules(), path).findings == with_all
    finally:
        gc.enable()
