"""`kvlint verify [PATHS] --geometry FILE`: does what the code assumes hold on real buffers?"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvlint.commands._assumptions import read_assumptions
from kvlint.commands._cache import cache_for
from kvlint.commands._configured import configured, items
from kvlint.commands._geometries import read_geometry
from kvlint.commands._needs import demand
from kvlint.commands._progress import progress
from kvlint.commands._stderr import complain
from kvlint.commands._stdout import write
from kvlint.engine.discover import discover, find_project
from kvlint.engine.errors import InternalError, UsageError
from kvlint.engine.registry import all_rules
from kvlint.engine.selection import EVERYTHING, select
from kvlint.findings import Confidence, Status

if TYPE_CHECKING:
    from kvlint.hypotheses import Hypothesis


@click.command(
    epilog="Exit codes: 0 nothing breaks, 1 an assumption breaks on a geometry, 2 wrong usage, an "
    "internal error, or a file that is not understood."
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--geometry",
    "captured",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `kvlint geometry capture` or KVLINT_CAPTURE wrote, or - for standard input. May be "
    "given several times.",
)
@click.option(
    "--assumptions",
    "emitted",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Decide what `kvlint check --emit-assumptions FILE` wrote, instead of checking PATHS.",
)
@click.option("--select", "chosen", multiple=True, metavar="CODES", help="As for `kvlint check`.")
@click.option("--ignore", "ignored", multiple=True, metavar="CODES", help="Likewise.")
@click.option(
    "--min-confidence",
    type=click.Choice([str(confidence) for confidence in Confidence]),
    help="Decide what is at least this sure (high, unless configured), and what is guarded.",
)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
@click.option(
    "--project", type=click.Path(path_type=Path), metavar="DIR", help="As for `kvlint check`."
)
@click.option("--no-cache", is_flag=True, help="Likewise.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path),
    envvar="KVLINT_CACHE_DIR",
    metavar="DIR",
    help="Likewise.",
)
def command(
    *,
    paths: tuple[Path, ...],
    captured: tuple[Path, ...],
    emitted: Path | None,
    chosen: tuple[str, ...],
    ignored: tuple[str, ...],
    min_confidence: str | None,
    output_format: str,
    project: Path | None,
    no_cache: bool,
    cache_dir: Path | None,
) -> int:
    """Decide every assumption in PATHS (default: the working directory) on captured geometry.

    Each holds on a geometry, is broken by it (which region, slot and byte, and by how much), or is
    not exercised: the geometry has no such list, does not say the quantity, or never comes to that
    code. What a comment or a baseline silences is decided like all else.
    """
    from kvlint.reporters.paint import paint_for
    from kvlint.reporters.verification import Verification, render, render_json
    from kvlint.verdicts import verdict

    if emitted is not None and (paths or project):
        raise UsageError("--assumptions FILE stands for PATHS and --project: leave out one of them")
    geometries = [(str(path), read_geometry(path)) for path in captured]
    if emitted is not None:
        found = _read(emitted, items(chosen), items(ignored), min_confidence)
    else:
        found = _checked(
            paths, chosen, ignored, min_confidence, project, cache_dir, no_cache=no_cache
        )
    verdicts = [[verdict(h, geometry) for _, geometry in geometries] for h in found.sure]
    told = Verification(geometries, found.sure, verdicts, found.hidden)
    write(render_json(told) if output_format == "json" else render(told, paint_for(sys.stdout)))
    for line in found.lost:
        complain(line)
    if found.lost:
        return 2
    return 1 if told.broken else 0


@dataclass(frozen=True, slots=True)
class _Found:
    """
    hidden  how many were not sure enough
    lost    a line for each thing that could not be checked
    """

    sure: "Sequence[Hypothesis]"
    hidden: int
    lost: Sequence[str]


def _found(
    hypotheses: "Sequence[Hypothesis]", least: Callable[[str], Confidence], lost: Sequence[str] = ()
) -> _Found:
    """least  how sure one must be in a file"""
    sure = [
        one
        for one in hypotheses
        if one.status is Status.GUARDED or one.confidence.at_least(least(one.places[0].span.path))
    ]
    return _Found(sure, len(hypotheses) - len(sure), lost)


def _read(
    emitted: Path, chosen: Sequence[str], ignored: Sequence[str], min_confidence: str | None
) -> _Found:
    hypotheses = read_assumptions(emitted).hypotheses
    if chosen or ignored:
        selected = {rule.code for rule in select(all_rules(), chosen or [EVERYTHING], ignored)}
        hypotheses = tuple(one for one in hypotheses if one.code in selected)
    least = Confidence(min_confidence or Confidence.HIGH)
    return _found(hypotheses, lambda path: least)


def _checked(
    paths: Sequence[Path],
    chosen: Sequence[str],
    ignored: Sequence[str],
    min_confidence: str | None,
    project: Path | None,
    cache_dir: Path | None,
    *,
    no_cache: bool,
) -> _Found:
    demand("kvlint verify PATHS")

    from kvlint.analysis.vocabulary import use
    from kvlint.engine.check import check_files
    from kvlint.engine.emission import assumptions
    from kvlint.reporters.view import seen_from

    settings = configured(
        all_rules(), chosen=chosen, ignored=ignored, min_confidence=min_confidence
    )
    given = paths or (Path(),)
    root = find_project(given, project)
    files = discover(root, given, settings)
    in_force = settings.for_files(root, files.reported)
    rules = in_force.rules()
    use(in_force.vocabulary)
    cache = cache_for(root, rules, cache_dir, off=no_cache, writes=True)
    failures: list[InternalError] = []
    with progress() as on_progress:
        report = check_files(files, rules, failures.append, on_progress, cache)
    lost = [str(failure) for failure in failures]
    lost += [
        f"{seen_from(Path.cwd(), root, fault.span.path)}:{fault.span.line}: {fault.message}"
        for fault in report.faults
        if fault.costs_file
    ]
    if not report.files:
        lost.append("no Python files under the given paths")
    hypotheses = assumptions(in_force.filtered(report), files.tree).hypotheses
    found = _found(hypotheses, lambda path: in_force.of(path).min_confidence, lost)
    return replace(
        found,
        sure=[one.renamed(lambda path: seen_from(Path.cwd(), root, path)) for one in found.sure],
    )
