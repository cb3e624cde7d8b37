"""An engine in small that does everything right, and one that does one thing wrong: pages are
given out and taken back, prefixes shared, requests retracted and sent again, and some of them are
not looked at, as in mode sample. No bytes: a page holds a number."""

import random
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint.runtime_checks.stages.ledger import Ledger
from kvlint.runtime_checks.stages.notes import Page
from kvlint.runtime_checks.stages.records import entries
from kvlint.runtime_checks.stages.story import changes
from tests.runtime_checks.stages.pages import memory, note

SLOTS = 24


@dataclass
class Side:
    """A pool: what its pages hold, and which are free."""

    name: str
    at: int
    free: list[int] = field(default_factory=lambda: list(range(SLOTS)))

    def __post_init__(self):
        self.memory = memory(self.name, regions=2, slots=SLOTS, at=self.at)
        self.held = np.zeros((2, SLOTS), np.uint64)


class Engine:
    def __init__(self, seed, apart=False):
        """apart  each side is a process"""
        self.random = random.Random(seed)
        self.prefill, self.decode = Side("prefill", 1 << 20), Side("decode", 1 << 24)
        self.ledger = Ledger()
        self.ledgers = {"prefill": self.ledger, "decode": Ledger() if apart else self.ledger}
        self.found = []
        self.calls = 0
        self.spoil = lambda: None
        self.prefixes = []
        self.numbers = iter(range(1, 1 << 30))

    def note(self, stage, owner, side, slots, first=0, seen=True):
        self.calls += 1
        self.spoil()
        ledger = self.ledgers[side.name]
        if not seen:
            if stage in ("store", "arrival"):
                ledger.forget(side.memory, np.array(slots))
            ledger.drop(owner)
            return
        held = side.held[:, slots]
        self.found += ledger.note(
            note(stage, owner, side.memory, slots, held, first, time=self.calls)
        )

    def store(self, side, slots):
        for slot in slots:
            side.held[:, slot] = next(self.numbers), next(self.numbers)

    def request(self, owner):
        seen = self.random.random() < 0.7
        if self.prefixes and self.random.random() < 0.4:
            shared = list(self.random.choice(self.prefixes))
        else:
            shared = []
        own = [self.prefill.free.pop() for _ in range(self.random.randint(1, 4))]
        self.store(self.prefill, own)
        for begin in range(0, len(own), 2):
            chunk = own[begin : begin + 2]
            self.note("store", owner, self.prefill, chunk, len(shared) + begin, seen)
        slots = [*shared, *own]
        for _ in range(self.random.randint(1, 2)):
            # Once more after it was retracted on the other side.
            self.note("send", owner, self.prefill, slots, seen=seen)
            there = [self.decode.free.pop() for _ in slots]
            self.decode.held[:, there] = self.prefill.held[:, slots]
            self.note("arrival", owner, self.decode, there, seen=seen)
            for _ in range(self.random.randint(0, 3)):
                self.note("read", owner, self.decode, there, seen=seen)
            self.decode.free += there
            self.random.shuffle(self.decode.free)
        keep = self.random.random() < 0.3 and len(self.prefixes) < 2
        if keep and not shared and seen:
            self.prefixes.append(own)
        else:
            self.prefill.free += own
            self.random.shuffle(self.prefill.free)


def test_ten_thousand_stages_of_a_right_engine_are_silent():
    calls = 0
    for seed in range(12):
        engine = Engine(seed)
        for number in range(200):
            engine.request(f"R{number}")
        assert engine.found == []
        calls += engine.calls
    assert calls > 10_000


@pytest.mark.parametrize("seed", range(4))
def test_two_processes_of_a_right_engine_are_silent_together(seed):
    engine = Engine(seed, apart=True)
    for number in range(200):
        engine.request(f"R{number}")
    records = [
        {"run": "r", "pid": pid, **entry}
        for pid, ledger in enumerate(engine.ledgers.values())
        for entry in entries(ledger.notes(), 7)
    ]
    assert engine.found == []
    assert changes(records).found == []
    # And they were compared: one digest that differs is found.
    last = [record for record in records if record.get("stage") == "arrival"][-1]
    last["digests"] = [digits[:-1] + "g" for digits in last["digests"]]
    found = changes(records).found
    assert {change.owner for change in found} == {last["owner"]}


@pytest.mark.parametrize("seed", range(40))
def test_one_page_that_is_overwritten_is_found_at_the_next_stage_that_looks_at_it(seed):
    engine = Engine(seed)
    engine.random.random = lambda: 0.5  # every request is looked at, no prefix is shared
    pick = random.Random(seed)
    after, wrong = pick.randint(10, 200), []

    def spoil():
        if engine.calls == after:
            side = pick.choice([engine.prefill, engine.decode])
            region, slot = pick.randrange(2), pick.randrange(SLOTS)
            side.held[region, slot] += 1 << 40
            wrong.append((side.memory, region, slot, len(engine.ledger.notes())))

    engine.spoil = spoil
    for number in range(60):
        engine.request(f"R{number}")
    ((memory_of, region, slot, noted),) = wrong
    # The next stage that looks at the slot says that it changed, unless it was written anew first.
    for at, later in enumerate(engine.ledger.notes()[noted:]):
        if later.memory == memory_of and slot in later.slots:
            stage = later.stage.value
            expected = stage in ("send", "read") or (stage == "arrival" and at == 0)
            break
    else:
        expected = False
    assert bool(engine.found) == expected
    if expected:
        first = engine.found[0].page
        assert (first.note.memory, first.region, first.slot) == (memory_of, region, slot)
        assert isinstance(first, Page)
        owners = defaultdict(int)
        for one in engine.found:
            owners[one.page.note.owner] += 1
        # It is told once, where it changed, and once more only where it is sent again.
        assert len(owners) == 1
