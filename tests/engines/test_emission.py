"""`kvlint check --emit-assumptions` on whole released engines."""

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kvlint.hypotheses import Assumptions, Hypothesis, Place
from tests.engines.wheels import unpacked

PACKAGES = ("sglang==0.5.23", "vllm==0.33.0")


@pytest.fixture(scope="module", params=PACKAGES)
def emitted(request, tmp_path_factory):
    """The folder of the wheel, and what is assumed in it."""
    folder, file = unpacked(request.param), tmp_path_factory.mktemp("emitted") / "assumptions.json"
    command = [sys.executable, "-m", "kvlint", "check", ".", "--project", ".", "--exit-zero"]
    command += ["--emit-assumptions", str(file), "--statistics", "--no-cache"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return folder, Assumptions.from_json(file.read_bytes())


def places(one: Hypothesis) -> Iterator[Place]:
    yield from one.places
    yield from one.trace
    for guard in one.guards:
        yield guard.place


def test_what_is_read_back_is_what_was_written(emitted):
    _, assumptions = emitted
    assert len(assumptions.hypotheses) > 10
    assert Assumptions.from_json(assumptions.to_json()) == assumptions
    ids = [one.id for one in assumptions.hypotheses]
    assert len(set(ids)) == len(ids)


def test_every_place_is_in_its_file_and_in_the_definition_that_it_names(emitted):
    folder, assumptions = emitted
    files: dict[str, tuple[list[str], set[tuple[str, int, int]]]] = {}
    for place in (place for one in assumptions.hypotheses for place in places(one)):
        span = place.span
        if span.path not in files:
            text = (folder / span.path).read_text(encoding="utf-8")
            files[span.path] = text.splitlines(), set(definitions(ast.parse(text)))
        lines, known = files[span.path]
        assert 1 <= span.line <= span.end_line <= len(lines), place
        assert 1 <= span.column <= len(lines[span.line - 1]), place
        assert span.end_column <= len(lines[span.end_line - 1]) + 1, place
        around = [name for name, first, last in known if first <= span.line <= last]
        assert place.definition in ("", *around), place
        assert place.definition or not around, place


def definitions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, int, int]]:
    """Qualified name, first and last line, decorators included."""
    for node in ast.iter_child_nodes(tree):
        name = within
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}{node.name}"
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield name, first, node.end_lineno or first
            name += "." if isinstance(node, ast.ClassDef) else ".<locals>."
        yield from definitions(node, name)
