"""Fuzz for a while: `python -m tests.fuzz FOLDER ... [--minutes 30] [--seed 0] [--keep DIR]`."""

import argparse
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

from tests.fuzz.inputs import answer, files_below, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the input")
    parser.add_argument("--most-lines", type=int, default=1500)
    parser.add_argument("--keep", type=Path, help="where inputs that fail are written")
    options = parser.parse_args()
    pool = files_below(options.folders, options.most_lines)
    print(f"{len(pool)} files to edit", flush=True)
    end = time.monotonic() + 60 * options.minutes
    wrong: Counter[str] = Counter()
    number = options.first
    for number in count(options.first):
        if time.monotonic() > end:
            break
        found = answer(options.seed, number, pool)
        if found:
            wrong[found.strip().splitlines()[-1]] += 1
            print(f"{options.seed}:{number}: {found}", flush=True)
            for name, data in made(options.seed, number, pool).items() if options.keep else ():
                kept = options.keep / str(number) / name
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(data)
    print(f"{number - options.first} inputs, {wrong.total()} wrong: {dict(wrong)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
