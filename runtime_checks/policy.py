"""What becomes of what the checks find, and of what goes wrong in the checks themselves.

`judge` and `contained` run inside an engine's calls, in destructors and in signal handlers, so
they never wait for a lock that their own thread may hold: the one lock is reentrant, what is done
under it calls only the operating system, and standard error is written past Python's buffers. Nor
do they wait for another thread forever.
"""

import os
import sys
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from types import TracebackType
from typing import Final

from kvlint.runtime_checks.callers import MODULE as CALLERS
from kvlint.runtime_checks.callers import Caller, Callers
from kvlint.runtime_checks.checks import Breach, Place
from kvlint.runtime_checks.evidence import Evidence
from kvlint.runtime_checks.launches.budget import Budget
from kvlint.runtime_checks.locks import Lock
from kvlint.runtime_checks.recorder import Recorder
from kvlint.runtime_checks.settings import Mode, Settings, one_line
from kvlint.runtime_checks.stacks import FOLDER, Stack
from kvlint.runtime_checks.violations import Violation

SCHEMA: Final = 1
KEPT: Final = 256
# Different violations that are told apart; of more, the ones seen longest ago are new again.
KNOWN: Final = 4096
# Of the process's time, what is spent at most on writing who calls, besides dumps.
WRITING: Final = 0.01


@dataclass(frozen=True, slots=True)
class Site:
    """A call that took part.

    what   the method's name
    stack  where it was called from
    """

    what: str
    stack: Stack


@dataclass(slots=True)
class _Known:
    """A violation seen before: its number, how often it was seen, and what tells it apart."""

    number: int
    count: int
    sites: Sequence[Site]
    told: list[dict[str, object]]


