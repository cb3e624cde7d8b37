"""Processes that share tasks, and what becomes of a task whose process dies.

Workers are forked: what they need they have from the start, whatever it is made of, and only
tasks and results go through pipes. A worker that dies costs the task it was at, nothing else.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic

from kvlint.engine.errors import one_line
from kvlint.engine.tasks import Died, Result, Task, done


@dataclass(slots=True)
class _Worker(Generic[Task]):
    process: BaseProcess
    pipe: Connection
    task: Task
    behind: bool


@dataclass(slots=True)
class _Waiting(Generic[Task]):
    tasks: deque[Task]
    rest: deque[Task]

    def __bool__(self) -> bool:
        return bool(self.tasks or self.rest)

    def next(self, behind: bool) -> Task:
        if self.rest and (behind or not self.tasks):
            return self.rest.popleft()
        return self.tasks.pop() if behind else self.tasks.popleft()


def each(
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    workers: int,
    finish: Callable[[], None] = lambda: None,
    rest: Sequence[Task] = (),
) -> Iterator[tuple[Task, Result | Died]]:
    """Each task with what `work` makes of it, in the order in which they end.

    Tasks share what a process has worked out, those in front most: one half of the `workers`
    processes begins there, the other with `rest`, which shares nothing, and then comes from behind.
    Each process ends with `finish`.
    """
    waiting = _Waiting(deque(tasks), deque(rest))
    busy: dict[Connection, _Worker[Task]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                behind = sum(worker.behind for worker in busy.values()) < len(busy) / 2
                one = _start(work, finish, waiting.next(behind), list(busy), behind)
                busy[one.pipe] = one
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                worker = busy[pipe]
                try:
                    result = pipe.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    del busy[pipe]
                    pipe.close()
                    yield worker.task, Died(_how(worker.process.exitcode))
                    continue
                ended = worker.task
                if not (waiting and _gave(worker, waiting)):
                    del busy[pipe]
                    with suppress(OSError):  # it has died since
                        pipe.send(None)
                    pipe.close()
                    worker.process.join()
                yield ended, result
    finally:
        for worker in busy.values():
            worker.process.kill()
            worker.process.join()


def _gave(worker: _Worker[Task], waiting: _Waiting[Task]) -> bool:
    """Whether the worker has the next task; one that died between two has not cost any."""
    task = waiting.next(worker.behind)
    try:
        worker.pipe.send(task)
    except OSError:
        waiting.rest.append(task)
        return False
    worker.task = task
    return True


def _start(
    work: Callable[[Task], Result],
    finish: Callable[[], None],
    task: Task,
    others: Sequence[Connection],
    behind: bool,
) -> _Worker[Task]:
    fork = get_context("fork")
    ours, theirs = fork.Pipe()
    process = fork.Process(
        target=_serve, args=(work, finish, theirs, (ours, *others), task), daemon=True
    )
    process.start()
    theirs.close()
    return _Worker(process, ours, task, behind)


def _serve(
    work: Callable[[Task], Result],
    finish: Callable[[], None],
    pipe: Connection,
    others: Sequence[Connection],
    task: Task,
) -> None:
    # Ctrl-C reaches the whole group; the parent says what there is to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # With a copy of the parent's ends open here, no worker would hear that it has closed them.
    for other in others:
        other.close()
    try:
        while True:
            result = done(work, task)
            try:
                pipe.send(result)
            except OSError:
                raise
            except Exception as error:  # what cannot be pickled says so in many ways
                pipe.send(Died(one_line(error)))
            # Closing alone would not be heard where another thread's workers hold copies.
            following: Task | None = pipe.recv()
            if following is None:
                raise EOFError
            task = following
    except (EOFError, OSError):  # nobody waits for more
        done(lambda _: finish(), None)
        os._exit(0)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
