"""What a SARIF log says about the rules, the silent ones too: that they ran is worth knowing."""

from textwrap import dedent
from typing import Any

from kvlint.findings import Severity
from kvlint.reporters.view import View
from kvlint.rule import Rule

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}
_EXAMPLES = {"Example": "BAD", "Use instead": "GOOD"}
# GitHub asks for each of these.
_TEXTS = ("shortDescription", "fullDescription", "help")
_FAULTS = {
    "invalid-syntax": "The file is not valid Python.",
    "unreadable": "The file could not be read.",
    "malformed-suppression": "A comment that is to silence kvlint cannot be understood.",
    "unused-suppression": "A comment silences nothing.",
}


def described(view: View) -> list[dict[str, Any]]:
    """A descriptor for every rule that ran, and for every kind of fault there is."""
    rules = [_rule(rule) for rule in view.rules]
    known = {rule.code for rule in view.rules}
    silenced = (silenced.finding for silenced in view.silenced)
    strays = {f.code: f.name for f in (*view.shown, *silenced) if f.code not in known}
    rules += [{**_named(code, name), "name": name} for code, name in strays.items()]
    faults = dict.fromkeys(fault.name for fault in view.faults)
    return rules + [_named(name, _FAULTS.get(name, name)) for name in faults]


def _named(code: str, text: str) -> dict[str, Any]:
    return {"id": code, **{key: {"text": text} for key in _TEXTS}}


def _rule(rule: Rule) -> dict[str, Any]:
    documentation = rule.documentation()
    summary, whole = documentation.summary, _markdown(rule)
    assumes = documentation.sections.get("What it assumes", "")
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": " ".join(assumes.split()) or summary},
        "help": {"text": whole, "markdown": whole},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "precision": str(rule.confidence),
            "problem.severity": str(rule.severity),
            "since": rule.since,
            "tags": ["kv-cache", "buffer-geometry"],
        },
    }


def _markdown(rule: Rule) -> str:
    documentation = rule.documentation()
    parts = [documentation.summary]
    for title, text in documentation.sections.items():
        parts += [f"## {title}", text]
        if not text and title in _EXAMPLES:
            module = dedent(getattr(rule, _EXAMPLES[title])).strip("\n")
            parts.append(f"```python\n{module}\n```")
    return "\n\n".join(part for part in parts if part)
