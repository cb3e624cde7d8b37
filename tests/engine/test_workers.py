"""Processes that die: what they were at is named, and everything else is done."""

import faulthandler
import os
import signal
import sys
import threading
import time

import pytest

from kvlint.engine.check import check
from kvlint.engine.tasks import Died
from kvlint.engine.workers import each
from tests.samples import claim, rule, span

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")


def end(number):
    """End this process as its own crash or the system would."""
    faulthandler.disable()  # pytest's would tell of it
    os.kill(os.getpid(), number)


def answers(tasks, work, workers=2):
    return dict(each(tasks, work, workers))


def test_each_task_has_its_answer():
    assert answers(range(50), lambda task: task * 2) == {task: task * 2 for task in range(50)}
    assert answers([], str) == {}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_process_that_is_ended_costs_the_task_it_was_at(number):
    def work(task):
        if task % 5 == 0:
            end(number)
        return task

    found = answers(range(20), work)
    lost = {task for task, answer in found.items() if isinstance(answer, Died)}
    assert lost == {0, 5, 10, 15}
    assert found[5].how == f"ended by {number.name}"
    assert {found[task] for task in found.keys() - lost} == found.keys() - lost


@pytest.mark.parametrize(
    ("fails", "how"),
    [
        (lambda: os._exit(3), "ended with exit code 3"),
        (lambda: 1 // 0, "ZeroDivisionError: integer division or modulo by zero"),
        (lambda: sys.exit(4), "ended with exit code 4"),
        (lambda: lambda: 1, "pickle"),
    ],
    ids=["exit", "exception", "SystemExit", "an answer that cannot be sent"],
)
def test_whatever_goes_wrong_is_said_of_its_task(fails, how):
    found = answers(["good", "bad"], lambda task: fails() if task == "bad" else task)
    assert found["good"] == "good"
    assert how in found["bad"].how


FILES = {f"f{number}.py": f"kv_data_ptr = {number}\n" for number in range(40)}


def test_a_worker_that_dies_names_its_file_and_costs_only_that(project):
    root = project(FILES)

    def deadly(program):
        (path,) = program.starts()
        if path == "f7.py":
            end(signal.SIGSEGV)
        yield claim(span(path))

    failures = []
    report = check(root, [root], [rule(deadly)], failures.append)
    assert [str(failure) for failure in failures] == [
        "internal error on f7.py, which is not checked: ended by SIGSEGV"
    ]
    assert {f.span.path for f in report.findings} == FILES.keys() - {"f7.py"}


def test_a_file_whose_process_died_for_another_reason_has_a_second_try(project, tmp_path):
    root, mark = project(FILES), tmp_path / "died"

    def once(program):
        if not mark.exists():
            mark.touch()
            end(signal.SIGKILL)
        yield claim(span(*program.starts()))

    report = check(root, [root], [rule(once)])
    assert {f.span.path for f in report.findings} == FILES.keys()


def test_threads_that_each_have_workers_all_come_to_an_end():
    """The workers of one hold copies of the other's pipes."""

    def slow(task):
        time.sleep(0.05)
        return task

    done = []
    threads = [
        threading.Thread(target=lambda: done.append(answers(range(6), slow)), daemon=True)
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert done == [{task: task for task in range(6)}] * 4
