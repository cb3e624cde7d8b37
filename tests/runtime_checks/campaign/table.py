"""The campaign's result as text."""

import datetime
import platform
from importlib import metadata

from tests.runtime_checks.campaign.run import Tally

USED = ("kvlint-geometry", "nixl", "nixl-cu13", "numpy", "torch", "hypothesis")


def document(tally: Tally, errors: object, asked: str, seconds: float) -> str:
    """All of it: date, versions, the command, the table and what should not have been."""
    day = datetime.datetime.now(datetime.UTC).date()
    lines = [
        "# The mutation campaign",
        "",
        f"{day}; python {platform.python_version()}; {'; '.join(versions())}.",
        "",
        f"    python -m tests.runtime_checks.campaign {asked}",
        "",
        table(tally),
        "",
        f"{tally.transfers:,} right transfers, {len(tally.alarms)} of them not silent or wrong; "
        f"{tally.mutants:,} mutants; {seconds:.0f} s. Errors of the companion itself: "
        f"{errors or 'none'}.",
    ]
    return "\n".join([*lines, *(line[:1500] for line in (tally.alarms + tally.missed)[:50])])


def versions() -> list[str]:
    found = []
    for name in USED:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def table(tally: Tally) -> str:
    """One line a kind. Dropped is what changes no byte's place (`same bytes`), what is the right
    call of another request, and what the geometry has no room for."""
    head = "| kind | mutants | found | right place | refused by NIXL | dropped |"
    lines = [head, "|---|---:|---:|---:|---:|---|"]
    for kind, count in tally.kinds.items():
        dropped = ", ".join(f"{why} {n}" for why, n in sorted(count.dropped.items())) or "-"
        numbers = (count.mutants, count.found, count.placed, count.refused)
        lines.append(f"| {kind} | " + " | ".join(map(str, numbers)) + f" | {dropped} |")
    sums = [
        sum(getattr(count, name) for count in tally.kinds.values())
        for name in ("mutants", "found", "placed", "refused")
    ]
    lines.append("| all | " + " | ".join(map(str, sums)) + " | |")
    return "\n".join(lines)
