"""`kvlint check [PATHS]`: options in, a report out; the work is done by kvlint.engine."""

from collections.abc import Sequence
from pathlib import Path

import click

from kvlint.analysis.vocabulary import use
from kvlint.commands._cache import cache_for
from kvlint.commands._configured import configured, options
from kvlint.commands._needs import demand
from kvlint.commands._outputs import DEFAULT, outputs, stored, writable, write_all
from kvlint.commands._progress import progress
from kvlint.commands._silence import Run, answers, project_of
from kvlint.commands._stderr import complain, complain_of
from kvlint.commands._stdin import held
from kvlint.engine.check import check_files
from kvlint.engine.discover import discover, discover_held, find_project
from kvlint.engine.errors import FileError, InternalError, RuleError, UsageError
from kvlint.engine.registry import all_rules
from kvlint.findings import Confidence
from kvlint.reporters import FORMATS
from kvlint.reporters.view import Choice, Place, view

# What `--show-guarded` stands for when it stands alone.
_EVERYWHERE = "*"


class _Command(click.Command):
    """Lets `--show-guarded` stand alone: click would take the path after it for its value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        options = [f"{a}={_EVERYWHERE}" if a == "--show-guarded" else a for a in args[:end]]
        return super().parse_args(ctx, options + args[end:])


@click.command(cls=_Command)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--select",
    "chosen",
    multiple=True,
    metavar="CODES",
    help="Rules to run: codes, how they begin, or names, comma separated, or ALL (the default). "
    "A preview rule runs when its full code or name is given.",
)
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="CODES",
    help="Rules to leave out. Where both lists match, the longer code wins.",
)
@click.option(
    "--output-format",
    metavar=f"[{'|'.join(FORMATS)}]",
    help=f"How to write the findings to standard output.  [default: {DEFAULT}]",
)
@click.option(
    "--output",
    "targets",
    multiple=True,
    metavar="FORMAT:TARGET",
    help="Write the findings in FORMAT to the file TARGET, or with - to standard output. May be "
    "given several times; --output-format F is --output F:-.",
)
@click.option(
    "--min-confidence",
    type=click.Choice([str(confidence) for confidence in Confidence]),
    help="Show what is at least this sure (high, unless configured). What rests on names alone, "
    "or on a value that could not be resolved, is medium.",
)
@click.option(
    "--show-guarded",
    metavar="[=PATH:LINE]",
    help="Show what the code settles, too, and where it does. With =PATH:LINE show only what "
    "is known at that line, whatever it is: why is it silent?",
)
@click.option("--statistics", "counts", is_flag=True, help="Show counts by rule, not findings.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when there are findings.")
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    help="The folder whose code is known; default: the nearest one above PATHS that has "
    "pyproject.toml, kvlint.toml or .git, else the working directory.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report only what FILE does not know already.",
)
@click.option(
    "--write-baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what is found to FILE, or bring FILE up to it, for --baseline to know.",
)
@click.option(
    "--since",
    metavar="REV",
    help="Report only what has to do with lines that changed since a git revision.",
)
@click.option(
    "--emit-assumptions",
    "emitted",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write every assumption in PATHS to FILE as JSON, shown or not, guarded or not: for "
    "`kvlint verify` and `kvlint report`.",
)
@options
@click.option("--no-cache", is_flag=True, help="Ask everything anew, and remember nothing.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path),
    envvar="KVLINT_CACHE_DIR",
    metavar="DIR",
    help="Where to remember what was found; default: .kvlint_cache in the project.",
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    paths: tuple[Path, ...],
    chosen: tuple[str, ...],
    ignored: tuple[str, ...],
    output_format: str | None,
    targets: tuple[str, ...],
    min_confidence: str | None,
    show_guarded: str | None,
    counts: bool,
    exit_zero: bool,
    project: Path | None,
    baseline: Path | None,
    write_baseline: Path | None,
    since: str | None,
    emitted: Path | None,
    excluded: tuple[str, ...],
    force_exclude: bool,
    max_file_size: str | None,
    config: Path | None,
    isolated: bool,
    stdin_name: Path | None,
    no_cache: bool,
    cache_dir: Path | None,
) -> None:
    """Report the assumptions about buffer geometry in PATHS (default: the working directory).

    PATHS choose what is reported; what is known is the whole project around them.
    """
    demand("kvlint check")
    settings = configured(
        all_rules(),
        chosen=chosen,
        ignored=ignored,
        excluded=excluded,
        force_exclude=force_exclude,
        min_confidence=min_confidence,
        max_file_size=max_file_size,
        config=config,
        isolated=isolated,
    )
    asked = _asked(show_guarded, paths)
    on_disk = (("--show-guarded=PATH:LINE", asked is not None), ("--since", since is not None))
    text = held(paths, stdin_name, on_disk)
    given = (text.folder,) if text else paths or ((asked[0],) if asked else (Path(),))
    if baseline is not None and write_baseline is not None:
        raise UsageError("--write-baseline brings FILE up to date by itself: leave out --baseline")
    root = find_project(given, project or project_of(write_baseline or baseline))
    if text is not None:
        files = discover_held(root, text.path, text.data, settings)
    else:
        files = discover(root, [asked[0]] if asked else given, settings)
    in_force = settings.for_files(root, files.reported)
    rules = in_force.rules()
    use(in_force.vocabulary)
    if baseline is None and write_baseline is None:
        baseline = in_force.baseline
    answered = answers(root, baseline, write_baseline, since)
    wanted = outputs(targets, output_format, counts)
    if emitted is not None:
        if str(emitted) == "-":
            raise UsageError("--emit-assumptions takes a file: findings go to standard output")
        writable(emitted)
    cache = cache_for(root, rules, cache_dir, off=no_cache, writes=text is None)

    failures: list[InternalError] = []
    with progress() as on_progress:
        report = check_files(files, rules, failures.append, on_progress, cache)
    report = in_force.filtered(report)
    choice = Choice(
        minima=in_force.minima(report),
        guarded=show_guarded is not None,
        place=_place(asked, root) if asked else None,
    )
    failed = {failure.code for failure in failures if isinstance(failure, RuleError)}
    lost = {failure.path for failure in failures if isinstance(failure, FileError)}
    run = Run(
        files.tree,
        all_rules(),
        lambda path: (
            in_force.codes(path) - failed if files.tells_of(path) and path not in lost else ()
        ),
        [] if asked else [text.path] if text else given,
    )
    report = answered.applied(report, run, choice.counts)
    told = [str(failure) for failure in failures]
    names = dict.fromkeys(files.reported, str(text.path)) if text else {}
    seen = view(
        report,
        choice,
        root,
        Path.cwd(),
        overlay=files.tree.overlay,
        names=names,
        rules=rules,
        failures=told,
    )

    unwritten = write_all(wanted, seen, counts)
    if emitted is not None:
        from kvlint.engine.emission import assumptions

        unwritten += stored(emitted, assumptions(report, files.tree).to_json())
    for folder in report.skipped:
        complain(f"skipped {folder}")
    for notice in (*files.notices, *in_force.notices(), *report.notices):
        complain(notice)
    if not report.files and not report.skipped:
        complain("no Python files under the given paths")
    elif report.files and not rules:
        complain("no rule is selected for these files")
    for failure in failures:
        complain_of(failure.__cause__ or failure, str(failure))
    for line in unwritten:
        complain(line)
    if failures or unwritten:
        ctx.exit(2)
    ctx.exit(1 if seen.failed and not exit_zero else 0)


def _asked(show_guarded: str | None, paths: Sequence[Path]) -> tuple[Path, int] | None:
    """The file and the line of `--show-guarded=PATH:LINE`, None without one."""
    if show_guarded is None:
        return None
    if show_guarded == _EVERYWHERE:
        for given in paths:
            place = None if given.exists() else _path_and_line(str(given))
            if place and place[0].is_file():
                raise UsageError(f"no such file: {given}; did you mean --show-guarded={given}?")
        return None
    place = _path_and_line(show_guarded)
    if place is None:
        raise UsageError(f"--show-guarded takes PATH:LINE, not {show_guarded!r}")
    path, line = place
    if not path.is_file():
        raise UsageError(f"no such file: {path}")
    lines = len(path.read_bytes().splitlines())
    if line > lines:
        raise UsageError(f"{path} has {lines} {'line' if lines == 1 else 'lines'}, not {line}")
    return place


def _path_and_line(text: str) -> tuple[Path, int] | None:
    path, _, line = text.rpartition(":")
    if not path or not (line.isascii() and line.isdigit()) or int(line) < 1:
        return None
    return Path(path), int(line)


def _place(asked: tuple[Path, int], root: Path) -> Place:
    path, line = asked
    return Place(path.resolve().relative_to(root).as_posix(), line)
