"""`kvlint geometry show FILE`: the regions of one geometry as a table."""

import sys
from pathlib import Path

import click

from kvlint.commands._geometries import read_geometry
from kvlint.commands._stdout import write


@click.command(
    short_help="The regions of a geometry as a table.",
    epilog="Exit codes: 0 shown, 2 wrong usage, or a file that is no geometry.",
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--each", is_flag=True, help="A line for each region, also where some are alike.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
def command(file: Path, each: bool, output_format: str) -> None:
    """Show the regions of FILE (- is standard input) by list: slots, strides, transfer lengths,
    tails, and where the descriptors of each region start. At the end, what is remarkable."""
    import json

    from kvlint.drawing import tables
    from kvlint.reporters.paint import paint_for, printable

    geometry, name = read_geometry(file), printable(str(file))
    if output_format == "json":
        write([json.dumps(tables.data(geometry, name), indent=2)])
    else:
        write(tables.table(geometry, name, paint_for(sys.stdout), fold=not each))
