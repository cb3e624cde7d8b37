"""Commands that live one in a file, each as `command`, and are imported when asked for, so that
help and documents need neither the parser nor the colours."""

import difflib
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from kvlint.engine.errors import UsageError


class Files(click.Group):
    """The files of a package; a new command is a new file."""

    def __init__(self, *given: Any, package: ModuleType, **more: Any) -> None:
        super().__init__(*given, **more)
        self.package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        modules = pkgutil.iter_modules(self.package.__path__)
        return sorted(module.name for module in modules if not module.name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{self.package.__name__}.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            raise UsageError(f"no such command: {name}; {self.instead(name, known)}")
        return super().resolve_command(ctx, args)

    def instead(self, name: str, known: list[str]) -> str:
        """What may have been meant."""
        close = difflib.get_close_matches(name, known, n=1)
        return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"


class Commands(Files):
    """Those of `kvlint` itself, of which `check` is the one that is left out most easily."""

    def instead(self, name: str, known: list[str]) -> str:
        if Path(name).exists():
            return f"did you mean `kvlint check {name}`?"
        return super().instead(name, known)
