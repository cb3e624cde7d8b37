"""Two processes that are asked by name, and whatever one of them does, an end within a minute.

A worker that dies, hangs or answers with an error ends both, and why is one line. Where the process
that asks is gone the workers end as well. What they print is kept in files, and the end of it shown
where one ends badly.
"""

import ctypes
import faulthandler
import importlib
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

# Seconds: of one question; of the first, before which a worker imports what it needs; of none.
PATIENCE = 50.0
STARTING = 150.0
IDLE = 180.0
SIDES = ("prefill", "decode")
DEATH_OF_THE_PARENT = 1  # prctl's PR_SET_PDEATHSIG


class LostError(Exception):
    """A worker is of no use any more; one line says why."""


class OverError(LostError):
    """The time for all of it is over."""


class Link:
    """What one worker tells the other one. Raises LostError where nothing comes."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def tell(self, what: str) -> None:
        try:
            self._pipe.send(what)
        except OSError as error:
            raise LostError("the other worker is gone") from error

    def hear(self, what: str, seconds: float = PATIENCE / 2) -> None:
        try:
            if not self._pipe.poll(seconds):
                raise LostError(f"the other worker has not said {what!r} for {seconds:.0f} s")
            said = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise LostError("the other worker is gone") from error
        if said != what:
            raise LostError(f"the other worker said {said!r}, not {what!r}")


def _serve(number: int, pipe: Connection, link: Connection, log: str, module: str) -> None:
    """One worker: answers until nobody asks."""
    # A line of C code that never comes back holds Python's lock, so no thread of Python's may be
    # what ends it: `faulthandler` has one of its own, and the kernel needs none.
    ctypes.CDLL(None).prctl(DEATH_OF_THE_PARENT, signal.SIGKILL)
    kept = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(kept, stream)
    faulthandler.enable()
    side = importlib.import_module(module).Side(SIDES[number], number, Link(link))
    while pipe.poll(IDLE):
        try:
            asked = pipe.recv()
        except (EOFError, OSError):
            break
        if asked is None:
            break
        call, arguments, seconds = asked
        faulthandler.dump_traceback_later(seconds, exit=True)
        try:
            answer = True, getattr(side, call)(*arguments)
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(at.filename).name}:{at.lineno}"
            answer = False, f"{type(error).__name__}: {error} ({where})"
        faulthandler.cancel_dump_traceback_later()
        pipe.send(answer)
    # What NIXL does when its agents are collected may take as long as it likes.
    os._exit(0)


class Workers:
    """Prefill and decode.

    environment  what they have besides this process's own
    deadline     when all must be over, of `time.monotonic`
    module       has the class `Side`, whose methods are asked; made of a name, a number and a link
    patience     seconds that the next question may take
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        deadline: float,
        module: str = "two_processes.side",
    ) -> None:
        self.deadline, self._said = deadline, ""
        self.patience = STARTING
        self._folder = tempfile.TemporaryDirectory(prefix="two-gpus-")
        context = multiprocessing.get_context("spawn")
        links = context.Pipe()
        self._processes, self._pipes = {}, {}
        before = dict(os.environ)
        os.environ.update(environment)
        try:
            for number, side in enumerate(SIDES):
                ours, theirs = context.Pipe()
                arguments = (number, theirs, links[number], str(self._log(side)), module)
                process = context.Process(target=_serve, args=arguments, daemon=True, name=side)
                process.start()
                theirs.close()
                links[number].close()
                self._processes[side], self._pipes[side] = process, ours
        finally:
            os.environ.clear()
            os.environ.update(before)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for pipe in self._pipes.values():
            try:
                pipe.send(None)
            except OSError:
                continue
        for process in self._processes.values():
            process.join(5)
        self.kill()

    def _log(self, side: str) -> Path:
        return Path(self._folder.name) / side

    def kill(self) -> None:
        for process in self._processes.values():
            if process.is_alive():
                process.kill()
            process.join(10)
        self._folder.cleanup()

    def ask(self, side: str, call: str, *arguments: Any) -> Any:
        """Raises LostError, and both are ended."""
        return self._asked({side: (call, arguments)})[side]

    def both(self, ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> tuple[Any, Any]:
        """At the same time; each is a call and its arguments, of prefill and of decode."""
        asked = {side: (one[0], one[1:]) for side, one in zip(SIDES, (ours, theirs), strict=True)}
        found = self._asked(asked)
        return found["prefill"], found["decode"]

    def _asked(self, asked: dict[str, tuple[str, tuple[Any, ...]]]) -> dict[str, Any]:
        try:
            return self._answers(asked)
        except (EOFError, OSError) as error:
            self._end()
            raise LostError(f"a worker is gone{self._said}") from error
        except LostError as error:
            self._end()
            raise type(error)(f"{error}{self._said}") from error

    def _answers(self, asked: dict[str, tuple[str, tuple[Any, ...]]]) -> dict[str, Any]:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OverError("the time for all of it is over")
        seconds = min(self.patience, left)
        # Its own watch is the later one: it says less.
        for side, (call, arguments) in asked.items():
            self._pipes[side].send((call, arguments, seconds + 2))
        found: dict[str, Any] = {}
        end = time.monotonic() + seconds
        while len(found) < len(asked):
            waited = {self._pipes[side]: side for side in asked if side not in found}
            ready = wait(list(waited), max(0, end - time.monotonic()))
            if not ready:
                late = " and ".join(f"{side} ({asked[side][0]})" for side in waited.values())
                if seconds < self.patience:
                    raise OverError(f"the time for all of it is over, asked and not back: {late}")
                raise LostError(f"no answer for {seconds:.0f} s: {late}")
            for pipe in ready:
                side = waited[pipe]
                right, answer = pipe.recv()
                if not right:
                    raise LostError(f"{side}, asked for {asked[side][0]!r}: {answer}")
                found[side] = answer
        self.patience = min(self.patience, PATIENCE)
        return found

    def _end(self) -> None:
        """Both; what is known of one that ended by itself, and its last words, is kept."""
        ended = []
        for side, process in self._processes.items():
            process.join(1)
            if process.exitcode is not None:
                log = self._log(side)
                words = log.read_text(errors="replace").splitlines() if log.exists() else []
                last = [line for line in words if not line.startswith("kvlint: ")][-6:]
                said = "".join(f"\n    {side}: {line[:200]}" for line in last)
                ended.append(f"; {side} ended with {process.exitcode}{said}")
        self._said = "".join(ended)
        self.kill()
