"""What a code base assumes, as a file that others decide: pools, servers, reports.

A `Hypothesis` is one assumption with all its places. The file is JSON, schema 1:

    {"tool": "kvlint", "schema": 1, "version": "0.1.0", "assumptions": [
      {"id": "KV103-5b0c...", "code": "KV103", "name": "constant-stride-index",
       "formula": "descriptors before region i = i * S0", "relation": {...},
       "lists": ["kv"], "every": true,
       "status": "unguarded", "severity": "error", "confidence": "high",
       "message": "...", "settle": "...", "holds_today": null, "unresolved": [],
       "counterexample": "3 regions of 2, 1, 1 slots: ...", "silenced_by": null,
       "places": [{"path": "...", "line": 9, "column": 1, "end_line": 9, "end_column": 20,
                   "definition": "Manager.send", "says": "..."}],
       "trace": [places], "guards": [{"relation": {...} or null, "place": {...}}]}]}

Paths are relative to the project that was checked.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

from kvlint.assumptions import AssumptionError, Relation
from kvlint.findings import Confidence, Severity, Span, Status
from kvlint.geometry import LIST_KINDS

SCHEMA: Final = 1
TOOL: Final = "kvlint"


class HypothesisError(ValueError):
    """What is no file of assumptions: one line, why."""


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of source. `definition` is the qualified name of the innermost function or class
    that it lies in, as Python has it; "" at the top of a module, or where that is not known."""

    span: Span
    says: str = ""
    definition: str = ""

    def __str__(self) -> str:
        return str(self.span)


@dataclass(frozen=True, slots=True)
class Guard:
    """What code enforces, None where a construction settles everything, and where it does."""

    relation: Relation | None
    place: Place


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One assumption, wherever it is made.

    lists         kinds of lists that it speaks of: "kv", "state", "aux"
    every         whether it speaks of every region of such a list; else of those whose bytes one
                  place measures, and which these are is not known
    places        where it is made; at least one
    trace         stops on the way there
    guards        what was in force there; they settle it where status is guarded
    silenced_by   why `kvlint check` does not report it, None where it would
    """

    id: str
    code: str
    name: str
    relation: Relation
    lists: tuple[str, ...]
    every: bool
    status: Status
    severity: Severity
    confidence: Confidence
    message: str
    settle: str
    places: tuple[Place, ...]
    trace: tuple[Place, ...] = ()
    guards: tuple[Guard, ...] = ()
    counterexample: str | None = None
    holds_today: str | None = None
    unresolved: tuple[str, ...] = ()
    silenced_by: str | None = None

    @property
    def formula(self) -> str:
        return str(self.relation)

    @property
    def guard(self) -> Guard | None:
        """The one that settles it, None where none does."""
        if self.status is not Status.GUARDED or not self.guards:
            return None
        return next((g for g in self.guards if g.relation is None), self.guards[0])

    def renamed(self, rename: Callable[[str], str]) -> "Hypothesis":
        """The same with other paths; `rename` gets those of the project."""

        def moved(place: Place) -> Place:
            return replace(place, span=replace(place.span, path=rename(place.span.path)))

        return replace(
            self,
            places=tuple(map(moved, self.places)),
            trace=tuple(map(moved, self.trace)),
            guards=tuple(replace(guard, place=moved(guard.place)) for guard in self.guards),
        )


@dataclass(frozen=True, slots=True)
class Assumptions:
    """All hypotheses about a code base, and the version of kvlint that found them."""

    hypotheses: tuple[Hypothesis, ...]
    version: str

    def to_json(self) -> str:
        """In ASCII; a lone surrogate, as a path may hold, comes back as it was."""
        form = {
            "tool": TOOL,
            "schema": SCHEMA,
            "version": self.version,
            "assumptions": [_form(hypothesis) for hypothesis in self.hypotheses],
        }
        return json.dumps(form, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Inverts `to_json`. Raises `HypothesisError`."""
        try:
            form = json.loads(text)
        except (ValueError, RecursionError):
            raise HypothesisError("not readable as JSON") from None
        if not isinstance(form, dict) or form.get("tool") != TOOL or "assumptions" not in form:
            raise HypothesisError("no file of assumptions: `check --emit-assumptions` writes one")
        if type(form.get("schema")) is not int or form["schema"] != SCHEMA:
            schema = ascii(form.get("schema"))[:40]
            raise HypothesisError(f"schema {schema} is not known, only {SCHEMA} is")
        entries = form["assumptions"]
        if not isinstance(entries, list) or not isinstance(form.get("version"), str):
            raise HypothesisError("'assumptions' is no list, or 'version' no text")
        return cls(tuple(_read(n, entry) for n, entry in enumerate(entries)), form["version"])


