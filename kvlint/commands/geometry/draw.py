"""`kvlint geometry draw FILE [FILE]`: regions to scale, and where an index set goes."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvlint.commands._geometries import read_geometry
from kvlint.commands._outputs import put
from kvlint.commands._stdout import write
from kvlint.engine.errors import UsageError

if TYPE_CHECKING:
    from kvlint.drawing.places import List, Way
    from kvlint.geometry import Geometry

MOST_SLOTS: Final = 65_536
MOST_INDICES: Final = 1_000_000


@click.command(
    short_help="Regions to scale, and where an index set goes.",
    epilog="Exit codes: 0 drawn, 2 wrong usage, or a file that is no geometry.",
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("other", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--svg",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Write the picture as SVG to OUT (- is standard output) instead of drawing it here.",
)
@click.option("--of", "chosen", metavar="LIST", help="Draw this list of regions only.")
@click.option("--each", is_flag=True, help="A row for each region, also where some are alike.")
@click.option(
    "--slots",
    metavar="SLOTS",
    help="Draw where these slots of every region of the list go: 5,6,40-42.",
)
@click.option(
    "--stride",
    metavar="own|first|least|N",
    help="The index of region i, slot p is i * S + p, and S is N, or the slots of the first "
    "region (default), or the least of all; own: cumulative starts.",
)
@click.option(
    "--list",
    "counts",
    metavar="own|first|least|N",
    help="With how many descriptors for each region the list was made (default: own slots).",
)
@click.option(
    "--group",
    metavar="GROUP",
    help="Only slots of this group's regions are meant, where the regions of a list have groups.",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json: where each index of --slots goes.",
)
def command(
    *,
    file: Path,
    other: Path | None,
    svg: Path | None,
    chosen: str | None,
    each: bool,
    slots: str | None,
    stride: str | None,
    counts: str | None,
    group: str | None,
    output_format: str,
) -> None:
    """Draw the regions of FILE, or of two files side by side, all to one scale.

    With --slots, also where an index set is meant to go, and where it goes.
    """
    from kvlint.drawing.scene import UNFOLDED, scene

    paths = [file] if other is None else [file, other]
    sides = [read_geometry(path) for path in paths]
    lists = _lists(sides, paths, chosen, slots)
    sets = _index_sets(sides, lists, slots, stride, counts, group)
    if output_format == "json":
        if not sets or svg:
            raise UsageError("--output-format json says where an index set goes: give --slots")
        _write_json(paths, sets)
        return
    if svg:
        from kvlint.drawing import svg as drawing

        picture = drawing.layout(
            *sides, titles=_titles(sides, paths), lists=lists, index_sets=sets, each=each
        )
        put(svg, drawing.document(picture).splitlines())
        return
    from kvlint.drawing import routes, terminal
    from kvlint.drawing.places import marks
    from kvlint.reporters.paint import paint_for

    paint = paint_for(sys.stdout)
    drawn = scene(
        *sides,
        titles=_titles(sides, paths),
        lists=lists,
        marks=[mark for side, one in enumerate(sets) for mark in marks(one, side)],
        unfolded=1 << 40 if each else UNFOLDED,
    )
    signs = terminal.signs_for(sys.stdout.encoding)
    width = shutil.get_terminal_size((100, 24)).columns
    write(terminal.lines(drawn, width, signs, paint))
    for letter, one in zip("AB", sets, strict=False):
        write(["", *([letter] if other else []), *routes.lines(one, paint)])


def _titles(sides: "list[Geometry]", paths: list[Path]) -> list[str]:
    """What the files say of themselves, and their names where that is nothing, or the same."""
    from kvlint.reporters.paint import printable

    labels = [", ".join(text for text in (g.engine, g.process) if text) for g in sides]
    same = len(set(labels)) < len(labels)
    named = zip(labels, paths, strict=True)
    return [
        ", ".join(text for text in (label, printable(str(path))) if text)
        if same or not label
        else label
        for label, path in named
    ]


def _lists(
    sides: "list[Geometry]", paths: list[Path], chosen: str | None, slots: str | None
) -> list[str] | None:
    """The one that is drawn, by its name on each side; None for all. An index set is of one."""
    from kvlint.drawing.pairing import aligned

    known = [list(dict.fromkeys(region.list for region in side.regions)) for side in sides]
    if chosen is None and slots is not None:
        if not known[0]:
            raise UsageError(f"{paths[0]}: there is no region of which --slots could be")
        chosen = known[0][0]
    if chosen is None:
        return None
    called = aligned(*sides)[1] if len(sides) == 2 else {}
    theirs = next((there for there, here in called.items() if here == chosen), chosen)
    found = [chosen, theirs][: len(sides)]
    for name, names, path in zip(found, known, paths, strict=True):
        if name not in names:
            there = ", ".join(names) or "no region"
            raise UsageError(f"{path}: no list {name}; there is {there}")
    return found


def _index_sets(
    sides: "list[Geometry]",
    lists: list[str] | None,
    slots: str | None,
    stride: str | None,
    counts: str | None,
    group: str | None,
) -> "list[List]":
    from kvlint.drawing.places import IndexSet, List

    if slots is None:
        for option, given in (("--stride", stride), ("--list", counts), ("--group", group)):
            if given is not None:
                raise UsageError(f"{option} says how an index set is made: give --slots, too")
        return []
    wanted = IndexSet(
        _slots(slots), _way("--stride", stride, "first"), _way("--list", counts, "own"), group
    )
    found = [List(side, name, wanted) for side, name in zip(sides, lists or (), strict=True)]
    for one in found:
        if not one.meant:
            groups = ", ".join(dict.fromkeys(r.group for r in one.regions if r.group))
            raise UsageError(f"list {one.name} has no group {group}; there is {groups or 'none'}")
    indices = sum(len(one.meant) for one in found) * len(wanted.slots)
    if indices > MOST_INDICES:
        raise UsageError(
            f"--slots makes {indices:,} indices here, at most {MOST_INDICES:,} are drawn"
        )
    return found


def _slots(text: str) -> tuple[int, ...]:
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        low = _number(first)
        high = _number(last) if dash else low
        if low is None or high is None or high < low:
            raise UsageError(f"--slots takes numbers and ranges as in 5,6,40-42, not {part!r}")
        if high - low >= MOST_SLOTS or len(found) > MOST_SLOTS:
            raise UsageError(f"--slots takes at most {MOST_SLOTS:,} slots")
        found |= dict.fromkeys(range(low, high + 1))
    return tuple(found)


def _way(option: str, text: str | None, default: "Way") -> "Way":
    if text is None:
        return default
    if text in ("own", "first", "least"):
        return text  # type: ignore[return-value]
    if (count := _number(text)) is None or count == 0:
        raise UsageError(f"{option} takes own, first, least or a number of slots, not {text!r}")
    return count


def _number(text: str) -> int | None:
    """Of at most 64 bits."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    return int(text)


def _write_json(paths: list[Path], sets: "list[List]") -> None:
    import json

    from kvlint.drawing import routes

    found = [{"file": str(path), **routes.data(one)} for path, one in zip(paths, sets, strict=True)]
    write([json.dumps({"index_sets": found}, indent=2)])
