"""`kvlint rules`: every rule in a line."""

import json
import sys
from collections.abc import Iterator, Sequence

import click

from kvlint.commands._stdout import write
from kvlint.engine.registry import all_rules
from kvlint.reporters.paint import Paint, paint_for
from kvlint.rule import Rule


@click.command()
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
def command(output_format: str) -> None:
    """List all rules."""
    rules = all_rules()
    write(_json(rules) if output_format == "json" else _table(rules, paint_for(sys.stdout)))


def _table(rules: Sequence[Rule], paint: Paint) -> Iterator[str]:
    width = max((len(rule.name) for rule in rules), default=0)
    for rule in rules:
        code = paint(rule.code, "bold red")
        preview = " (preview)" if rule.preview else ""
        summary = rule.documentation().summary
        yield f"{code}  {rule.name:<{width}}  {rule.severity:<7}  {summary}{preview}"
    counted = f"{len(rules)} {'rule' if len(rules) == 1 else 'rules'}"
    yield f"{counted}; `kvlint explain CODE` tells all about one"


def _json(rules: Sequence[Rule]) -> Iterator[str]:
    objects = [
        {
            "code": rule.code,
            "name": rule.name,
            "summary": rule.documentation().summary,
            "severity": rule.severity,
            "confidence": rule.confidence,
            "since": rule.since,
            "preview": rule.preview,
        }
        for rule in rules
    ]
    yield json.dumps(objects, indent=2)
