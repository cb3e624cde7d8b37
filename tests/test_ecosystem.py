"""Snapshots of what is found in pinned releases: what they tell, and how they are compared."""

import pytest

from benchmarks.ecosystem.__main__ import HERE, RELEASES, compare, kept
from benchmarks.ecosystem.snapshot import difference, render, summary
from kvlint.engine.registry import all_rules
from kvlint.findings import Report
from tests.samples import claim, conditional, fault, finding, guarded, rule, span


def snapshot(*claims, rules=None, faults=()):
    found = tuple(map(finding, claims))
    return render("an-engine==1.0", Report(found, faults), rules or [rule(lambda program: ())])


def lines(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_what_is_shown_what_is_hidden_and_why():
    text = snapshot(
        claim(span("pkg/b.py", 7, 3)),
        claim(span("pkg/b.py", 10, 5), holds_today="every count is n"),
        conditional(span("pkg/a.py", 9)),
        claim(span("pkg/a.py", 8), by_name_only=True),
        guarded(span("pkg/a.py", 2)),
    )
    assert text.splitlines()[:6] == [
        "# an-engine==1.0",
        "#",
        "# rule                shown  hidden",
        "# KV900  sample-rule      2       2",
        "#",
        "pkg/a.py:8:1: KV900 [error, hidden, by name] slots of region i = slots of region 0",
    ]
    assert lines(text)[1:] == [
        "pkg/a.py:9:1: KV900 [error, hidden, conditional] slots of region i = slots of region 0",
        "pkg/b.py:7:3: KV900 [error, shown] slots of region i = slots of region 0",
        "pkg/b.py:10:5: KV900 [warning, shown] slots of region i = slots of region 0",
    ]


def test_what_a_preview_rule_says_is_marked():
    coming = rule(lambda program: ())
    type(coming).preview = True
    text = snapshot(claim(), conditional(span(line=2)), rules=[coming])
    assert "# KV900  sample-rule      1       1  preview" in text.splitlines()
    marks = [line.partition("[")[2].partition("]")[0] for line in lines(text)]
    assert marks == ["error, preview", "error, preview, hidden, conditional"]


def test_a_file_that_is_not_understood_has_a_line():
    assert lines(snapshot(faults=[fault()])) == ["pkg/broken.py:2:3: invalid-syntax [fault]"]


def test_other_words_and_another_order_are_the_same_snapshot():
    first, second = claim(), claim(span(line=2))
    worded = claim(message="in other words", settle="otherwise", label="here")
    assert snapshot(first, second) == snapshot(second, worded)


def test_what_came_and_what_went_is_told_by_rule():
    old = snapshot(claim(), claim(span(line=2)), faults=[fault()])
    new = snapshot(claim(code="KV901"), conditional(span(line=2)), claim(code="KV901"))
    assert summary(old, new) == "KV900 +1 -2, KV901 +2, invalid-syntax -1"
    assert summary(old, old) == "nothing changed"
    assert difference(old, old, "a.txt") == ""
    told = difference(old, new, "a.txt").splitlines()
    assert told[:2] == ["--- a.txt", "+++ a.txt (now)"]
    assert [line for line in told if "broken.py" in line] == [
        "-pkg/broken.py:2:3: invalid-syntax [fault]"
    ]


def test_a_rule_that_finds_nothing_changes_the_table_only():
    old, new = snapshot(claim()), snapshot(claim(), rules=[rule(iter), rule(iter, "KV901")])
    assert summary(old, new) == "no finding changed"
    assert "+# KV901  sample-rule      0       0" in difference(old, new, "a.txt").splitlines()


def test_every_release_has_its_snapshot_and_no_other_has_one():
    first = {kept(name): kept(name).read_text(encoding="utf-8").split("\n")[0] for name in RELEASES}
    assert [*first.values()] == [f"# {release}" for release in RELEASES]
    assert set(HERE.glob("*.txt")) == set(first)


@pytest.fixture
def tree(project):
    bad = next(rule for rule in all_rules() if rule.code == "KV101").BAD
    return project({"engine/code.py": bad, "engine/other.py": "print(1)\n"})


def test_a_tree_is_compared_and_its_snapshot_brought_up_to_date(tree, tmp_path, capsys):
    kept = tmp_path / "engine-1.0.txt"
    assert compare("engine==1.0", tree, kept, write=False)
    assert not kept.exists()
    assert capsys.readouterr().out.splitlines()[-1].startswith("engine==1.0: KV101 +1")

    assert compare("engine==1.0", tree, kept, write=True)
    assert lines(kept.read_text(encoding="utf-8"))[0].startswith("engine/code.py:")
    capsys.readouterr()
    assert not compare("engine==1.0", tree, kept, write=False)
    assert capsys.readouterr().out == "engine==1.0: nothing changed\n"

    (tree / "engine/code.py").unlink()
    assert compare("engine==1.0", tree, kept, write=False)
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("engine==1.0: KV101 -1")
    assert any(line.startswith("-engine/code.py:") for line in printed)
