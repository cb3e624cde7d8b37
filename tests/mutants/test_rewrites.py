"""How code is written makes no difference to what is found in it."""

from collections import Counter

import libcst as cst
import pytest

from tests.mutants.rewrites import REWRITES
from tests.mutants.samples import FAULTY, GUARDED, shown, verdict, without

PAIRS = [
    pytest.param(path, name, id=f"{path.stem}-{name}")
    for path in [*FAULTY, *GUARDED]
    for name in REWRITES
]


@pytest.mark.parametrize(("path", "name"), PAIRS)
def test_a_rewrite_changes_no_verdict(path, name, project):
    before = path.read_text(encoding="utf-8")
    after = REWRITES[name](cst.parse_module(before)).code
    if name in without(before):
        assert after == before, "the file says that this rewrite finds nothing"
        return
    assert after != before
    compile(after, path.name, "exec")
    old = verdict(before, shown(project({path.name: before}), before))
    new = verdict(after, shown(project({path.name: after}), before))
    if name == "inline":
        # The helper is gone, so definitions have other numbers.
        old, new = (Counter(code for code, _ in v.elements()) for v in (old, new))
    assert new == old


@pytest.mark.parametrize("name", REWRITES)
def test_a_rewrite_is_tried_on_faulty_and_on_guarded_code(name):
    for paths in (FAULTY, GUARDED):
        assert any(name not in without(path.read_text(encoding="utf-8")) for path in paths)
