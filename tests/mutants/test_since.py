"""Wherever a guard is taken away, `--since` reports all that this brings about."""

import libcst as cst
import pytest

from kvlint.engine.changes import changes_since
from kvlint.engine.check import check
from kvlint.engine.since import changed_only
from kvlint.reporters.view import Choice
from kvlint.tree import Tree
from tests.mutants.operators import OPERATORS, count_places, mutate
from tests.mutants.samples import GUARDED, rules
from tests.repository import Repository


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    made = Repository.new(tmp_path_factory.mktemp("since").resolve())
    for path in GUARDED:
        made.write(f"{path.stem}/code.py", path.read_bytes())
    made.commit()
    return made


@pytest.mark.parametrize("path", GUARDED, ids=lambda path: path.stem)
def test_what_a_mutant_breaks_has_to_do_with_its_change(repository, path):
    root, text = repository.root / path.stem, path.read_text(encoding="utf-8")
    module = cst.parse_module(text)
    for operator in OPERATORS:
        for number in range(count_places(module, operator)):
            repository.write(f"{path.stem}/code.py", mutate(module, operator, number))
            report = check(root, [root], rules(text))
            shown = [f for f in report.findings if Choice().shows(f)]
            kept = changed_only(report, changes_since(root, "HEAD"), Tree(root)).findings
            assert [f for f in shown if f not in kept] == [], operator.name
