"""What a run has shown of each hypothesis, as a person reads it, or a program."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kvlint.drawing.words import count
from kvlint.hypotheses import Hypothesis
from kvlint.runtime_checks.bridge import Answer, Judged
from kvlint.runtime_checks.settings import one_line


def tell(judged: Sequence[Judged]) -> Iterator[str]:
    """Lines. What comes from files cannot break out of its line."""
    for answer in Answer:
        of_it = [one for one in judged if one.answer is answer]
        if of_it:
            yield f"{answer} ({len(of_it)})"
            rows = _by_reason(of_it) if answer is Answer.NOT_EXERCISED else _each(of_it)
            yield from (f"  {one_line(line)}" for line in rows)
            yield ""
    yield last_line(judged)


def last_line(judged: Sequence[Judged]) -> str:
    """How many there are of each."""
    times = Counter(one.answer for one in judged)
    told = ", ".join(f"{times[answer]} {answer}" for answer in Answer)
    noun = "hypothesis" if len(judged) == 1 else "hypotheses"
    return f"{len(judged):,} {noun}: {told}"


def _each(judged: Sequence[Judged]) -> Iterator[str]:
    for one in judged:
        hypothesis = one.hypothesis
        silenced = ", silenced" if hypothesis.silenced_by is not None else ""
        status = f"[{hypothesis.status}{silenced}]"
        yield f"{hypothesis.id}  {place_of(hypothesis)}  {hypothesis.name} {status}"
        yield f"    assumes   {hypothesis.formula}"
        for number, reason in enumerate(one.reasons):
            yield f"    {'' if number else 'evidence':<8}  {reason}"


def _by_reason(judged: Sequence[Judged]) -> Iterator[str]:
    """There may be many, and what is to say of most is the same."""
    reasons: dict[str, list[Hypothesis]] = {}
    for one in judged:
        reasons.setdefault(one.why, []).append(one.hypothesis)
    for reason, hypotheses in reasons.items():
        yield f"{reason}:"
        for hypothesis in hypotheses:
            yield f"    {hypothesis.id}  {place_of(hypothesis)}  {hypothesis.formula}"


def place_of(hypothesis: Hypothesis) -> str:
    """`conn.py:12 in Manager.send`, and how many more places there are."""
    first, more = hypothesis.places[0], len(hypothesis.places) - 1
    within = f" in {first.definition}" if first.definition else ""
    return f"{first}{within}" + (f" and {count(more, 'more place')}" if more else "")


def as_object(one: Judged) -> dict[str, object]:
    """JSON-safe."""
    hypothesis = one.hypothesis
    return {
        "id": hypothesis.id,
        "code": hypothesis.code,
        "name": hypothesis.name,
        "place": str(hypothesis.places[0]),
        "definition": hypothesis.places[0].definition,
        "status": hypothesis.status,
        "formula": hypothesis.formula,
        "answer": one.answer,
        "why": one.why,
        "calls": one.calls,
        "observations": one.observations,
        "violations": [
            {name: seen.record.get(name) for name in ("run", "pid", "number")}
            for seen in one.violations
        ],
        "geometries": [
            {"label": label, "outcome": found.outcome, "why": found.why} for label, found in one.on
        ],
    }