class Policy:
    """The policy of one armed process.

    recorder    the ring of its last transfers
    callers     what code led to its calls
    violations  records of the last 256 violations, repeats included
    stages      gives what is kept of stages, for files
    launched    gives the kernels that were launched, as callers
    """

    def __init__(self, settings: Settings, recorder: Recorder | None = None) -> None:
        self.settings = settings
        self.mode: Mode = settings.mode
        self.recorder = Recorder() if recorder is None else recorder
        self.callers = Callers()
        self.on_count: Callable[[], None] = lambda: None
        self.on_fault: Callable[[], None] = lambda: None
        self.on_violation: Callable[[], None] = lambda: None
        self.launched: Callable[[], Iterable[Caller]] = lambda: ()
        self.stages: Callable[[], Iterable[Mapping[str, object]]] = lambda: ()
        self.start_afresh()

    def start_afresh(self) -> None:
        """As in a process that has seen nothing: what a forked child needs."""
        self._lock = Lock()
        self._known: OrderedDict[object, _Known] = OrderedDict()
        self._numbers = count(1)
        self._dumped = 0.0
        self._disarmed: dict[str, str] = {}
        self.pid = os.getpid()
        self.violations: deque[Mapping[str, object]] = deque(maxlen=KEPT)
        self.found: Counter[tuple[str, str]] = Counter()
        self.transfers: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.recorder.clear()
        self.callers.clear()
        self._due = False
        self._budget = Budget(WRITING)
        report = self.settings.report
        self.evidence = None if report is None else Evidence(report, self.settings.run, self.pid)

    # What the checks find.

    def judge(
        self,
        breach: Breach,
        sites: Sequence[Site],
        *,
        agent: str,
        peer: str | None = None,
        transfer: str | None = None,
        history: Sequence[Mapping[str, object]] = (),
    ) -> Violation | None:
        """Record, count, print (deduplicated). The exception to raise where the mode raises, else
        None. Never raises."""
        record: dict[str, object] = {"check": breach.check.name, "message": breach.message}
        with self.contained("policy"):
            with self._lock:
                known, is_new = self._recognised(breach, sites)
                record = self._record(breach, known, agent, peer, transfer, history)
                self.violations.append(record)
                self.found[breach.check.name, breach.code or ""] += 1
                written = self._write(record, known, is_new)
            self.on_violation()
            if is_new:
                say(self._line(breach, sites))
            if written and time.monotonic() - self._dumped >= 1:
                self.dump()
        return Violation(breach.message, record) if self.mode.raises else None

    def transferred(self, operation: str) -> None:
        """A transfer was posted: `READ` or `WRITE`. Called by the engine's own thread."""
        with self._lock:
            self.transfers[operation] += 1
        self.publish()

    def publish(self) -> None:
        """What was counted so far is for others to see. Called by the engine's own thread where
        it makes or posts a transfer, never from a destructor."""
        if self.armed("metrics"):
            with self.contained("metrics"):
                self.on_count()

    def _recognised(self, breach: Breach, sites: Sequence[Site]) -> tuple[_Known, bool]:
        place = breach.place
        key = (
            breach.check.name,
            None if place is None else (place.side, place.region),
            tuple((site.what, site.stack.key) for site in sites),
        )
        known = self._known.get(key)
        if known is not None:
            known.count += 1
            self._known.move_to_end(key)
            return known, False
        told: list[dict[str, object]] = []
        with self.contained("stacks"):
            # Called from nowhere is what a destructor is at the end of the process.
            stacks = [(site.what, site.stack.lines()) for site in sites]
            told = [{"call": what, "stack": lines} for what, lines in stacks if lines]
        # The sites are kept for their code: while it lives, its identity is nobody else's.
        known = _Known(next(self._numbers), 1, tuple(sites), told)
        self._known[key] = known
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return known, True

    def _record(
        self,
        breach: Breach,
        known: _Known,
        agent: str,
        peer: str | None,
        transfer: str | None,
        history: Sequence[Mapping[str, object]],
    ) -> dict[str, object]:
        place = breach.place
        return {
            **self._header(),
            "time": _now(),
            "number": known.number,
            "check": breach.check.name,
            "code": breach.code,
            "mode": self.mode.value,
            "agent": agent,
            "peer": peer,
            "message": breach.message,
            "formula": breach.formula,
            "values": dict(breach.values),
            "side": place and place.side,
            "region": place and place.region,
            "region_name": place and place.name,
            "layer": place and place.layer,
            "slot": place and place.slot,
            "byte": place and place.byte,
            "list": place and place.list,
            "index": place and place.index,
            "meant": breach.meant and _told(breach.meant),
            "sites": known.told,
            "transfer": transfer,
            "history": list(history),
            "count": known.count,
        }

    def _header(self) -> dict[str, object]:
        return {"schema": SCHEMA, "run": self.settings.run, "pid": self.pid}

    def _write(self, record: Mapping[str, object], known: _Known, is_new: bool) -> bool:
        """Whether something was written. A repeat costs a line each time its count has doubled,
        so a flood stays small."""
        evidence = self.evidence
        if evidence is None or not self.armed("evidence"):
            return False
        with self.contained("evidence"):
            if is_new:
                evidence.add_violation(record)
                return True
            if known.count & (known.count - 1) == 0:
                repeat = {"repeat_of": known.number, "count": known.count}
                evidence.add_violation({**self._header(), "time": _now(), **repeat})
                return True
        return False

    def conclude(self) -> None:
        """Writes how often each violation was seen, now that no more is. Never raises."""
        evidence = self.evidence
        if evidence is None or not self.armed("evidence"):
            return
        with self.contained("evidence"), self._lock:
            for known in self._known.values():
                if known.count > 1:
                    last = {"repeat_of": known.number, "count": known.count, "final": True}
                    evidence.add_violation({**self._header(), "time": _now(), **last})

    def _line(self, breach: Breach, sites: Sequence[Site]) -> str:
        code = f" [{breach.code}]" if breach.code else ""
        where = [place for site in reversed(sites) if (place := site.stack.place())][:1]
        if self.evidence is not None and self.armed("evidence"):
            where.append(f"full record in {self.evidence.violations}")
        behind = f" ({'; '.join(where)})" if where else ""
        return f"violation: {breach.check.name}{code}: {breach.message}{behind}"

    def dump(self) -> None:
        """Writes the ring, the callers, and what the ledger of stages has, to their files, if there
        are files. Never raises."""
        evidence = self.evidence
        if evidence is None or not self.armed("evidence"):
            return
        self._dumped = time.monotonic()
        with self.contained("recorder"):
            entries = [{**self._header(), **e.to_dict()} for e in self.recorder.entries()]
            if entries:
                with self.contained("evidence"), self._lock:
                    evidence.replace_ring(entries)
        with self.contained(CALLERS):
            self._write_callers(evidence)
        with self.contained("stages"):
            stages = [{**self._header(), **entry} for entry in self.stages()]
            if stages:
                with self.contained("evidence"), self._lock:
                    evidence.replace_stages(stages)

    def called(
        self,
        call: str,
        stack: Stack,
        agent: str,
        looked: tuple[str, ...] = (),
        lists: Iterable[int] = (),
    ) -> None:
        """A call has come from the engine. Servers are often killed, so what is new is written as
        it comes, and then each time its number has doubled. Never raises.

        looked  names of the checks that have looked at it
        """
        if not self.armed(CALLERS):
            return
        with self.contained(CALLERS):
            self._due |= self.callers.count(call, stack, agent, looked, lists)
            if self._due and self.evidence is not None and self._budget.allows():
                self._due, begun = False, time.monotonic()
                if self.armed("evidence"):
                    self._write_callers(self.evidence)
                self._budget.spend(time.monotonic() - begun)

    def _write_callers(self, evidence: Evidence) -> None:
        callers = [*self.callers.entries(), *self.launched()]
        calls = [{**self._header(), **caller.to_dict()} for caller in callers]
        if calls:
            with self.contained("evidence"), self._lock:
                evidence.replace_calls(calls)

    # What goes wrong in the checks.

    def armed(self, check: str) -> bool:
        """False from the first fault of the check on."""
        return check not in self._disarmed

    @property
    def disarmed(self) -> Mapping[str, str]:
        """Checks that failed by themselves, with the fault."""
        return dict(self._disarmed)

    def contained(self, check: str) -> "Contained":
        """Swallows every Exception but Violation: counted, said once, and that check is disarmed
        for the process."""
        return Contained(self, check)

    def fault(self, check: str, error: BaseException) -> None:
        """Never raises, whatever state the process is in."""
        try:
            # Without the lock, which may be what is at fault.
            self.faults[check] += 1
            if check not in self._disarmed:
                self._disarmed[check] = what = _place(error)
                say(f"internal error, {check} is switched off in this process: {what}")
                self.on_fault()
        except Exception:
            self._disarmed.setdefault(check, type(error).__name__)


class Contained:
    """See `Policy.contained`; a class of its own, since it costs a third of a generator."""

    __slots__ = ("_check", "_policy")

    def __init__(self, policy: Policy, check: str) -> None:
        self._policy = policy
        self._check = check

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None or not isinstance(error, Exception) or isinstance(error, Violation):
            return False
        self._policy.fault(self._check, error)
        return True


def _told(meant: Place) -> Mapping[str, object]:
    return {"region": meant.region, "slot": meant.slot, "index": meant.index}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _place(error: BaseException) -> str:
    """Type, and the innermost line of kvlint's own. An error's text could hold what it is about,
    so it is not told."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not place or file.startswith(FOLDER):
            place = f" at {file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__}{place}"


def say(line: str) -> None:
    """One line on standard error, written past Python's buffers: their locks may be held by the
    very thread that a signal or a destructor interrupts. Nobody listening is no failure."""
    text = f"kvlint: {one_line(line)}\n"
    stream = sys.stderr
    number = -1
    # An engine may have put anything in its place.
    with suppress(Exception):
        number = stream.fileno()
    with suppress(Exception):
        if number >= 0:
            os.write(number, text.encode("utf-8", "backslashreplace"))
        else:
            stream.write(text)
