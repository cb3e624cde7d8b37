"""Taking a guard away is found where the guard was needed; with it nothing is shown."""

import libcst as cst
import pytest

from tests.mutants.operators import OPERATORS, count_places, mutate
from tests.mutants.samples import FAULTY, GUARDED, marked, places, shown

FILES = {path.stem: path.read_text(encoding="utf-8") for path in GUARDED}
MUTANTS = [
    pytest.param(name, operator, number, id=f"{name}-{operator.__name__}-{number}")
    for name, text in FILES.items()
    for operator in OPERATORS
    for number in range(count_places(cst.parse_module(text), operator))
]


@pytest.mark.parametrize("path", GUARDED, ids=lambda path: path.stem)
def test_guarded_code_is_silent_by_default(path, project):
    root = project({path.name: FILES[path.stem]})
    assert places(shown(root, FILES[path.stem])) == set()


@pytest.mark.parametrize(("name", "operator", "number"), MUTANTS)
def test_a_mutant_is_found_at_its_place(name, operator, number, project):
    text = mutate(cst.parse_module(FILES[name]), operator, number)
    assert marked(text, operator.name), f"no comment says what {operator.name} breaks"
    root = project({"mutant.py": text})
    assert places(shown(root, FILES[name])) == marked(text, operator.name)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
def test_an_operator_is_tried_where_a_comment_says_so(operator):
    tried = {p.values[0] for p in MUTANTS if p.values[1] is operator}
    assert tried == {name for name, text in FILES.items() if marked(text, operator.name)}
    assert len(tried) >= 2


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_faulty_code_is_found_at_its_marks(path, project):
    text = path.read_text(encoding="utf-8")
    assert places(shown(project({path.name: text}), text)) == marked(text) != set()
