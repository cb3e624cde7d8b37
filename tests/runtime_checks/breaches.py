"""Breaches to judge, the calls they came from, and what was written about them."""

import json
from pathlib import Path

from kvlint.runtime_checks.checks import COLUMN, Breach, Check, Place
from kvlint.runtime_checks.policy import Site
from kvlint.runtime_checks.stacks import here


def breach(region: int = 0, check: Check = COLUMN, message: str = "wrong") -> Breach:
    return Breach(check, message, {"here": 1, "there": 2}, Place("local", region, slot=7))


def site(what: str = "make_prepped_xfer") -> Site:
    """Of this line, so that two of them are the same place where their callers are."""
    return Site(what, here())


def lines(folder: Path, kind: str = "violations") -> list[dict[str, object]]:
    """What the files of this kind in the folder hold, in the order of their names."""
    files = sorted(folder.glob(f"{kind}*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
