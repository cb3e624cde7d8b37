"""A report as hypotheses: each assumption once, with all places, whatever is shown of it."""

from pathlib import Path

import pytest

from kvlint.assumptions import Entry, Number, Own, Relation
from kvlint.engine.check import check
from kvlint.engine.emission import assumptions
from kvlint.engine.registry import all_rules
from kvlint.findings import (
    Claim,
    Confidence,
    Given,
    Report,
    Severity,
    Span,
    Status,
    Step,
    decide,
)
from kvlint.hypotheses import Assumptions
from kvlint.tree import Tree

EXAMPLES = Path(__file__).parents[2] / "examples"


def emitted(root, *paths):
    report = check(root, [root / path for path in paths] or [root], all_rules())
    return report, assumptions(report, Tree(root))


@pytest.fixture(scope="module")
def examples():
    return emitted(EXAMPLES, "prepared_lists")


def test_every_finding_is_a_place_of_its_hypothesis(examples):
    report, found = examples
    places = {(h.id, place.span) for h in found.hypotheses for place in h.places}
    assert places == {(f.assumption_id, f.span) for f in report.findings}
    assert {h.status for h in found.hypotheses} >= {Status.GUARDED, Status.UNGUARDED}
    assert Assumptions.from_json(found.to_json()) == found


def test_a_hypothesis_says_what_decides_it(examples):
    _, found = examples
    (stride,) = [h for h in found.hypotheses if h.code == "KV103" and h.status is Status.UNGUARDED]
    assert stride.formula == "descriptors before region i = i * S0"
    assert (stride.lists, stride.every) == (("kv",), True)
    assert stride.places[0].definition == "PreparedTransfers.send"
    assert [place.definition for place in stride.trace] == [
        "PreparedTransfers.__init__",
        "PreparedTransfers.add_peer",
    ]
    assert stride.counterexample.startswith("3 regions of 2, 1, 1 slots")


def test_what_settles_one_is_told_with_its_place(examples):
    _, found = examples
    (least,) = [
        h
        for h in found.hypotheses
        if h.code == "KV102" and h.places[0].span.path.endswith("repaired.py")
    ]
    assert least.status is Status.GUARDED
    assert least.guard.relation == least.relation
    line = (EXAMPLES / least.guard.place.span.path).read_text().splitlines()
    assert "common_slots(" in line[least.guard.place.span.line - 1]


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        ("kv_item_lens", "kv"),
        ("aux_item_lens", "aux"),
        ("state_item_lens", "state"),
        ("ssm_item_lens", "state"),
        ("stateless_kv_item_lens", "kv"),
    ],
)
def test_the_kind_of_list_is_read_off_the_names(tmp_path, items, kind):
    code = f"""
def build(agent, base_ptrs, {items}, pages, device):
    page_bytes = {items}[0]
    blocks = []
    for base_ptr in base_ptrs:
        for page in pages:
            blocks.append((base_ptr + page * page_bytes, page_bytes, device))
    return agent.get_xfer_descs(blocks, "VRAM")
"""
    (tmp_path / "a.py").write_text(code)
    _, found = emitted(tmp_path)
    assert {h.lists for h in found.hypotheses} == {(kind,)}


def test_what_a_comment_silences_is_there_with_its_reason(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from kvlint.commands.check import command

    (tmp_path / "a.py").write_text(
        "def build(agent, kv_ptrs, kv_item_lens, device):\n"
        "    size = kv_item_lens[0]  # kvlint: ignore[KV101] one pool\n"
        "    return agent.get_xfer_descs([(p, size, device) for p in kv_ptrs], 'VRAM')\n"
    )
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(command, ["--emit-assumptions", "out.json"])
    assert ran.exit_code == 0, ran.output
    (only,) = Assumptions.from_json((tmp_path / "out.json").read_bytes()).hypotheses
    assert only.silenced_by == "a comment: one pool"


def test_a_nested_function_is_named_as_python_names_it(tmp_path):
    (tmp_path / "a.py").write_text(
        "class Sender:\n"
        "    def register(self, agent, kv_ptrs, kv_item_lens, device):\n"
        "        def rows():\n"
        "            size = kv_item_lens[0]\n"
        "            return [(p, size, device) for p in kv_ptrs]\n"
        "        return agent.get_xfer_descs(rows(), 'VRAM')\n"
    )
    _, found = emitted(tmp_path)
    (only,) = found.hypotheses
    assert only.places[0].definition == "Sender.register.<locals>.rows"


def test_what_guards_one_place_keeps_nothing_from_another(tmp_path):
    """Each place is unsettled: one behind a check that is not enough, the other behind none."""
    (tmp_path / "a.py").write_text("first\nsecond\n")
    few = Relation(Own("slots"), "<=", Number(2))

    def finding(line, *given):
        span = Span("a.py", line, 1, line, 5)
        claim = Claim(
            code="KV102",
            relation=Relation(Own("slots"), "=", Entry("slots", 0)),
            at=span,
            scope="a.py::send",
            subject="kv",
            message="",
            label="",
            settle="",
            given=given,
        )
        return decide(claim, "a-name", Severity.ERROR, Confidence.HIGH)

    checked = finding(1, Given(few, Step(Span("a.py", 1, 1, 1, 5), "few")))
    for findings, guards in (((checked,), [few]), ((checked, finding(2)), [])):
        report = Report(findings=findings)
        (only,) = assumptions(report, Tree(tmp_path)).hypotheses
        assert [guard.relation for guard in only.guards] == guards
