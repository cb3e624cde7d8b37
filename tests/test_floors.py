"""The house has floors: imports go down only, and each floor knows only what it needs."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# From the ground up. A module stands where its longest prefix here says.
FLOORS = [
    "kvlint.geometry",
    "kvlint.assumptions",
    "kvlint.drawing",
    "kvlint.findings",
    "kvlint.hypotheses",
    "kvlint.verdicts",
    "kvlint.tree",
    "kvlint.analysis",
    "kvlint.rule",
    "kvlint.rules",
    "kvlint.engine",
    "kvlint.reporters",
    "kvlint.commands",
    "kvlint.cli",
    "kvlint.__main__",
]
# The other half stands beside the linter, on the floors they share.
RUNTIME = "kvlint.runtime_checks"
SHARED = (
    "kvlint.geometry",
    "kvlint.assumptions",
    "kvlint.drawing",
    "kvlint.hypotheses",
    "kvlint.verdicts",
)
# The commands that start it, that read what it wrote, and that use what it knows of pools.
DOORS = ("kvlint.commands.run", "kvlint.commands.report", "kvlint.commands.geometry.capture")


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package under its import name, read from its one real place."""
    for name, folder in (
        ("kvlint", ROOT / "kvlint"),
        ("kvlint.rules", ROOT / "rules"),
        (RUNTIME, ROOT / "runtime_checks"),
    ):
        links = {ROOT / "kvlint/rules", ROOT / "kvlint/runtime_checks"}
        for path in sorted(folder.rglob("*.py")):
            if not links & set(path.parents):
                parts = path.relative_to(folder).with_suffix("").parts
                dotted = ".".join((name, *parts)).removesuffix(".__init__")
                yield dotted, path


def imports(module: str, path: Path) -> set[str]:
    """The modules imported anywhere in the file, those for types included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module or "")
            if node.module and node.module.startswith("kvlint"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def floor(module: str) -> int:
    """The number of the floor; 0, under all, for `kvlint` itself, which holds the version."""
    matching = [
        number
        for number, prefix in enumerate(FLOORS, 1)
        if module == prefix or module.startswith(f"{prefix}.")
    ]
    return max(matching, default=0)


MODULES = [pytest.param(name, path, id=name) for name, path in modules()]
LINTER = [p for p in MODULES if not str(p.values[0]).startswith(RUNTIME)]
COMPANION = [p for p in MODULES if str(p.values[0]).startswith(RUNTIME)]


@pytest.mark.parametrize(("name", "path"), LINTER)
def test_imports_go_down_only(name, path):
    above = {target for target in imports(name, path) if floor(target) > floor(name)}
    assert not above
    assert name == "kvlint" or floor(name), f"{name} stands on no floor"


@pytest.mark.parametrize(("name", "path"), LINTER)
def test_the_linter_needs_its_three_dependencies_and_never_the_companion(name, path):
    targets = imports(name, path)
    assert name in DOORS or not {target for target in targets if target.startswith(RUNTIME)}
    foreign = {target.partition(".")[0] for target in targets} - sys.stdlib_module_names
    assert foreign <= {"kvlint", "libcst", "click", "rich"}


@pytest.mark.parametrize(("name", "path"), COMPANION)
def test_the_companion_knows_geometry_and_assumptions_of_the_linter(name, path):
    own = {target for target in imports(name, path) if target.startswith("kvlint.")}
    assert not {t for t in own if not t.startswith((RUNTIME, *SHARED))}
    assert "libcst" not in {t.partition(".")[0] for t in imports(name, path)}


def test_the_parser_is_known_to_the_analysis_alone():
    users = {name for name, path in modules() if "libcst" in roots(imports(name, path))}
    assert {name for name in users if not name.startswith("kvlint.analysis")} == set()


def roots(targets: set[str]) -> set[str]:
    return {target.partition(".")[0] for target in targets}
