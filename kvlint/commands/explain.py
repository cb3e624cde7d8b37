"""`kvlint explain RULE`: the rule's own documentation, with the code it reports and accepts."""

import json
import sys
from collections.abc import Iterator
from textwrap import dedent, indent

import click

from kvlint.commands._stdout import write
from kvlint.engine.registry import all_rules
from kvlint.engine.selection import find
from kvlint.reporters.paint import Paint, paint_for
from kvlint.rule import Rule

# What is reported without a code.
FAULTS = {
    "invalid-syntax": "Python cannot parse the file, so nothing in it is checked.",
    "unreadable": "The file cannot be opened or read, so nothing in it is checked.",
    "not-judged": "A function is not checked: it has an expression of more than 100 levels, or is "
    "too long.",
    "malformed-suppression": "A `# kvlint: ignore[CODE] reason` without a reason, without a rule, "
    "or with an unknown one silences nothing.",
    "unused-suppression": "A `# kvlint: ignore[CODE] reason` silences nothing: the rule finds "
    "nothing there, or only what is guarded.",
}


@click.command()
@click.argument("rule")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
def command(rule: str, output_format: str) -> None:
    """Explain RULE, given by code or name."""
    if rule in FAULTS:
        fault = {"code": None, "name": rule, "summary": FAULTS[rule]}
        write([json.dumps(fault, indent=2) if output_format == "json" else FAULTS[rule]])
        return
    found = find(all_rules(), rule)
    write(_json(found) if output_format == "json" else _text(found, paint_for(sys.stdout)))


def _text(rule: Rule, paint: Paint) -> Iterator[str]:
    documentation = rule.documentation()
    yield paint(f"# {rule.code} {rule.name}", "bold")
    yield ""
    yield documentation.summary
    yield ""
    preview = "; preview: runs only when selected by its code or name" if rule.preview else ""
    yield f"Severity {rule.severity}, since kvlint {rule.since}{preview}."
    code = {
        "Example": ("In full, found:", rule.BAD),
        "Use instead": ("In full, silent:", rule.GOOD),
    }
    for title, text in documentation.sections.items():
        yield ""
        yield paint(f"## {title}", "bold")
        yield ""
        if text:
            yield text
        if title in code:
            if text:
                yield ""
            label, module = code[title]
            yield label
            yield ""
            yield indent(dedent(module).strip("\n"), "    ")


def _json(rule: Rule) -> Iterator[str]:
    documentation = rule.documentation()
    fields = {
        "code": rule.code,
        "name": rule.name,
        "summary": documentation.summary,
        "severity": rule.severity,
        "confidence": rule.confidence,
        "since": rule.since,
        "preview": rule.preview,
        "sections": dict(documentation.sections),
        "bad": dedent(rule.BAD).strip("\n") + "\n",
        "good": dedent(rule.GOOD).strip("\n") + "\n",
    }
    yield json.dumps(fields, indent=2)
