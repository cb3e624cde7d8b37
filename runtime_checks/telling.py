"""The story of a run as a person reads it, or a program."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from kvlint.runtime_checks import judgements
from kvlint.runtime_checks.bridge import Judged
from kvlint.runtime_checks.reading import Event, Seen, Story, Transfer, is_own
from kvlint.runtime_checks.recorded import Record
from kvlint.runtime_checks.settings import one_line
from kvlint.runtime_checks.stages import telling as stages


def tell(story: Story, judged: Sequence[Judged] | None = None) -> Iterator[str]:
    """Lines. What comes from files and peers cannot break out of its line.

    judged  what the story says of hypotheses, where there are any
    """
    if judged is not None:
        yield from judgements.tell(judged)
        yield ""
    total = len(story.violations)
    for number, seen in enumerate(story.violations, 1):
        yield from (one_line(line) for line in _violation(seen, number, total))
        yield ""
    for change in story.changes.found:
        yield from (one_line(line) for line in stages.tell(change))
        yield ""
    yield from map(one_line, story.changes.apart)
    counted = "1 violation" if total == 1 else f"{total} violations"
    transfers, changed = len(story.transfers), len({one.owner for one in story.changes.found})
    recorded = f"{transfers} {'transfer' if transfers == 1 else 'transfers'} recorded"
    pages = f", pages of {changed} {'request' if changed == 1 else 'requests'} changed"
    yield f"{counted if total else 'no violations'}, {recorded}{pages if changed else ''}"


def tell_as_json(story: Story, judged: Sequence[Judged] | None = None) -> Iterator[str]:
    """One object: each violation is its record, with the transfers around it; each change of a
    request's pages; and each hypothesis, where there are any."""
    violations = [
        {
            **seen.record,
            "count": seen.count,
            "exact": seen.exact or seen.count == 1,
            "transfers": [
                {"id": transfer.id, "events": [asdict(event) for event in transfer.events]}
                for transfer in seen.around
            ],
        }
        for seen in story.violations
    ]
    told: dict[str, object] = (
        {} if judged is None else {"hypotheses": [judgements.as_object(one) for one in judged]}
    )
    told |= {
        "violations": violations,
        "changes": [stages.as_object(change) for change in story.changes.found],
        "not_compared": story.changes.apart,
        "unread": story.unread,
    }
    yield json.dumps(told, indent=2)


def headline(record: Record) -> str:
    """`column [KV103]`"""
    code = f" [{record['code']}]" if record.get("code") else ""
    return f"{record.get('check')}{code}"


def times(seen: Seen) -> str:
    """`once`, `6 times`, `at least 4 times`"""
    least = "" if seen.exact else "at least "
    return "once" if seen.count == 1 else f"{least}{seen.count} times"


def facts(seen: Seen) -> Iterator[tuple[str, str]]:
    """What is known of a violation besides its message, each with what it is."""
    record = seen.record
    yield (
        "seen",
        f"{times(seen)}, first {record.get('time')}, mode {record.get('mode')}, "
        f"process {record.get('pid')} of run {record.get('run')}",
    )
    peer = f", peer {record['peer']}" if record.get("peer") else ""
    yield "agent", f"{record.get('agent')}{peer}"
    if record.get("formula"):
        yield "assumes", f"{record['formula']}"
    if isinstance(record.get("values"), Mapping) and record["values"]:
        yield "values", _pairs(record["values"])
    where = [
        f"{name} {record[name]}"
        for name in ("region", "region_name", "layer", "slot", "byte")
        if record.get(name) is not None
    ]
    if where:
        yield "place", f"{record.get('side')} side, {', '.join(where)}".replace("_", " ")


def sites(record: Record) -> Iterator[tuple[str, list[str]]]:
    """The calls that the violation came from, each with its stack, the caller first."""
    found = record.get("sites")
    for site in found if isinstance(found, list) else ():
        if isinstance(site, Mapping):
            stack = site.get("stack")
            yield f"{site.get('call')}", list(map(str, stack if isinstance(stack, list) else ()))


def earlier(record: Record) -> list[str]:
    """The transfers before it on the same lists, one line each."""
    history = record.get("history")
    lines = history if isinstance(history, list) else []
    return [_earlier(one) if isinstance(one, Mapping) else f"{one}" for one in lines]


def _violation(seen: Seen, number: int, total: int) -> Iterator[str]:
    record = seen.record
    yield f"violation {number} of {total}: {headline(record)}"
    yield f"  {record.get('message')}"
    for label, text in facts(seen):
        yield _row(label, text)
    for call, stack in sites(record):
        yield f"  {call} called in"
        yield from (f"    {frame}" for frame in stack)
    if history := earlier(record):
        yield "  earlier on these lists"
        yield from (f"    {line}" for line in history)
    if seen.around:
        yield "  transfers around it"
        for transfer in seen.around:
            yield from _transfer(transfer, is_own(transfer, record))


def _earlier(transfer: Mapping[str, object]) -> str:
    """A transfer of the history in one line: `a>b:1f#2  WRITE done  local list 3 (...)  ...`."""
    sides = ((name, transfer.get(name)) for name in ("local", "remote"))
    told = [f"{name} {_side(side)}" for name, side in sides if isinstance(side, Mapping)]
    name = transfer.get("id") or f"transfer {transfer.get('number')}"
    return "  ".join([f"{name}", f"{transfer.get('operation')} {transfer.get('state')}", *told])


def _transfer(transfer: Transfer, own: bool) -> Iterator[str]:
    yield f"  {'>' if own else ' '} {transfer.id}"
    yield from (f"      {_event(event)}" for event in transfer.events)


def _event(event: Event) -> str:
    detail = ", ".join(_details(event.detail))
    return f"{event.time or '-':<27}  {event.agent:<12}  {event.what:<8}  {detail}".rstrip()


def _details(detail: Mapping[str, object]) -> Iterator[str]:
    for name, value in detail.items():
        if isinstance(value, Mapping):
            yield f"{name} {_side(value)}"
        else:
            yield f"{name} {value}"


def _side(side: Mapping[str, object]) -> str:
    """What is selected of a list: `list 3 (24 descriptors; slots 5 6 7 100)`."""
    parts = [f"{side.get('descriptors')} descriptors"]
    groups = side.get("groups")
    for group in groups if isinstance(groups, list) else ():
        if isinstance(group, Mapping) and isinstance(group.get("first"), list):
            first = group["first"]
            more = " ..." if group.get("slots") != len(first) else ""
            parts.append(f"slots {' '.join(map(str, first))}{more}")
    return f"list {side.get('list')} ({'; '.join(parts)})"


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _row(label: str, text: object) -> str:
    return f"  {label:<9}{text}"
