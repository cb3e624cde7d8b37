"""Where the findings go: `--output FORMAT:TARGET`, as often as there are readers."""

import difflib
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvlint.commands._stderr import say
from kvlint.commands._stdout import write
from kvlint.engine.errors import UsageError
from kvlint.reporters import DATA, FORMATS, reporter
from kvlint.reporters.paint import Paint, paint_for, plain
from kvlint.reporters.summary import last_line
from kvlint.reporters.view import View

DEFAULT = "full"


@dataclass(frozen=True, slots=True)
class Output:
    """One format in one place; without a target it is standard output."""

    format: str
    target: Path | None = None


def outputs(given: Sequence[str], output_format: str | None, counts: bool) -> list[Output]:
    """What the options ask for. `counts`: statistics are wanted, which few formats have.

    Raises UsageError for what cannot be written, as far as that can be known beforehand.
    """
    found = [_parsed(text) for text in given]
    if output_format is not None or not found:
        found.append(Output(_known(output_format or DEFAULT)))
    if sum(output.target is None for output in found) > 1:
        raise UsageError("only one format can go to standard output")
    targets: set[Path] = set()
    for output in found:
        if counts and output.format in DATA and output.format != "json":
            raise UsageError(f"--statistics comes as full, concise or json, not {output.format}")
        if output.target is not None:
            real = writable(output.target)
            if real in targets:
                raise UsageError(f"two outputs go to {output.target}")
            targets.add(real)
    return found


def write_all(found: Sequence[Output], view: View, counts: bool) -> list[str]:
    """Each output where it belongs. Returns a line for every target that could not be written;
    what stood there before is untouched."""
    failed = []
    # Files first: whoever reads standard output may leave early.
    for output in found:
        if output.target is not None:
            failed += stored(output.target, *_lines(output.format, view, counts, plain))
    for output in found:
        if output.target is None:
            _print(output.format, view, counts)
    if not any(output.target is None and output.format not in DATA for output in found):
        # A format for programs has no place for what is hidden, and silence is no verdict.
        say(last_line(view))
    return failed


def _parsed(text: str) -> Output:
    name, _, target = text.partition(":")
    output_format = _known(name)
    if not target:
        raise UsageError(f"--output takes FORMAT:TARGET, as {name}:FILE or {name}:-")
    return Output(output_format, None if target == "-" else Path(target))


def _known(name: str) -> str:
    if name in FORMATS:
        return name
    close = difflib.get_close_matches(name, FORMATS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(FORMATS)}"
    raise UsageError(f"unknown format {name!r}; {hint}")


def writable(target: Path) -> Path:
    """The file that the target stands for. Raises UsageError where it cannot be written."""
    try:
        real = target.resolve()
        folder = real.parent
        if target.is_dir():
            raise UsageError(f"cannot write {target}: it is a folder")
        if not folder.is_dir():
            raise UsageError(f"cannot write {target}: there is no folder {folder}")
        # A file is replaced, which is a matter of its folder, too.
        needed = {target} if _is_device(target) else {folder, target if target.exists() else folder}
        if not all(os.access(path, os.W_OK) for path in needed):
            raise UsageError(f"cannot write {target}: Permission denied")
    except (OSError, RuntimeError) as error:  # a name too long, a loop of links
        reason = error.strerror if isinstance(error, OSError) else "a loop of links"
        raise UsageError(f"cannot write {target}: {reason}") from None
    return real


def _lines(name: str, view: View, counts: bool, paint: Paint) -> Iterator[str]:
    if not counts:
        return reporter(name).render(view, paint)
    from kvlint.reporters import statistics

    return statistics.render_json(view) if name in DATA else statistics.render(view, paint)


def _print(name: str, view: View, counts: bool) -> None:
    if name in DATA and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    write(_lines(name, view, counts, paint_for(sys.stdout)))


def put(target: Path, lines: Iterable[str]) -> None:
    """To the file, as a whole or not at all, or with - to standard output. Raises UsageError."""
    if str(target) == "-":
        write(lines)
        return
    for problem in stored(target, *lines):
        raise UsageError(problem)


def stored(target: Path, *lines: str) -> list[str]:
    """Writes the file; a line where that cannot be done, and what stood there is untouched."""
    try:
        store(target, lines)
    except OSError as error:
        return [f"cannot write {target}: {error.strerror or error}"]
    return []


def store(target: Path, lines: Iterable[str]) -> None:
    """The file as a whole or not at all: it is written under another name and then renamed."""
    text = "".join(f"{line}\n" for line in lines)
    data = text.encode("utf-8", "backslashreplace")
    if _is_device(target):
        target.write_bytes(data)
        return
    real = target.resolve()  # a link goes on to point where it points
    beside = real.with_name(f".kvlint-{os.urandom(8).hex()}")
    try:
        with beside.open("xb") as file:
            file.write(data)
        if real.exists():
            beside.chmod(real.stat().st_mode & 0o7777)
        beside.replace(real)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _is_device(target: Path) -> bool:
    """Whether the name leads to something open already, such as /dev/stdout: to rename a file to
    it would put the file in its place."""
    return (target.exists() and not target.is_file()) or target.absolute().parts[1:2] == ("dev",)
