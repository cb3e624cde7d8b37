"""What is built is what is meant: the wheel comes from the sdist, and both hold all of it."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import kvlint
from tests.building import build

ROOT = Path(__file__).parent.parent
LINKED = ("rules", "runtime_checks")


def folders_with_modules() -> set[str]:
    """The packages that there are on disk, under their import names."""
    found = set()
    for path in [path for top in ("kvlint", *LINKED) for path in (ROOT / top).rglob("*")]:
        parts = path.relative_to(ROOT).parts
        if parts[0] in LINKED:
            parts = ("kvlint", *parts)
        elif parts[1] in LINKED:
            continue
        if path.suffix in (".py", ".toml") and "__pycache__" not in parts:
            found.add(".".join(parts[:-1]))
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sdist and wheel."""
    return build(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    assert path.name == f"kvlint_geometry-{kvlint.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(path)


def test_the_packages_listed_are_the_folders_there_are():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert set(table["packages"]) == folders_with_modules()


def test_the_wheel_holds_one_import_package(wheel):
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"kvlint", f"kvlint_geometry-{kvlint.__version__}.dist-info"}


def test_the_wheel_holds_every_file_of_the_packages(wheel):
    expected = {
        f"kvlint/{path.relative_to(ROOT / 'kvlint').as_posix()}"
        for pattern in ("*.py", "*.toml", "py.typed")
        for path in (ROOT / "kvlint").rglob(pattern)
    }
    for folder in LINKED:
        expected |= {
            f"kvlint/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / folder).rglob("*.py")
        }
    assert {name for name in wheel.namelist() if name.startswith("kvlint/")} == expected
    assert [name for name in expected if name.startswith("kvlint/analysis/vocabulary/")]


def test_the_wheel_names_its_command_and_its_three_dependencies(wheel):
    folder = f"kvlint_geometry-{kvlint.__version__}.dist-info"
    entry_points = wheel.read(f"{folder}/entry_points.txt").decode()
    assert entry_points.split("\n")[:2] == ["[console_scripts]", "kvlint = kvlint.cli:main"]
    metadata = wheel.read(f"{folder}/METADATA").decode().splitlines()
    needed = [line for line in metadata if line.startswith("Requires-Dist") and "extra" not in line]
    assert {line.split()[1].split(">")[0] for line in needed} == {"libcst", "click", "rich"}


def test_the_wheel_runs_away_from_the_tree(wheel, tmp_path):
    wheel.extractall(tmp_path)
    script = "import kvlint, sys; print(kvlint.__file__); from kvlint.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", script, "rules"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(str(tmp_path.resolve()))


def test_the_sdist_holds_what_the_tests_need(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {
        ".pre-commit-hooks.yaml",
        "LICENSE",
        "Makefile",
        "README.md",
        "rules/__init__.py",
        "tests/test_wheel.py",
    }
