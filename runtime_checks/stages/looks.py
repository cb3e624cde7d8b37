"""What a process has noted of stages, read back from its file. Pure, and without numpy.

A file may be anybody's: what is no record of a stage is passed over.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

FIGURES: Final = 16
NOTHING: Final = "0" * FIGURES
# What a stage is before, where two have one time.
ORDER: Final = ("store", "write-back", "load-back", "send", "arrival", "read")
WRITING: Final = ("store", "load-back", "arrival")

Record = Mapping[str, Any]
Process = tuple[object, object]
Pool = tuple[str, list[str], list[str]]
"""Its name, and of each region the name and the key."""


@dataclass(frozen=True, slots=True)
class Step:
    """One look at a page.

    process  run and process id
    pool     name of the pool that it lay in
    region   as people know it
    time     nanoseconds since the epoch, by that process's clock
    digest   sixteen figures
    """

    stage: str
    process: Process
    pool: str
    region: str
    slot: int
    time: int
    digest: str


@dataclass(frozen=True, slots=True)
class Note:
    """One record: the pages of some regions at one stage.

    place  tells pools of one name apart
    """

    process: Process
    number: int
    stage: str
    owner: str
    request: bool
    time: int
    seed: str
    pool: str
    place: tuple[Process, int]
    regions: Mapping[str, str]
    slots: Sequence[int]
    ordinals: Sequence[int]
    digests: Mapping[str, str]

    @property
    def name(self) -> tuple[Process, int]:
        """Of all its parts."""
        return self.process, self.number

    def digest(self, key: str, at: int) -> str:
        return self.digests[key][FIGURES * at : FIGURES * (at + 1)]

    def step(self, key: str, at: int) -> Step:
        region, digest = self.regions[key], self.digest(key, at)
        return Step(self.stage, self.process, self.pool, region, self.slots[at], self.time, digest)


def notes_of(records: Iterable[Record]) -> list[Note]:
    """By time. A note that was written in parts is several."""
    pools: dict[tuple[Process, object], Pool] = {}
    notes: list[Note] = []
    for record in records:
        process, number = (record.get("run"), record.get("pid")), record.get("pool")
        if not isinstance(number, int):
            continue
        if record.get("kind") == "pool":
            names, keys = record.get("regions"), record.get("keys")
            if _texts(names) and _texts(keys) and len(names) == len(keys):
                pools[process, number] = str(record.get("name")), names, keys
        elif record.get("kind") == "stage" and (process, number) in pools:
            note = _note(record, process, pools[process, number])
            if note is not None:
                notes.append(note)
    return sorted(notes, key=lambda note: note.time)


def _note(record: Record, process: Process, pool: Pool) -> Note | None:
    name, names, keys = pool
    stage, owner, seed = (record.get(what) for what in ("stage", "owner", "seed"))
    number, time = record.get("number"), record.get("time")
    regions, digests = record.get("regions"), record.get("digests")
    slots, ordinals = record.get("slots"), record.get("ordinals")
    if not (_texts([owner, seed]) and _integers([number, time]) and stage in ORDER):
        return None
    if not (_integers(regions) and _integers(slots) and _integers(ordinals) and _texts(digests)):
        return None
    if not (
        len(regions) == len(digests)
        and len(slots) == len(ordinals)
        and all(0 <= region < len(names) for region in regions)
        and all(len(digits) == FIGURES * len(slots) for digits in digests)
    ):
        return None
    return Note(
        process=process,
        number=record["number"],
        stage=record["stage"],
        owner=record["owner"],
        request=record.get("request") is not False,
        time=record["time"],
        seed=record["seed"],
        pool=name,
        place=(process, record["pool"]),
        regions={keys[region]: names[region] for region in regions},
        slots=slots,
        ordinals=ordinals,
        digests={keys[region]: digits for region, digits in zip(regions, digests, strict=True)},
    )


def _texts(values: Any) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(type(value) is str for value in values)


def _integers(values: Any) -> TypeGuard[list[int]]:
    """A truth is none."""
    return isinstance(values, list) and all(type(value) is int for value in values)
