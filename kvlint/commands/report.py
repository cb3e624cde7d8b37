"""`kvlint report`: what the processes of a run found, with the transfers around it, where pages of
requests changed, and what that says of the hypotheses about their code."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvlint.commands._assumptions import read_assumptions
from kvlint.commands._stderr import complain
from kvlint.commands._stdout import write
from kvlint.engine.errors import UsageError

if TYPE_CHECKING:
    from kvlint.runtime_checks.bridge import Judged
    from kvlint.runtime_checks.reading import Story

BESIDE = "assumptions.json"


@click.command(
    epilog="Exit codes: 0 no violations, 1 violations, pages that changed, or a hypothesis that is "
    "refuted, 2 wrong usage."
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--assumptions",
    "emitted",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `kvlint check --emit-assumptions FILE` wrote; each is refuted, confirmed or not "
    f"exercised. Default: DIR/{BESIDE}, if it is there.",
)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
def command(folder: Path, emitted: Path | None, output_format: str) -> int:
    """Show the violations in DIR, where `kvlint run --report DIR` has written them, and what the
    run says of the assumptions in the code."""
    from kvlint.runtime_checks.reading import is_evidence, read
    from kvlint.runtime_checks.telling import tell, tell_as_json

    try:
        if not is_evidence(folder):
            raise UsageError(f"no evidence in {folder}: `kvlint run --report {folder}` writes it")
        story = read(folder)
        judged = _judged(folder, emitted, story)
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from None
    for problem in story.unread:
        complain(problem)
    write(tell_as_json(story, judged) if output_format == "json" else tell(story, judged))
    refuted = any(one.answer == "refuted" for one in judged or ())
    return 1 if story.violations or story.changes.found or refuted else 0


def _judged(folder: Path, emitted: Path | None, story: "Story") -> "list[Judged] | None":
    """None where there are no hypotheses. Raises OSError and UsageError."""
    beside = folder / BESIDE
    if emitted is None and not (beside.is_symlink() or beside.exists()):
        return None
    from kvlint.runtime_checks.bridge import judge
    from kvlint.runtime_checks.captured import read_geometries

    hypotheses = read_assumptions(emitted or beside).hypotheses
    geometries, unread = read_geometries(folder)
    story.unread += unread
    return judge(hypotheses, story, geometries, story.calls)
