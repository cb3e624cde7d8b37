"""python -m tests.runtime_checks.campaign --transfers 100000 --mutants 5000 --seed 1"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.runtime_checks.campaign.part import campaign


def main() -> int:
    """0 when everything was found, at its place, and nothing else was said; else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.runtime_checks.campaign")
    parser.add_argument("--transfers", type=int, default=2000, help="right transfers, at least")
    parser.add_argument("--mutants", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="each with its part and its seed")
    parser.add_argument("--each", type=int, default=40, help="right transfers in one geometry")
    parser.add_argument("--unarmed", action="store_true", help="what plain NIXL does")
    parser.add_argument("--write", type=Path, help="file for the result")
    parser.add_argument("--json", action="store_true", help="one object instead of the table")
    asked = parser.parse_args()

    # Before the first agent: transfers are in flight until someone asks, and NIXL's log is short.
    os.environ.setdefault("UCX_TLS", "tcp")
    os.environ.setdefault("NIXL_LOG_LEVEL", "FATAL")
    from tests.runtime_checks.campaign.run import Tally
    from tests.runtime_checks.campaign.table import document

    began = time.monotonic()
    seeds = range(asked.seed, asked.seed + asked.processes)
    if asked.processes == 1:
        parts = [campaign(asked, asked.seed)]
    else:
        with ProcessPoolExecutor(asked.processes, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(campaign, [asked] * asked.processes, seeds))
    tally, errors = Tally(), Counter[str]()
    for found, failed in parts:
        tally.add(found)
        errors.update(failed)
    if asked.json:
        print(
            json.dumps(
                {
                    "transfers": tally.transfers,
                    "kinds": {k: [c.mutants, c.found, c.placed] for k, c in tally.kinds.items()},
                    "missed": tally.missed,
                    "alarms": tally.alarms,
                    "errors": errors,
                }
            )
        )
    else:
        numbers = f"--transfers {asked.transfers} --mutants {asked.mutants} --seed {asked.seed}"
        if asked.processes > 1:
            numbers += f" --processes {asked.processes}"
        text = document(tally, dict(errors), numbers, time.monotonic() - began)
        print(text)
        if asked.write:
            asked.write.write_text(text + "\n", encoding="utf-8")
    return int(bool(tally.missed or tally.alarms or errors))


if __name__ == "__main__":
    sys.exit(main())
