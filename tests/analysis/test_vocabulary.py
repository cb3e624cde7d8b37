"""Own names: code that speaks another language is read as if it spoke the field's."""

import pytest

from kvlint.analysis.vocabulary import nouns, own_names, use, words
from kvlint.analysis.vocabulary.own import Own
from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.reporters.view import Choice

FIRST_LENGTH = """
def build(agent, arenaHeads, rowBytes, rows, dev):
    width = rowBytes[0]
    out = []
    for head in arenaHeads:
        for row in rows:
            out.append((head + row * width, width, dev))
    return agent.get_xfer_descs(out, "VRAM")
"""
FLAT_INDEX = """
import numpy as np


def connect(agent, peer, arenaHeads, arenaSpan, rowBytes, rows):
    out = []
    for head, span, row in zip(arenaHeads, arenaSpan, rowBytes, strict=True):
        n = span // row
        places = head + np.arange(n, dtype=np.uint64) * row
        out.append(np.column_stack([places, np.full(n, row), np.full(n, 0)]))
    handle = agent.prep_xfer_dlist("", np.vstack(out), "VRAM")
    S0 = arenaSpan[0] // rowBytes[0]
    indices = np.arange(len(arenaHeads))[:, None] * S0 + rows[None, :]
    return agent.make_prepped_xfer("WRITE", handle, indices.ravel(), peer.handle, peer.indices)
"""
SHARED_COUNT = """
import numpy as np


class Sender:
    def prepare(self, agent, arenaHeads, rowBytes):
        out = []
        per = self._bs_per_pool[0]
        for head, row in zip(arenaHeads, rowBytes, strict=True):
            places = head + np.arange(per, dtype=np.uint64) * row
            out.append(np.column_stack([places, np.full(per, row), np.full(per, 0)]))
        return agent.prep_xfer_dlist("", np.vstack(out), "VRAM")
"""
TENSORS = """
def spread(agent, shelves, rows, dev):
    width = shelves[0].stride(0) * shelves[0].element_size()
    out = [(one.data_ptr() + row * width, width, dev) for one in shelves for row in rows]
    return agent.get_xfer_descs(out, "VRAM")
"""
STRIDES = """
def spread(agent, arenaHeads, hops, rows, dev):
    hop = hops[0]
    out = [(head + row * hop, hop, dev) for head in arenaHeads for row in rows]
    return agent.get_xfer_descs(out, "VRAM")
"""
OWN = Own(
    slots=("bs_per_pool",),
    lengths=("arenaSpan",),
    item_lengths=("row*es",),
    strides=("hops",),
    addresses=("arena*Head*",),
    lists=("shelves",),
)


@pytest.fixture(autouse=True)
def _afterwards():
    yield
    use(Own())


@pytest.fixture
def codes(project):
    def found(own, code):
        use(own)
        root = project({"engine.py": code})
        return {f.code for f in check(root, [root], all_rules()).findings if Choice().shows(f)}

    return found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (FIRST_LENGTH, {"KV101"}),
        (FLAT_INDEX, {"KV101", "KV103"}),
        (SHARED_COUNT, {"KV101", "KV102"}),
        (TENSORS, {"KV101"}),
        (STRIDES, {"KV101"}),
    ],
    ids=["item length", "flat index", "slots in a private field", "list of tensors", "stride"],
)
def test_a_fault_in_own_names_is_found_only_where_they_are_told(codes, code, expected):
    assert codes(Own(), code) == set()
    assert codes(OWN, code) == expected


def test_one_regions_value_may_have_an_own_name(codes):
    code = """
import numpy as np

def one(agent, arenaHead, rowBytes, bs_per_pool, off, dev):
    head = arenaHead + off * rowBytes
    places = head + np.arange(bs_per_pool) * rowBytes
    out = np.column_stack([places, np.full(bs_per_pool, rowBytes), np.full(bs_per_pool, dev)])
    return agent.get_xfer_descs(out, "VRAM")
"""
    assert codes(OWN, code) == set()


def test_what_is_used_holds_until_something_else_is():
    built_in = nouns().triggers
    use(Own(slots=("rows_per_pool",), lists=("*_arenas",), triggers=("memfd",)))
    assert nouns().triggers == built_in | {"rows_per_pool", "_arenas", "memfd"}
    assert words("rows_per_pool") != ("rows", "per", "pool")
    assert own_names().slots == ("rows_per_pool",)
    use(Own())
    assert nouns().triggers == built_in
    assert words("rows_per_pool") == ("rows", "per", "pool")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"slots": ("a.b",)}, r"'a.b' is no name, and no name with \* in it"),
        ({"lists": ("*",)}, r"'\*' is no name"),
        ({"slots": ("x",), "item_lengths": ("x",)}, "'x' has two meanings: slots and item-lengths"),
        ({"triggers": ("",)}, "a trigger has at least one letter"),
    ],
)
def test_names_that_mean_nothing_or_two_things_are_refused(own, message):
    with pytest.raises(ValueError, match=message):
        Own(**own)


def test_a_list_of_slot_counts_is_a_list():
    own = Own(slots=("counts_by_arena",), lists=("counts_by_arena",))
    assert own.stands_for("counts_by_arena") == Own(slots=("n",)).stands_for("n")
