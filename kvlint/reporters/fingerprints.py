"""What a place is known by from one run to the next, for forges that follow findings."""

from collections import Counter

from kvlint.findings import Finding
from kvlint.reporters.view import View


def fingerprints(view: View) -> dict[Finding, str]:
    """The assumption's id and the number of the place among those that make the assumption,
    from 1 in the order of lines, as `KV103-1f2e3d4c5b6a/2`.

    No line number is in it, so that moved lines change nothing. Hidden and silenced places
    count too: neither an option nor a comment gives the others new numbers.
    """
    found = {*view.shown, *view.hidden, *(silenced.finding for silenced in view.silenced)}
    seen: Counter[str] = Counter()
    known = {}
    for finding in sorted(found, key=lambda finding: (finding.span, finding.message)):
        seen[finding.assumption_id] += 1
        known[finding] = f"{finding.assumption_id}/{seen[finding.assumption_id]}"
    return known
