import pytest

from kvlint.engine.check import check
from kvlint.engine.errors import RuleError
from kvlint.findings import Span, Status
from tests.samples import claim, conditional, guarded, rule, span

FILES = {"a.py": "num_slots = 1\n", "pkg/b.py": "num_slots = 2\n"}


def yielding(*claims):
    return rule(lambda program: iter(claims))


def test_findings_are_decided_sorted_and_told_once(project):
    root = project(FILES)
    late, early = claim(span("pkg/b.py", 1)), claim(span("a.py", 1, 5))
    first = claim(span("a.py", 1, 1))
    report = check(root, [root], [yielding(late, early, late, first)])
    assert [(f.span.path, f.span.column) for f in report.findings] == [
        ("a.py", 1),
        ("a.py", 5),
        ("pkg/b.py", 1),
    ]
    assert report.files == 2


def test_a_claim_becomes_what_its_guards_leave_of_it(project):
    root = project(FILES)
    made = [claim(span("a.py")), guarded(span("a.py", 2)), conditional(span("a.py", 3))]
    report = check(root, [root], [yielding(*made)])
    assert [f.status for f in report.findings] == [
        Status.UNGUARDED,
        Status.GUARDED,
        Status.CONDITIONAL,
    ]


def test_only_findings_in_the_paths_are_reported(project):
    root = project(FILES)
    made = yielding(claim(span("a.py")), claim(span("pkg/b.py")))
    everything = check(root, [root], [made]).findings
    assert check(root, [root / "pkg"], [made]).findings == everything[1:]
    assert check(root, [root / "a.py"], [made]).findings == everything[:1]


def test_a_rule_sees_the_whole_project(project):
    root = project(FILES)
    seen = []
    check(root, [root / "a.py"], [rule(lambda program: seen.append(program) or iter(()))])
    assert [program.texts.keys() for program in seen] == [FILES.keys()]


def test_a_rule_that_fails_is_named_and_stops_no_other(project):
    root = project(FILES)

    def broken(program):
        yield claim(span("a.py"))
        raise KeyError("two\nlines")

    failures = []
    rules = [rule(broken, "KV901"), yielding(claim(span("pkg/b.py")))]
    report = check(root, [root], rules, failures.append)
    assert [f.span.path for f in report.findings] == ["a.py", "pkg/b.py"]
    assert [str(f) for f in failures] == [
        r"internal error in KV901 (sample-rule) on a.py (and 1 more file): KeyError: 'two\nlines'"
    ]
    with pytest.raises(RuleError) as caught:
        check(root, [root], rules)
    assert caught.value.code == "KV901"


@pytest.fixture(params=["beside the analysis", "in this process"])
def _both_ways(request, monkeypatch):
    apart = 1 if request.param == "beside the analysis" else 1000
    monkeypatch.setattr("kvlint.engine.check.APART", apart)


@pytest.mark.usefixtures("_both_ways")
def test_a_file_that_cannot_be_parsed_is_a_fault_of_the_report(project):
    root = project(FILES)
    (root / "pkg/broken.py").write_text("x = 1\ndef f(:\n")
    made = yielding(claim(span("pkg/b.py")))
    report = check(root, [root], [made])
    (fault,) = report.faults
    assert (fault.name, fault.message) == ("invalid-syntax", "invalid syntax")
    assert fault.span == Span("pkg/broken.py", 2, 7, 2, 8)
    assert len(report.findings) == 1
    assert check(root, [root / "pkg/broken.py"], [made]).faults == report.faults
    # What nobody asked to see is no fault of what they asked for.
    assert check(root, [root / "a.py"], [made]).faults == ()
