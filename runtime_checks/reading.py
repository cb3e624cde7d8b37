"""What the processes of a run have left in a folder, put together again.

The files may be those of a run that goes on, of a process that was killed within a line, or of
somebody else: what cannot be read is counted and named, and the rest is told.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kvlint.runtime_checks.called import Called, calls_of
from kvlint.runtime_checks.listed import Listed, lists_of
from kvlint.runtime_checks.recorded import Record, records_in
from kvlint.runtime_checks.stages.story import Changes, changes

AROUND: Final = 3
# Of so many pairs of agents the transfers are kept at a time: any folder may be given.
PAIRS: Final = 64
DETAIL: Final = ("operation", "peer", "polls", "local", "remote")


@dataclass(frozen=True, slots=True)
class Event:
    """What one process saw of a transfer.

    time    ISO 8601 in UTC, by that process's clock; "" where it has none
    what    made, posted, done, failed, released or notified
    detail  what else the process knows of the transfer; at its first event only
    """

    time: str
    agent: str
    what: str
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer as all its parties saw it; events by time. `processes` are known by run and
    process id."""

    id: str
    events: tuple[Event, ...]
    processes: frozenset[tuple[object, object]]

    @property
    def begun(self) -> str:
        return self.events[0].time if self.events else ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A violation with the transfers around it, by time.

    count   how often it was seen, at least: repeats are written when their number has doubled
    exact   whether it was seen no more: its process has ended by itself and told
    """

    record: Record
    count: int
    exact: bool = False
    around: tuple[Transfer, ...] = ()


@dataclass(frozen=True, slots=True)
class Process:
    """
    met     whether NIXL was imported
    hooked  whether its classes were
    hooks   state of each hook, by name; in an engine's classes as well
    pools   how often a pool was looked at
    uncompared  transfers that were digested, and that nobody compared
    versions    of Python, kvlint, NIXL, the engine, ..., by name
    transfers   how many it has made
    violations  how many it has found
    """

    pid: int
    met: bool
    hooked: bool
    switched_off: tuple[str, ...]
    hooks: Mapping[str, Any] = field(default_factory=dict)
    pools: int = 0
    uncompared: int = 0
    run: str = field(default="", compare=False)
    mode: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    transfers: int = 0
    violations: int = 0

    def has(self, hook: str) -> bool:
        return self.hooks.get(hook) == "installed"


@dataclass(slots=True)
class Story:
    """
    violations  by time
    transfers   by time
    changes     pages of requests that changed between two stages
    lists       descriptor lists that the transfers were made of
    calls       what code led to NIXL's calls, and to pools
    lost        run and process id of those that have found more than their files tell
    unread      one line a file that is not, or not all, what its name promises
    """

    violations: list[Seen] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)
    lists: list[Listed] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    lost: frozenset[tuple[object, object]] = frozenset()


def is_evidence(folder: Path) -> bool:
    """Whether any process has written into the folder. Raises OSError."""
    kinds = ("armed-", "violations-", "transfers-", "stages-", "calls-")
    return any(path.name.startswith(kinds) for path in folder.iterdir())


def read(folder: Path, run: str = "") -> Story:
    """The story of a run, or of all runs with files in the folder. Raises OSError where the
    folder cannot be read."""
    paths = sorted(folder.iterdir())
    kinds = ("violations", "transfers", "stages", "calls")
    records: dict[str, list[Record]] = {kind: [] for kind in kinds}
    unread = []
    for kind, found in records.items():
        for path in paths:
            if path.match(f"{kind}-{run or '*'}-*.jsonl"):
                more, problem = records_in(path, kind)
                found += more
                unread += [problem] if problem else []
    story = put_together(**records, unread=unread)
    story.lost = lost(armed_processes(folder, run), story.violations)
    return story


def put_together(
    violations: Iterable[Record],
    transfers: Iterable[Record],
    stages: Iterable[Record] = (),
    calls: Iterable[Record] = (),
    unread: Iterable[str] = (),
) -> Story:
    """Pure. Both sides of a transfer meet by its id, repeats and what they repeat by number, and
    stages by the request."""
    transfers = list(transfers)
    known = merged(transfers)
    near = Neighbours(known)
    seen = [replace(one, around=near.around(one.record)) for one in counted(violations)]
    return Story(seen, known, list(unread), changes(stages), lists_of(transfers), calls_of(calls))


def lost(processes: Iterable[Process], violations: Iterable[Seen]) -> frozenset[Any]:
    """Those whose older violations went as newer ones came, say."""
    told: dict[object, int] = defaultdict(int)
    for seen in violations:
        told[_process(seen.record)] += seen.count
    return frozenset(
        (one.run, one.pid) for one in processes if one.violations > told[one.run, one.pid]
    )


def counted(violations: Iterable[Record]) -> list[Seen]:
    """By time. A repeat is of the last violation of that number in its process: armed once more,
    a process counts anew. One whose violation was lost with an older file stays unknown."""
    firsts: list[Record] = []
    counts: list[int] = []
    exact: list[bool] = []
    last: dict[object, int] = {}
    for record in violations:
        process = _process(record)
        if "repeat_of" in record:
            at = last.get((*process, record["repeat_of"]))
        else:
            at = last[*process, record.get("number")] = len(firsts)
            firsts.append(record)
            counts.append(0)
            exact.append(False)
        if at is not None:
            counts[at] = max(counts[at], _integer(record.get("count"), 1))
            exact[at] = record.get("final") is True
    seen = [Seen(*one) for one in zip(firsts, counts, exact, strict=True)]
    return sorted(seen, key=lambda one: _time(one.record.get("time")))


def merged(entries: Iterable[Record]) -> list[Transfer]:
    """By time. An entry without an id, such as a prepared list, is no transfer.

    A folder may hold several runs with the same agents and messages. There, what a target saw
    belongs to the transfer of its own run, or else to the one posted nearest in time.
    """
    made: dict[str, dict[object, list[Record]]] = defaultdict(dict)
    seen: dict[str, list[Record]] = defaultdict(list)
    for entry in entries:
        name = entry.get("id")
        if isinstance(name, str) and entry.get("kind") == "transfer":
            made[name].setdefault(_process(entry), []).append(entry)
        elif isinstance(name, str) and entry.get("kind") == "notified":
            seen[name].append(entry)
    for name, notifications in seen.items():
        for entry in notifications:
            candidates = list(made[name].values())
            if candidates:
                min(candidates, key=lambda one: _distance(entry, one[0])).append(entry)
            else:
                made[name][None] = notifications
                break
    transfers = [
        _transfer(name, parts) for name, several in made.items() for parts in several.values()
    ]
    return sorted(transfers, key=lambda transfer: transfer.begun)


def _transfer(name: str, parts: Iterable[Record]) -> Transfer:
    events = [event for entry in parts for event in _events(entry)]
    processes = frozenset(_process(entry) for entry in parts)
    return Transfer(name, tuple(sorted(events, key=lambda event: event.time)), processes)


def _process(record: Record) -> tuple[object, object]:
    return record.get("run"), record.get("pid")


def _distance(notified: Record, made: Record) -> tuple[bool, int]:
    times = (_integer(notified.get("time"), 0), _integer(made.get("posted"), 0))
    return notified.get("run") != made.get("run"), abs(times[0] - times[1])


def is_own(transfer: Transfer, violation: Record) -> bool:
    """Whether the violation was found on this transfer."""
    return transfer.id == violation.get("transfer") and _process(violation) in transfer.processes


class Neighbours:
    """Transfers by their agents: many violations ask for those around them.

    transfers  by time
    """

    def __init__(self, transfers: Sequence[Transfer]) -> None:
        self._all = transfers
        self._of_agent: dict[str, list[int]] = defaultdict(list)
        self._of_id: dict[str, list[int]] = defaultdict(list)
        self._near: dict[frozenset[object], list[int]] = {}
        for number, transfer in enumerate(transfers):
            self._of_id[transfer.id].append(number)
            for agent in {event.agent for event in transfer.events}:
                self._of_agent[agent].append(number)

    def around(self, record: Record) -> tuple[Transfer, ...]:
        """The violation's own transfer with its neighbours among those of the same agents. It has
        none where a check failed before there was one: then those before and after it by time."""
        near = self._among(frozenset({record.get("agent"), record.get("peer")} - {None}))
        for number in self._of_id.get(str(record.get("transfer")), ()):
            own = bisect_left(near, number)
            if near[own : own + 1] == [number] and is_own(self._all[number], record):
                return self._taken(near[max(0, own - AROUND) : own + AROUND + 1])
        time = _time(record.get("time"))
        after = bisect_right(near, time, key=lambda number: self._all[number].begun)
        return self._taken(near[max(0, after - AROUND) : after + AROUND])

    def _among(self, agents: frozenset[object]) -> list[int]:
        """Numbers of the transfers of these agents, ascending."""
        if agents not in self._near:
            if len(self._near) == PAIRS:
                self._near.clear()
            of_each = (self._of_agent.get(str(agent), ()) for agent in agents)
            self._near[agents] = sorted(set().union(*of_each))
        return self._near[agents]

    def _taken(self, numbers: Iterable[int]) -> tuple[Transfer, ...]:
        return tuple(self._all[number] for number in numbers)


def _events(entry: Record) -> Iterator[Event]:
    """The steps of a transfer that have happened; what the entry says of it stands at the first."""
    agent = str(entry.get("agent", "?"))
    if entry["kind"] == "notified":
        steps = [("notified", entry.get("time"))]
    else:
        ended = str(entry.get("state", "ended"))
        steps = [(step, entry.get(step)) for step in ("made", "posted")]
        steps.append((ended, entry.get("ended")))
    detail = {name: entry[name] for name in DETAIL if entry.get(name) is not None}
    for step, time in steps:
        if time is not None:
            yield Event(_time(time), agent, step, detail)
            detail = {}


def _time(value: object) -> str:
    """Nanoseconds since 1970, or what is a text already, as a text that sorts by time."""
    if isinstance(value, int) and 0 <= value < 1 << 63:
        seconds, nanoseconds = divmod(value, 10**9)
        told = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{told}.{nanoseconds // 1000:06}Z"
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _integer(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def armed_processes(folder: Path, run: str = "") -> list[Process]:
    """The processes of a run that kvlint was loaded in, or of all runs. Raises OSError."""
    return [
        _armed(record)
        for path in sorted(folder.iterdir())
        if path.match(f"armed-{run or '*'}-*.json")
        for record in records_in(path, "armed")[0]
    ]


def _armed(record: Record) -> Process:
    status = record.get("status")
    transfers, digests = (_mapping(record.get(name)) for name in ("transfers", "digests"))
    uncompared = [n for why, n in digests.items() if str(why).startswith("not compared")]
    versions = _mapping(record.get("versions"))
    return Process(
        pid=_integer(record.get("pid"), 0),
        met=status in ("installed", "not installed"),
        hooked=status == "installed",
        switched_off=tuple(map(str, _mapping(record.get("switched_off")))),
        hooks=_mapping(record.get("hooks")),
        pools=_integer(record.get("pools"), 0),
        uncompared=sum(_integer(n, 0) for n in uncompared),
        run=str(record.get("run") or ""),
        mode=str(record.get("mode") or ""),
        versions={str(name): str(version) for name, version in versions.items()},
        transfers=sum(_integer(n, 0) for n in transfers.values()),
        violations=_integer(record.get("violations"), 0),
    )
