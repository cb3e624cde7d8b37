"""What a file gets of the ledger: one object a pool, and one or a few a note."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.stages.memory import Memory
from kvlint.runtime_checks.stages.notes import Note

# So many digests in one line: what reads them bounds its lines.
A_LINE: Final = 1 << 15
# So many fill a file: older notes are not even put into words, which a server would wait for.
A_FILE: Final = 1 << 19


def newest(notes: Sequence[Note], most: int = A_FILE) -> Sequence[Note]:
    """As many of the last as have so many digests together; one at least."""
    first = len(notes)
    while first and most > 0:
        first -= 1
        most -= notes[first].digests.size
    return notes[first:]


def entries(notes: Iterable[Note], seed: int) -> Iterator[Mapping[str, object]]:
    """Notes in their order, each pool before the first that names it.

    The seed itself is not told: who knows it can make other bytes of the same digest.
    """
    pools: dict[Memory, int] = {}
    named = blake2b(b"kvlint" + seed.to_bytes(8, "little"), digest_size=4).hexdigest()
    for note in notes:
        number = pools.get(note.memory)
        if number is None:
            number = pools[note.memory] = len(pools) + 1
            yield _pool(note.memory, number)
        yield from _note(note, number, named)


def _pool(memory: Memory, number: int) -> Mapping[str, object]:
    return {
        "kind": "pool",
        "pool": number,
        "name": memory.pool,
        "regions": [memory.called(region) for region in range(len(memory.regions))],
        "keys": list(memory.keys),
    }


def _note(note: Note, pool: int, seed: str) -> Iterator[Mapping[str, object]]:
    looked = range(len(note.digests))
    if note.seen is not None:
        looked = [region for region in looked if note.seen[region]]  # type: ignore[assignment]
    each = max(1, A_LINE // max(1, len(note.slots)))
    for begin in range(0, len(looked), each):
        regions = looked[begin : begin + each]
        yield {
            "kind": "stage",
            "number": note.number,
            "stage": note.stage.value,
            "owner": note.owner,
            "request": note.request,
            "time": note.time,
            "seed": seed,
            "pool": pool,
            "regions": list(regions),
            "slots": note.slots.tolist(),
            "ordinals": note.ordinals.tolist(),
            "digests": [_hex(note.digests[region]) for region in regions],
        }


def _hex(digests: Digests) -> str:
    """Sixteen figures each, one after another."""
    return digests.astype(">u8").tobytes().hex()
