"""The seven needs of linking, each on the smallest program that has it."""

import pytest

from kvlint.analysis.origins import Origins
from kvlint.analysis.showing import show


def origins(program, path, name):
    """What the last return of a function can be, as text."""
    body = program.body(program.outline(path).definitions[name])
    root = body.returns[-1]
    return [show(o.term) for o in Origins(program).of(root.term, body)]


def test_a_field_is_its_real_store_not_its_sentinel(program):
    one = program(
        m="class A:\n    def __init__(self):\n        self.n = 0\n    def fill(self, xs):\n"
        "        self.n = len(xs)\n    def get(self):\n        return self.n\n"
    )
    assert origins(one, "m.py", "A.get") == ["len(xs)"]


def test_choices_are_decided_by_the_call(program):
    one = program(
        m="def pick(n=None, own=7):\n    return n if n is not None else own\n"
        "def given():\n    return pick(3)\ndef left():\n    return pick(own=5)\n"
    )
    assert origins(one, "m.py", "given") == ["3"]
    assert origins(one, "m.py", "left") == ["5"]


def test_a_key_tells_stores_apart(program):
    one = program(
        m="class A:\n    def put(self, name, n):\n        self.handles[name] = n\n"
        "    def go(self, peer):\n        self.put('', 1)\n        self.put(peer, 2)\n"
        "    def own(self):\n        return self.handles['']\n"
    )
    assert origins(one, "m.py", "A.own") == ["1"]


def test_a_tuple_kept_in_a_field_is_taken_apart(program):
    one = program(
        m="class A:\n    def put(self, h, n):\n        self.pair = (h, n + 1)\n"
        "    def get(self):\n        h, n = self.pair\n        return n\n"
    )
    assert origins(one, "m.py", "A.get") == ["n + 1"]


def test_a_dataclass_carries_what_its_constructor_got(program):
    one = program(
        m="from dataclasses import dataclass\n@dataclass\nclass P:\n    n: int\n"
        "def make(xs):\n    return P(n=min(xs))\ndef read(p: P):\n    return p.n\n"
    )
    assert origins(one, "m.py", "read") == ["min(xs)"]


SENDER = """
class Peer:
    def __init__(self, msg):
        self.name = msg[0]
        self.gpu_id = int(msg[1])
        self.num_slots = int(msg[2])

    def slots(self):
        return self.num_slots

class Side:
    def tell(self, sock):
        sock.send_multipart([b"GUARD", self.name, str(self.gpu_id).encode(), str(min(self.counts))])
"""


def test_what_is_received_is_what_the_other_side_sends(program):
    one = program(m=SENDER)
    body = one.body(one.outline("m.py").definitions["Peer.slots"])
    (origin,) = Origins(one).of(body.returns[0].term, body)
    assert show(origin.term) == "min(self.counts)"
    assert origin.wire


def test_callees_come_by_imports_and_re_exports(program):
    one = program(
        **{
            "pkg/__init__": "from pkg.deep import count\n",
            "pkg/deep": "def count(a):\n    return a + 1\n",
        },
        user="import pkg\ndef go(x):\n    return pkg.count(x)\n",
    )
    assert origins(one, "user.py", "go") == ["x + 1"]


def test_an_unknown_value_stays_what_it_is(program):
    one = program(m="def go(x):\n    return mystery(x)\n")
    assert origins(one, "m.py", "go") == ["mystery(x)"]


def test_an_item_of_a_mapping_made_here_is_the_fields_store(program):
    """`self.sizes = {}` above it takes nothing from what is put in afterwards."""
    one = program(
        m="class A:\n    def fill(self, n):\n        self.sizes = {}\n"
        "        self.sizes['kv'] = n * 2\n    def get(self):\n        return self.sizes['kv']\n"
    )
    assert origins(one, "m.py", "A.get") == ["n * 2"]


REGION = "class Region:\n    pass\n"


@pytest.mark.parametrize(
    "put",
    [
        "self.regions.append(Region())",
        "self.regions = [Region() for _ in range(n)]",
        "self.regions = [Region(), Region()]",
        "self.regions[n] = Region()",
        "self.regions = given",
    ],
)
def test_what_a_fields_list_or_mapping_holds_has_a_class(program, put):
    one = program(
        m=f"{REGION}class A:\n    def fill(self, n, given: dict[str, Region]):\n"
        f"        {put}\n"
        "    def get(self, n):\n        return self.regions[n]\n"
    )
    body = one.body(one.outline("m.py").definitions["A.get"])
    assert one.type_of(body.returns[0].term, body) == "m.py::Region"


def test_a_parameters_list_tells_the_class_of_its_items(program):
    one = program(
        m=f"{REGION}def last(regions: list[Region]):\n    return regions[-1]\n"
        "def some(regions: list[int]):\n    return regions[-1]\n"
    )
    kinds = {}
    for name in ("last", "some"):
        body = one.body(one.outline("m.py").definitions[name])
        kinds[name] = one.type_of(body.returns[0].term, body)
    assert kinds == {"last": "m.py::Region", "some": None}
