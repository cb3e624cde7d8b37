"""`kvlint geometry capture`: a pool from the program's own code, as geometry and as verdict."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvlint.geometry import Geometry

pytest.importorskip("numpy", reason="the wheel numpy is missing")

ROOT = Path(__file__).parents[3]

# A pool as SGLang's are: it tells the transport addresses, lengths and item lengths.
POOLS = """
import os, sys
import torch
from kvlint.geometry import Geometry

PAGE, PAGES = 4, 8

class Pool:
    def __init__(self, item=PAGE * 2 * 16 * 2):
        self.item = item
        self.k_buffer = [torch.zeros(PAGES * PAGE, 2, 16, dtype=torch.float16) for _ in range(3)]

    def get_contiguous_buf_infos(self):
        pointers = [k.data_ptr() for k in self.k_buffer]
        return pointers, [k.nbytes for k in self.k_buffer], [self.item] * 3

def right():
    print("a line of the program's own")
    os.system("echo a line of a child of its")
    return Pool()

def wrong():
    return Pool(item=1000)

def tensors():
    return {"key": torch.zeros(5, 4), "value": [torch.zeros(5, 2)]}

def several():
    return [Pool(), Pool()]

def geometry():
    return Geometry.from_json(open("given.json").read())

class Maker:
    build = staticmethod(right)

def fails():
    raise ValueError("two\\nlines")

def ends():
    sys.exit(3)

nothing = lambda: 3
empty = lambda: []
number = 3
"""


@pytest.fixture
def capture(tmp_path, torch):
    (tmp_path / "my").mkdir()
    (tmp_path / "my/pools.py").write_text(POOLS)
    (tmp_path / "broken.py").write_text("import kvlint_nowhere\n")

    def capture(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "kvlint", "geometry", "capture", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return capture


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")


@pytest.mark.parametrize("call", ["right", "Maker.build"])
def test_standard_output_is_the_geometry_and_nothing_else(capture, call):
    ran = capture(f"my.pools:{call}", "--engine", "mine 1.0")
    assert ran.returncode == 0, ran.stderr
    found = Geometry.from_json(ran.stdout)
    assert found.engine == "mine 1.0"
    assert [(region.slots, region.stride) for region in found.regions] == [(8, 256)] * 3
    assert ran.stderr == "a line of the program's own\na line of a child of its\n"


def test_what_the_pool_says_wrongly_is_told_and_the_geometry_is_what_it_says(capture):
    ran = capture("my.pools:wrong")
    assert ran.returncode == 1
    assert [region.stride for region in Geometry.from_json(ran.stdout).regions] == [1000] * 3
    lines = ran.stderr.splitlines()
    assert lines
    assert all(line.startswith("kvlint: item-length: ") for line in lines)


def test_tensors_and_several_pools_are_read_as_well(capture):
    found = Geometry.from_json(capture("my.pools:tensors").stdout)
    assert [(region.name, region.slots) for region in found.regions] == [("key", 5), ("value 0", 5)]
    found = Geometry.from_json(capture("my.pools:several").stdout)
    assert len({region.name for region in found.regions}) == 6


def test_a_geometry_is_written_as_it_is(capture, tmp_path):
    (tmp_path / "given.json").write_text(Geometry((), "e").to_json())
    ran = capture("my.pools:geometry", "--output", "out.json")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert Geometry.from_json((tmp_path / "out.json").read_text()) == Geometry((), "e")
    printed = capture("my.pools:geometry", "--output", "-")
    assert Geometry.from_json(printed.stdout) == Geometry((), "e")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("my.pools", "my.pools is not MODULE:CALL, as in my_pools:build"),
        ("nowhere:x", "import nowhere has failed: ModuleNotFoundError: No module named 'nowhere'"),
        ("broken:x", "import broken has failed: ModuleNotFoundError: No module named 'kvlint_"),
        ("..:x", "import .. has failed: TypeError: "),
        ("my.pools:rigth", "my.pools:rigth: there is no rigth; did you mean right?"),
        ("my.pools:number", "my.pools:number is int, which cannot be called"),
        ("my.pools:fails", "my.pools:fails has failed: ValueError: two lines"),
        ("my.pools:ends", "my.pools:ends has failed: SystemExit: 3"),
        ("my.pools:nothing", "int is no pool: "),
        ("my.pools:empty", "there is no tensor in it"),
    ],
)
def test_what_gives_no_pool_is_one_line(capture, target, said):
    ran = capture(target)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"kvlint: {said}")


def test_a_file_that_cannot_be_written_is_one_line(capture, tmp_path):
    ran = capture("my.pools:right", "--output", "none/out.json")
    assert (ran.returncode, ran.stdout) == (2, "")
    *_, line = ran.stderr.splitlines()
    assert line == "kvlint: cannot write none/out.json: No such file or directory"
