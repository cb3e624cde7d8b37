"""python -m tests.runtime_checks.campaign --transfers 100000 --mutants 5000 --seed 1"""

import argparse
import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    """0 when everything was found, at its place, and nothing else was said; else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.runtime_checks.campaign")
    parser.add_argument("--transfers", type=int, default=2000, help="right transfers, at least")
    parser.add_argument("--mutants", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=40, help="right transfers in one geometry")
    parser.add_argument("--unarmed", action="store_true", help="what plain NIXL does")
    parser.add_argument("--write", type=Path, help="file for the result")
    parser.add_argument("--json", action="store_true", help="one object instead of the table")
    asked = parser.parse_args()

    # Before the first agent: transfers are in flight until someone asks, and NIXL's log is short.
    os.environ.setdefault("UCX_TLS", "tcp")
    os.environ.setdefault("NIXL_LOG_LEVEL", "FATAL")
    from kvlint.runtime_checks import arm, status
    from tests.runtime_checks.campaign.run import Campaign, Tally
    from tests.runtime_checks.campaign.table import document

    if not asked.unarmed:
        arm("log")
    began, last = time.monotonic(), 0.0

    def progress(tally: Tally) -> None:
        nonlocal last
        if sys.stderr.isatty() and time.monotonic() - last > 1:
            last = time.monotonic()
            print(
                f"\r{tally.transfers} transfers, {tally.mutants} mutants", end="", file=sys.stderr
            )

    tally = Campaign(asked.transfers, asked.mutants, asked.seed, asked.each).run(progress)
    errors = status().get("tool_errors", {})
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
        text = document(tally, errors, numbers, time.monotonic() - began)
        print(text)
        if asked.write:
            asked.write.write_text(text + "\n", encoding="utf-8")
    return int(bool(tally.missed or tally.alarms or errors))


if __name__ == "__main__":
    sys.exit(main())
