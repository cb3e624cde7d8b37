"""Tags: right bytes in the wrong place do not match, and the digest comes back."""

import subprocess
import sys

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint.runtime_checks.digests.identity import contents, identity, tags

ASK = (
    "from kvlint.runtime_checks.digests.identity import identity;"
    "print(identity('kv', 17, 'index', 'bfloat16', 16384, 3))"
)


def test_an_identity_is_the_same_in_every_process():
    told = {
        subprocess.run(
            [sys.executable, "-c", ASK], env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."}, **RUN
        ).stdout
        for seed in ("1", "2")
    }
    assert told == {f"{identity('kv', 17, 'index', 'bfloat16', 16384, 3)}\n"}


RUN = {"check": True, "capture_output": True, "text": True}


def test_everything_of_an_identity_counts():
    whole = ("kv", 17, "k", "bfloat16", 16384, "a", 1)
    others = [(*whole[:at], other, *whole[at + 1 :]) for at, other in enumerate("x1xx122")]
    others += [whole[:-1], (*whole, None), ("kv", None, *whole[2:]), ("kv", 17, "k1", *whole[3:])]
    found = {identity(*told) for told in (whole, *others)}
    assert len(found) == len(others) + 1
    assert all(0 <= number < 2**64 for number in found)
    assert 0 <= identity("\udcff", None, "", "", 0) < 2**64


def test_a_tag_gives_its_digest_back_and_moved_pages_do_not_match():
    rng = np.random.default_rng(3)
    digests = rng.integers(0, 2**64, 1000, np.uint64)
    digests[:10] = 0
    layers = np.array([identity("kv", layer, "k", "uint8", 64) for layer in range(10)], np.uint64)
    identities, ordinals = np.repeat(layers, 100), np.tile(np.arange(100), 10)
    tagged = tags(digests, identities, ordinals)
    assert np.array_equal(contents(tagged, identities, ordinals), digests)
    # Pages of zeros are 0 again, though their tags are all different.
    assert np.count_nonzero(contents(tagged, identities, ordinals) == 0) == 10
    assert len(np.unique(tags(np.zeros(1000, np.uint64), identities, ordinals))) == 1000
    # What belongs to layer 16 page 3 lies where layer 7 page 3 should be.
    moved = digests.copy()
    moved[703] = digests[603]
    wrong = tags(moved, identities, ordinals) != tagged
    assert np.flatnonzero(wrong).tolist() == [703]
