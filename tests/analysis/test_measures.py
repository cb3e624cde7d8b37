"""What numbers are measured from, through what carries them."""

import pytest

from kvlint.analysis.measures import measured
from kvlint.analysis.origins import Origin, Origins
from kvlint.analysis.showing import show


@pytest.fixture
def ways(program):
    """The ways to what the last return of `get` gives."""

    def follow(text):
        one = program(m=text)
        definitions = one.outline("m.py").definitions
        body = one.body(next(d for d in definitions.values() if d.short == "get"))
        return measured(Origins(one), Origin(body.returns[-1].term, body, None))

    return follow


def extents(ways):
    return {show(tensor) for way in ways for tensor, _ in way.extents}


@pytest.mark.parametrize(
    "length",
    [
        "cache.nbytes // cache.shape[0]",
        "cache.element_size() * math.prod(cache.shape[1:])",
        "cache.numel() * cache.dtype.itemsize",
        "cache.size(1) * cache.size(2)",
    ],
)
def test_lengths_are_measured_from_a_tensor(ways, length):
    found = ways(f"import math\ndef get(cache):\n    return {length}\n")
    assert extents(found) == {"cache"}
    assert not any(way.stride for way in found)


@pytest.mark.parametrize("stride", ["cache.stride(0)", "cache.stride()[0] * 2", "pool.page_stride"])
def test_strides_are_told_by_the_api_and_by_name(ways, stride):
    (way,) = ways(f"def get(cache, pool):\n    return {stride}\n")
    assert way.stride


def test_a_storage_holds_the_gaps_too(ways):
    (way,) = ways("def get(cache):\n    return cache.untyped_storage().nbytes()\n")
    assert not way.extents


@pytest.mark.parametrize(
    "kept",
    [
        "self.lens.append(cache.nbytes)",
        "self.lens[name] = cache.nbytes",
        "self.lens = [cache.nbytes]",
        "self.lens = {'kv': cache.nbytes}",
        "self.lens = [cache.nbytes for _ in range(4)]",
    ],
)
def test_an_item_is_what_was_put_into_the_list_or_the_mapping(ways, kept):
    found = ways(
        f"class A:\n    def put(self, name, cache):\n        {kept}\n"
        "    def get(self, name):\n        return self.lens[name]\n"
    )
    assert extents(found) == {"cache"}


def test_each_branch_is_a_way_of_its_own(ways):
    found = ways(
        "def get(cache):\n    if cache.is_contiguous():\n        n = cache.nbytes\n"
        "    else:\n        n = cache.stride(0)\n    return n\n"
    )
    assert sorted(way.stride for way in found) == [False, True]


def test_rounding_down_and_multiplying_again_is_meant(ways):
    (plain,) = ways("def get(cache, n):\n    return cache.nbytes // n\n")
    (meant,) = ways("def get(cache, n):\n    return (cache.nbytes // n + 1) * n\n")
    assert len(plain.quotients) == 1
    assert not meant.quotients


def test_what_nobody_knows_is_said(ways):
    (way,) = ways("def get(meta):\n    return meta.block_len\n")
    assert way.unknown == ("no statement is known that sets block_len",)
