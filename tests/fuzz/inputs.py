"""Small projects made of edited real files; the seed and the number tell which."""

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import kvlint.analysis.link
import kvlint.analysis.lower  # noqa: F401 (here, not in each forked process)
from kvlint.analysis.vocabulary import nouns
from tests.apart import apart
from tests.fuzz.edits import edited
from tests.fuzz.judged import what_is_wrong

SECONDS = 30  # for one input, twice as long as the largest real file takes on a slow machine


def files_below(folders: Sequence[Path], most_lines: int) -> list[str]:
    """Texts of the files that speak of cache memory, the same ones in the same order."""
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if text.count("\n") <= most_lines and any(word in text for word in nouns().triggers):
            found.append(text)
    return found


def made(seed: int, number: int, pool: Sequence[str]) -> dict[str, bytes]:
    """One edited file, and in a third of the inputs one it was not made for."""
    random = Random(f"{seed}:{number}")
    files = {"edited.py": edited(random, random.choice(pool), pool)}
    if random.random() < 0.3:
        files["other.py"] = random.choice(pool).encode()
    return files


def answer(seed: int, number: int, pool: Sequence[str]) -> str:
    """'' where all holds of this input, else what does not; see `judged`."""
    with tempfile.TemporaryDirectory(prefix="kvlint-fuzz-") as folder:
        root = Path(folder).resolve()
        for name, data in made(seed, number, pool).items():
            (root / name).write_bytes(data)
        return apart(partial(what_is_wrong, root, twice=number % 4 == 0), SECONDS)
