"""The commands of examples/investigation/README.md, run again.

    python -m tests.engines.investigation [--write]

Exits with 1 where one prints something else than the document shows. `--write` brings the document
up to date instead, and what was captured of pools, where more than addresses has changed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kvlint.geometry import Geometry
from tests.building import install
from tests.engines.environment import Engine, environment
from tests.engines.transcripts import Command, lasting, rewritten
from tests.engines.wheels import unpacked

EXAMPLE = Path(__file__).parents[2] / "examples/investigation"
README = EXAMPLE / "README.md"
VERSIONS = ("0.5.13", "0.5.21", "0.5.22")
KINDS = ("fp8", "bf16", "bf16_in_fp8_bytes")


def captured(version: str, kind: str) -> Path:
    return EXAMPLE / "geometry" / f"sglang-{version}-{kind}.json"


class Workplace:
    """A copy of the example's folder, with unpacked wheels in it, as the document has it."""

    def __init__(self, folder: Path, engine: Callable[[str], Engine]) -> None:
        self.folder, self._engine = folder / "investigation", engine
        ignored = shutil.ignore_patterns("__pycache__", "README.md")
        shutil.copytree(EXAMPLE, self.folder, ignore=ignored)
        self._bin = folder / "bin"
        self._bin.mkdir()
        for version in VERSIONS:
            _link(unpacked(f"sglang=={version}"), self.folder / f"sglang-{version}")

    def run(self, command: Command) -> str:
        """What it prints; the exit status is nobody's, as in a document."""
        variables = {name: value for name, value in os.environ.items() if "KVLINT" not in name}
        python = Path(sys.executable)
        if command.within is not None:
            engine = self._engine(command.within.replace(" ", "=="))
            variables, python = engine.environment(NIXL_LOG_LEVEL="WARN"), engine.python
        ran = subprocess.run(
            ["sh", "-c", command.line],
            cwd=self.folder,
            env=variables | {"PATH": f"{self._programs(python)}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=240,
        )
        said = [line for line in ran.stderr.splitlines(True) if line.startswith("kvlint: ")]
        said = [line for line in said if not line.startswith("kvlint: armed: ")]
        return self._placed(ran.stdout + "".join(said))

    def _placed(self, printed: str) -> str:
        """As where the engine is imported from the wheel beside the document."""
        for version in VERSIONS:
            name = f"sglang-{version}"
            printed = printed.replace(f"{unpacked(name.replace('-', '=='))}/", f"{name}/")
        return printed.replace(f"{self.folder}/", "")

    def _programs(self, python: Path) -> Path:
        """A folder with `python` and `kvlint`."""
        folder = self._bin / python.as_posix().strip("/").replace("/", "-")
        if not folder.exists():
            folder.mkdir()
            for name, what in (("python", ""), ("kvlint", "-m kvlint ")):
                (folder / name).write_text(f'#!/bin/sh\nexec {python} {what}"$@"\n')
                (folder / name).chmod(0o755)
        return folder


def _link(wheel: Path, folder: Path) -> None:
    """Its modules; links, since kvlint tells files by where they are."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:  # another file system
            shutil.copy2(source, target)

    def others(folder: str, names: list[str]) -> list[str]:
        here = Path(folder)
        return [name for name in names if not (name.endswith(".py") or (here / name).is_dir())]

    shutil.copytree(wheel, folder, copy_function=link, ignore=others)


def without_addresses(text: str | bytes) -> Geometry:
    found = Geometry.from_json(text)
    return replace(found, regions=tuple(replace(region, address=0) for region in found.regions))


def recapture(engine: Engine, folder: Path) -> list[int]:
    """The pools of that release, captured in one process: a file a kind in the folder. Gives back
    the first and the last page that a request may get."""
    found: list[int] = engine.result("investigation.py", str(folder), *KINDS)
    return found


def main() -> None:
    parser = argparse.ArgumentParser("investigation", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="bring what is shown up to date")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as temporary:
        folder, python = Path(temporary), environment()
        kvlint = install(folder)

        def engine(package: str) -> Engine:
            return Engine.of(package, python, kvlint)

        for version in VERSIONS if write else ():
            recapture(engine(f"sglang=={version}"), folder)
            for kind in KINDS:
                new, old = (folder / f"{kind}.json").read_bytes(), captured(version, kind)
                if not old.exists() or without_addresses(new) != without_addresses(
                    old.read_bytes()
                ):
                    old.write_bytes(new)
        differs = False
        workplace = Workplace(folder, engine)

        def again(command: Command) -> str:
            nonlocal differs
            printed = workplace.run(command)
            if lasting(printed) != command.lasting:
                differs = True
                print(f"$ {command.line}\n{printed}", flush=True)
            return printed

        text = README.read_text(encoding="utf-8")
        new = rewritten(text, again)
    if write:
        README.write_text(new, encoding="utf-8")
    sys.exit(differs and not write)


if __name__ == "__main__":
    main()
