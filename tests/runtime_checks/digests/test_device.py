"""Digests of GPU memory where there is no GPU: said in one line, and nothing imported too early."""

import subprocess
import sys

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint.runtime_checks.digests.digester import Digester
from kvlint.runtime_checks.digests.host import UnreadableError
from kvlint.runtime_checks.digests.pages import pages_at

PROGRAM = """
import sys
import numpy as np
from kvlint.runtime_checks.digests.digester import Digester
from kvlint.runtime_checks.digests.pages import pages_at

assert not {"torch", "triton"} & set(sys.modules)
sys.modules["torch"] = None
try:
    Digester(1).start(pages_at(np.array([4096], np.uint64), np.array([64]), "VRAM"))
except OSError as error:
    print(error)
"""


def pages(kind):
    return pages_at(np.array([4096], np.uint64), np.array([64]), kind, 99)


def test_torch_is_imported_with_the_first_digest_and_missed_in_one_line():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "no digests of GPU memory: torch is missing\n"


def test_a_device_that_is_not_there(torch):
    with pytest.raises(UnreadableError, match="torch has no CUDA device 99"):
        Digester(1).start(pages("VRAM"))


def test_another_kind_of_memory():
    with pytest.raises(UnreadableError, match="memory of kind FILE"):
        Digester(1).start(pages("FILE"))


@pytest.mark.skipif(sys.platform != "linux", reason="process_vm_readv is Linux's")
def test_two_lanes_are_two_columns():
    memory = np.arange(64, dtype=np.uint8)
    where = pages_at(np.array([memory.ctypes.data], np.uint64), np.array([64]), "DRAM")
    both = Digester(5, lanes=2).start(where).digests()
    assert both.shape == (1, 2)
    assert both[0, 0] == Digester(5).start(where).digests()[0] != both[0, 1]
