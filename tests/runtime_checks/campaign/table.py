"""The campaign's result as text."""

from tests.runtime_checks.campaign.run import Tally


def table(tally: Tally) -> str:
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