def _form(hypothesis: Hypothesis) -> dict[str, Any]:
    form = {part.name: getattr(hypothesis, part.name) for part in fields(hypothesis)}
    return form | {
        "formula": hypothesis.formula,
        "relation": hypothesis.relation.to_dict(),
        "places": [_place_form(place) for place in hypothesis.places],
        "trace": [_place_form(place) for place in hypothesis.trace],
        "guards": [
            {
                "relation": None if guard.relation is None else guard.relation.to_dict(),
                "place": _place_form(guard.place),
            }
            for guard in hypothesis.guards
        ],
    }


def _place_form(place: Place) -> dict[str, Any]:
    span = {part.name: getattr(place.span, part.name) for part in fields(Span)}
    return {**span, "definition": place.definition, "says": place.says}


def _read(number: int, form: object) -> Hypothesis:
    where = f"assumptions[{number}]"
    if not isinstance(form, dict):
        raise HypothesisError(f"{where} is no object")
    reader = _Reader(form, where)
    try:
        return Hypothesis(
            id=reader.text("id"),
            code=reader.text("code"),
            name=reader.text("name"),
            relation=Relation.from_dict(form.get("relation")),
            lists=reader.texts("lists", LIST_KINDS),
            every=form.get("every") is True,
            status=Status(reader.text("status")),
            severity=Severity(reader.text("severity")),
            confidence=Confidence(reader.text("confidence")),
            message=reader.text("message"),
            settle=reader.text("settle"),
            places=reader.places("places", least=1),
            trace=reader.places("trace"),
            guards=tuple(reader.guards()),
            counterexample=reader.text_or_none("counterexample"),
            holds_today=reader.text_or_none("holds_today"),
            unresolved=reader.texts("unresolved"),
            silenced_by=reader.text_or_none("silenced_by"),
        )
    except HypothesisError:
        raise
    except (AssumptionError, ValueError) as error:
        # What it quotes may be of any length.
        raise HypothesisError(f"{where}: {str(error)[:120]}") from None


@dataclass(frozen=True, slots=True)
class _Reader:
    """The fields of one object; every method raises `HypothesisError`."""

    form: Mapping[str, Any]
    where: str

    def text(self, name: str) -> str:
        value = self.form.get(name)
        if not isinstance(value, str):
            raise HypothesisError(f"{self.where}: {name!r} is no text")
        return value

    def text_or_none(self, name: str) -> str | None:
        return None if self.form.get(name) is None else self.text(name)

    def integer(self, name: str) -> int:
        value = self.form.get(name)
        if type(value) is not int:
            raise HypothesisError(f"{self.where}: {name!r} is no integer")
        return value

    def items(self, name: str) -> Sequence[Any]:
        value = self.form.get(name)
        if not isinstance(value, list):
            raise HypothesisError(f"{self.where}: {name!r} is no list")
        return value

    def texts(self, name: str, known: Sequence[str] | None = None) -> tuple[str, ...]:
        values = self.items(name)
        if not all(isinstance(v, str) and (known is None or v in known) for v in values):
            raise HypothesisError(f"{self.where}: {name!r} holds something else")
        return tuple(values)

    def places(self, name: str, least: int = 0) -> tuple[Place, ...]:
        found = tuple(_place(value, f"{self.where}: {name}") for value in self.items(name))
        if len(found) < least:
            raise HypothesisError(f"{self.where}: {name!r} is empty")
        return found

    def guards(self) -> list[Guard]:
        found = []
        for value in self.items("guards"):
            if not isinstance(value, dict):
                raise HypothesisError(f"{self.where}: a guard is no object")
            relation = value.get("relation")
            place = _place(value.get("place"), f"{self.where}: guards")
            found.append(Guard(None if relation is None else Relation.from_dict(relation), place))
        return found


def _place(form: object, where: str) -> Place:
    if not isinstance(form, dict):
        raise HypothesisError(f"{where} holds no object")
    reader = _Reader(form, where)
    line, column, end_line, end_column = map(
        reader.integer, ("line", "column", "end_line", "end_column")
    )
    span = Span(reader.text("path"), line, column, end_line, end_column)
    return Place(span, reader.text("says"), reader.text("definition"))
