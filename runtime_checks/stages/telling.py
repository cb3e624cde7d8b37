"""Changes of a request's pages, as a person reads them, or a program. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from kvlint.runtime_checks.stages.looks import Step
from kvlint.runtime_checks.stages.story import Change

SHOWN: Final = 6


def tell(change: Change) -> Iterator[str]:
    """Lines: which page of which request, at each stage what it held, and what it holds."""
    here, then = change.here, change.steps[change.before]
    more = change.pages - 1
    many = f" (and {more} more page{'s' if more > 1 else ''})" if more else ""
    yield (
        f"{whose(change.owner, request=change.request)}, {change.region}, page {change.ordinal}: "
        f"first differs at {here.stage} ({here.pool}, process {here.process[1]}){many}"
    )
    for step in _shown(change.steps):
        same = step.digest == then.digest
        verdict = "first differs" if step is here else "" if same else "otherwise"
        where = f"{step.pool} slot {step.slot}, process {step.process[1]}"
        yield f"  {step.stage:<11}{where:<36}  {step.digest}  {verdict}".rstrip()
    if change.early:
        yield "  it was read before an arrival of it was noted"
    if change.holder is not None:
        owner, region, ordinal = change.holder
        other = "" if owner == change.owner else f" of {whose(owner)}"
        yield f"  there it holds what belongs to page {ordinal}{other}, {region}"
    if change.writer is not None:
        owner, stage, ordinal = change.writer
        yield f"  in between, page {ordinal} of {whose(owner)} was put in its place, at {stage}"


def as_object(change: Change) -> Mapping[str, object]:
    """The same for JSON."""
    holder = (
        dict(zip(("owner", "region", "page"), change.holder, strict=True))
        if (change.holder)
        else None
    )
    writer = (
        dict(zip(("owner", "stage", "page"), change.writer, strict=True))
        if (change.writer)
        else None
    )
    return {
        "owner": change.owner,
        "region": change.region,
        "page": change.ordinal,
        "pages": change.pages,
        "differs_at": change.here.stage,
        "differs_from": change.steps[change.before].stage,
        "read_early": change.early,
        "holds": holder,
        "put_there": writer,
        "steps": [_step(step) for step in change.steps],
    }


def whose(owner: str, *, request: bool = True) -> str:
    return f"request {owner}" if request else owner


def _step(step: Step) -> Mapping[str, object]:
    run, pid = step.process
    told = {**asdict(step), "run": run, "pid": pid}
    del told["process"]
    return told


def _shown(steps: Sequence[Step]) -> Sequence[Step]:
    """The first, and the last."""
    return steps if len(steps) <= SHOWN else [steps[0], *steps[1 - SHOWN :]]
