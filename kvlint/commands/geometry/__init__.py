"""`kvlint geometry`: the files of this package."""

import sys

import click

from kvlint.commands._group import Files


@click.command(cls=Files, package=sys.modules[__name__])
def command() -> None:
    """Geometry of pools: where the regions of a process lie, and how they are cut into slots."""
