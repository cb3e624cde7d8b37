"""Verdicts may be asked for by many threads, in destructors and in signal handlers."""

import gc
import signal
import threading
import time

import pytest

from kvlint.runtime_checks import locks
from tests.runtime_checks.breaches import breach, lines, site


def test_many_threads_lose_no_count_and_no_line(policy, tmp_path, capfd):
    judged = policy()
    regions, rounds, threads = 20, 50, 8

    def work():
        for _ in range(rounds):
            for region in range(regions):
                judged.judge(breach(region), [site()], agent="a")
                judged.transferred("WRITE")

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
        assert not thread.is_alive()
    assert judged.found.total() == judged.transfers["WRITE"] == regions * rounds * threads
    written = lines(tmp_path / "report")
    firsts = [record for record in written if "check" in record]
    assert sorted(record["region"] for record in firsts) == list(range(regions))
    # 400 of each: one first, then at 2, 4, ... 256.
    assert len(written) == regions * 9
    said = [line for line in capfd.readouterr().err.splitlines() if "violation: column" in line]
    assert len(said) == regions
    assert not judged.faults


@pytest.fixture
def in_time():
    """A deadlock of this thread with itself ends in an alarm."""

    def late(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_destructor_may_judge_in_the_middle_of_a_verdict(policy, in_time, capfd):
    judged = policy()
    calls = []

    class Handle:
        def __init__(self):
            self.cycle = self

        def __del__(self):
            calls.append(judged.judge(breach(len(calls) % 50), [site("__del__")], agent="a"))

    before = gc.get_threshold()
    gc.set_threshold(5, 1, 1)
    try:
        for number in range(300):
            Handle()
            judged.judge(breach(100 + number % 50), [site()], agent="a")
            judged.dump()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(calls) == 300
    assert judged.found.total() == 600
    assert not judged.faults


def test_a_signal_handler_may_judge_in_the_middle_of_a_verdict(policy, in_time, capfd):
    judged = policy()
    calls = []

    def handle(*_):
        calls.append(judged.judge(breach(len(calls) % 50), [site("handler")], agent="a"))
        judged.dump()

    before = signal.signal(signal.SIGVTALRM, handle)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0005, 0.0005)
    try:
        own, end = 0, time.monotonic() + 1
        while time.monotonic() < end:
            judged.judge(breach(100 + own % 50), [site()], agent="a")
            judged.transferred("READ")
            own += 1
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert len(calls) > 20
    assert judged.found.total() == own + len(calls)
    assert not judged.faults


def test_a_lock_that_does_not_come_back_costs_a_line_and_hangs_nobody(policy, monkeypatch, capfd):
    monkeypatch.setattr(locks, "_EACH", 0.01)
    judged, engines, taken = policy("assert"), threading.RLock(), threading.Event()

    def interrupted():
        # A destructor of the engine's, at a moment when its thread is in the middle of a verdict.
        with judged._lock:
            taken.set()
            with engines:
                pass

    other = threading.Thread(target=interrupted)
    with engines:
        other.start()
        assert taken.wait(10)
        assert judged.judge(breach(0), [site()], agent="a") is not None
    other.join(10)
    assert not other.is_alive()
    assert judged.faults == {"policy": 1}
    assert capfd.readouterr().err.count("internal error") == 1
