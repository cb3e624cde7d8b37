"""`kvlint report`: what the processes of a run found, with the transfers around it, and where
pages of requests changed."""

from pathlib import Path

import click

from kvlint.commands._stderr import complain
from kvlint.commands._stdout import write
from kvlint.engine.errors import UsageError


@click.command(
    epilog="Exit codes: 0 no violations, 1 violations, or pages that changed, 2 wrong usage."
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
def command(folder: Path, output_format: str) -> int:
    """Show the violations in DIR, where `kvlint run --report DIR` has written them."""
    from kvlint.runtime_checks.reading import is_evidence, read
    from kvlint.runtime_checks.telling import tell, tell_as_json

    try:
        if not is_evidence(folder):
            raise UsageError(f"no evidence in {folder}: `kvlint run --report {folder}` writes it")
        story = read(folder)
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from None
    for problem in story.unread:
        complain(problem)
    write(tell_as_json(story) if output_format == "json" else tell(story))
    return 1 if story.violations or story.changes.found else 0
