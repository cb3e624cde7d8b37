"""The tree as it is shipped: built from a copy, since a build leaves traces in its tree."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNTRACKED = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"
)


def build(folder: Path, *what: str) -> Path:
    """A folder below `folder` with what `python -m build` makes; of an sdist and then of its
    wheel, unless `what` asks for one of them."""
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=UNTRACKED)
    command = [sys.executable, "-m", "build", "--no-isolation", *what]
    ran = subprocess.run(
        [*command, "--outdir", str(tree / "dist"), str(tree)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return tree / "dist"


def install(folder: Path) -> Path:
    """A folder below `folder` with the distribution installed in it: packages, metadata and
    entry points, as an installer unpacks them."""
    (wheel,) = build(folder, "--wheel").glob("*.whl")
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site
