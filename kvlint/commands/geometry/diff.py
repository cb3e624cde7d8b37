"""`kvlint geometry diff A B`: what a dtype, a version or an option changed."""

import sys
from pathlib import Path

import click

from kvlint.commands._geometries import read_geometry
from kvlint.commands._stdout import write


@click.command(
    short_help="What changed between two geometries.",
    epilog="Exit codes: 0 no difference, 1 they differ, 2 wrong usage, or a file that is no "
    "geometry.",
)
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
def command(a: Path, b: Path, output_format: str) -> int:
    """Compare the regions of A and B: what changed, with both values, and how many descriptors of
    a list come before each region.

    Regions are the same by name, else by list, layer and role. Addresses are another thing in each
    process and not compared, overlap is.
    """
    import json

    from kvlint.drawing import changes
    from kvlint.drawing.comparing import difference
    from kvlint.reporters.paint import paint_for, printable

    sides = [read_geometry(a), read_geometry(b)]
    names = [printable(str(a)), printable(str(b))]
    found = difference(*sides)
    if output_format == "json":
        write([json.dumps(changes.data(found, names, sides), indent=2)])
    else:
        labelled = [
            ", ".join(part for part in (name, side.engine, side.process) if part)
            for name, side in zip(names, sides, strict=True)
        ]
        write(changes.lines(found, labelled, paint_for(sys.stdout)))
    return 1 if found.found else 0
