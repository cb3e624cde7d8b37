"""The region lies where its key says, or nowhere; a forked child does not have it."""

import mmap
import os
import sys
from itertools import pairwise

import numpy as np
import pytest

from kvlint.runtime_checks.exchange import mailbox as mailboxes
from kvlint.runtime_checks.exchange.mailbox import mailbox_of
from kvlint.runtime_checks.exchange.region import SIZE, TakenError, address_of, map_region

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the platform Linux is missing")


def test_a_key_is_an_address_and_another_key_another():
    addresses = {address_of(bytes([n]) * 32) for n in range(200)}
    assert len(addresses) > 190
    assert all(address % SIZE == 0 and address % mmap.PAGESIZE == 0 for address in addresses)
    assert address_of(b"a") == address_of(b"a")


def test_memory_that_is_taken_is_left_alone():
    region = map_region(address_of(b"taken"))
    region.cells[0] = 7
    with pytest.raises(TakenError, match=f"memory at {region.address:#x} is taken"):
        map_region(region.address)
    assert (region.cells[0] == 7).all()


def test_the_parts_of_a_region_are_apart_and_fill_it():
    region = map_region(address_of(b"apart"))
    parts = [region.stamps, region.staged_stamps, region.cells, region.staged]
    for number, part in enumerate(parts, 1):
        assert (part == 0).all()
        part[...] = number
    assert sum(part.nbytes for part in parts) <= SIZE
    spans = sorted((part.ctypes.data, part.nbytes) for part in parts)
    assert all(a + n <= b for (a, n), (b, _) in pairwise(spans))
    assert spans[0][0] == region.address
    assert sum(spans[-1]) == region.address + SIZE


def test_a_process_has_one_mailbox_a_key():
    assert mailbox_of(b"one") is mailbox_of(b"one")
    assert mailbox_of(b"one") is not mailbox_of(b"other")


def test_two_keys_of_one_address_do_not_share_it(monkeypatch):
    mailbox_of(b"first")
    monkeypatch.setattr(mailboxes, "address_of", lambda _: address_of(b"first"))
    with pytest.raises(TakenError):
        mailbox_of(b"second")


def test_a_forked_child_touches_nothing_and_may_have_its_own():
    mailbox = mailbox_of(b"forked")
    mailbox.admit("decode")
    mailbox.region.cells[0] = 7
    child = os.fork()
    if not child:
        status = 1
        try:
            silent = mailbox.receive() == [] and not mailbox.live
            own = mailbox_of(b"forked")
            own.region.cells[0] = 9
            status = 0 if silent and own is not mailbox else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert mailbox.live
    assert np.all(mailbox.region.cells[0] == 7)
