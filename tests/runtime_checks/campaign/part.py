"""One process's part of a campaign; a module of its own, so that a spawned process finds it."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.runtime_checks.campaign.run import Tally


def campaign(asked: argparse.Namespace, seed: int) -> "tuple[Tally, dict[str, int]]":
    """What came of it, and the errors of the companion itself."""
    from kvlint.runtime_checks import arm, status
    from tests.runtime_checks.campaign.run import Campaign

    if not asked.unarmed:
        arm("log")
    last = 0.0

    def progress(tally: "Tally") -> None:
        nonlocal last
        if sys.stderr.isatty() and time.monotonic() - last > 1:
            last = time.monotonic()
            print(
                f"\r{tally.transfers} transfers, {tally.mutants} mutants", end="", file=sys.stderr
            )

    parts = asked.processes
    part = Campaign(-(-asked.transfers // parts), -(-asked.mutants // parts), seed, asked.each)
    return part.run(progress), dict(status().get("tool_errors", {}))
