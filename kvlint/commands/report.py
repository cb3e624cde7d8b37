"""`kvlint report`: what the processes of a run found, with the transfers around it."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from kvlint.commands._stderr import complain
from kvlint.commands._stdout import write
from kvlint.engine.errors import UsageError


@click.command(epilog="Exit codes: 0 no violations, 1 violations, 2 wrong usage.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
def command(folder: Path, output_format: str) -> int:
    """Show the violations in DIR, where `kvlint run --report DIR` has written them."""
    from kvlint.runtime_checks.reading import Story, is_evidence, read
    from kvlint.runtime_checks.telling import tell

    def objects(story: Story) -> Iterator[str]:
        violations = [
            {**seen.record, "count": seen.count, "transfers": [asdict(t) for t in seen.around]}
            for seen in story.violations
        ]
        yield json.dumps({"violations": violations, "unread": story.unread}, indent=2)

    try:
        if not is_evidence(folder):
            raise UsageError(f"no evidence in {folder}: `kvlint run --report {folder}` writes it")
        story = read(folder)
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from None
    for problem in story.unread:
        complain(problem)
    write(objects(story) if output_format == "json" else tell(story))
    return 1 if story.violations else 0
