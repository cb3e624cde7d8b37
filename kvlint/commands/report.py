"""`kvlint report`: what the processes of a run found, with the transfers around it, where pages of
requests changed, and what that says of the hypotheses about their code."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvlint.commands._assumptions import read_assumptions
from kvlint.commands._outputs import put
from kvlint.commands._stderr import complain
from kvlint.commands._stdout import write
from kvlint.engine.errors import UsageError

if TYPE_CHECKING:
    from kvlint.runtime_checks.page.given import Given
    from kvlint.runtime_checks.reading import Story

BESIDE = "assumptions.json"
STDOUT = Path("-")


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
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write all of it, with layouts and a time line, as one page for a browser (- is standard "
    "output).",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    help="Default: text; with --html one line.",
)
def command(
    folder: Path, emitted: Path | None, page: Path | None, output_format: str | None
) -> int:
    """Show the violations in DIR, where `kvlint run --report DIR` has written them, and what the
    run says of the assumptions in the code."""
    from kvlint.runtime_checks.reading import is_evidence, read

    if page == STDOUT and output_format is not None:
        raise UsageError("--html - and --output-format both go to standard output: name a file")
    try:
        if not is_evidence(folder):
            raise UsageError(f"no evidence in {folder}: `kvlint run --report {folder}` writes it")
        story = read(folder)
        run = _run(folder, emitted, story)
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from None
    for problem in story.unread:
        complain(problem)
    if page is not None:
        _store(page, run)
    if page != STDOUT:
        write(_lines(run, output_format or ("text" if page is None else "sentence")))
    refuted = any(one.answer == "refuted" for one in run.judged or ())
    return 1 if story.violations or story.changes.found or refuted else 0


def _lines(run: "Given", output_format: str) -> Iterable[str]:
    from kvlint.runtime_checks.page.summary import sentence
    from kvlint.runtime_checks.telling import tell, tell_as_json

    match output_format:
        case "json":
            return tell_as_json(run.story, run.judged)
        case "sentence":
            return ["".join(sentence(run))]
        case _:
            return tell(run.story, run.judged)


def _store(target: Path, run: "Given") -> None:
    """The page. Raises UsageError."""
    from kvlint.runtime_checks.page.document import page

    put(target, [page(run)])
    if target != STDOUT:
        complain(f"the page is {target}")


def _run(folder: Path, emitted: Path | None, story: "Story") -> "Given":
    """All that is known of the run. Raises OSError and UsageError."""
    from kvlint.runtime_checks.bridge import judge
    from kvlint.runtime_checks.captured import read_geometries
    from kvlint.runtime_checks.page.given import Given
    from kvlint.runtime_checks.reading import armed_processes

    beside = folder / BESIDE
    if emitted is None and (beside.is_symlink() or beside.exists()):
        emitted = beside
    geometries, unread = read_geometries(folder)
    story.unread += unread
    judged = None
    if emitted is not None:
        hypotheses = read_assumptions(emitted).hypotheses
        judged = judge(hypotheses, story, geometries, story.calls)
    source = "" if emitted is None else str(emitted)
    return Given(
        folder.absolute().name,
        story,
        armed_processes(folder),
        geometries,
        judged=judged,
        source=source,
    )
