import pytest

from kvlint.findings import Confidence, Span, Step
from kvlint.reporters.full import PLACES, render
from kvlint.reporters.paint import plain
from kvlint.reporters.view import Choice
from tests.samples import SAME_SLOTS, claim, conditional, fault, guarded, seen, span

EVERYTHING = Choice(minimum=Confidence.MEDIUM, guarded=True)


def full(*args, **options):
    return "\n".join(render(seen(*args, **options), plain))


@pytest.fixture
def root(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/a.py").write_text("import x\n\tslots = counts[0]\nuse(slots)\n")
    return tmp_path


def test_a_finding_shows_place_source_way_and_remedy(root):
    made = claim(
        span("pkg/a.py", 2, 10, 9),
        trace=(
            Step(span("pkg/a.py", 3), "it addresses every region"),
            Step(span("pkg/b.py", 7), "regions are built here"),
        ),
        holds_today="every count is size // page",
    )
    assert full([made], root=root).splitlines() == [
        "pkg/a.py:2:10: KV900 sample-rule [warning, high]",
        "  every region gets the slots of the first",
        "    |",
        "  2 |     slots = counts[0]",
        "    |             ^^^^^^^^^ taken from region 0",
        "    |",
        "  it addresses every region (a.py:3)",
        "  regions are built here (pkg/b.py:7)",
        f"  assumes      {SAME_SLOTS}",
        (
            "  breaks on    2 regions of 2, 1 slots: region 1: "
            "slots of region 1 is 1, slots of region 0 is 2"
        ),
        "  holds today  every count is size // page",
        "  settle it    take the minimum over all regions",
        "",
        "1 assumption in 1 file",
    ]


def test_a_guarded_finding_names_the_guard_and_asks_for_nothing(root):
    text = full([guarded(span("pkg/a.py", 3))], EVERYTHING, root=root)
    assert "KV900 sample-rule [guarded, error, high]" in text
    assert "  guarded by   all counts are compared (a.py:9)" in text
    assert "breaks on" not in text
    assert "settle it" not in text


def test_a_conditional_finding_names_what_nobody_could_resolve(root):
    text = full([conditional(span("pkg/a.py", 3))], EVERYTHING, root=root)
    assert "KV900 sample-rule [conditional, error, medium]" in text
    assert "  unresolved   n: a parameter without a caller" in text
    assert "breaks on" in text


def test_a_finding_that_rests_on_names_alone_says_so(root):
    text = full([claim(by_name_only=True)], EVERYTHING, root=root)
    assert "KV900 sample-rule [error, medium]" in text
    assert "  less sure    the roles rest on names alone" in text
    assert "less sure" not in full([guarded(by_name_only=True)], EVERYTHING, root=root)


def test_an_assumption_with_many_places_is_told_once(root):
    text = full([claim(span("pkg/a.py", line)) for line in range(1, PLACES + 4)], root=root)
    assert text.count("assumes") == 1
    assert text.count("also at      pkg/a.py:") == PLACES
    assert "and 2 more; --output-format concise lists them" in text
    assert text.endswith("1 assumption in 1 file")


def test_a_place_that_is_guarded_is_told_apart_from_one_that_is_not(root):
    text = full([claim(), guarded(span(line=3))], EVERYTHING, root=root)
    assert text.count("assumes") == 2
    assert "also at" not in text


def test_paths_read_from_the_working_directory(root):
    made = claim(span("pkg/a.py", 1), trace=(Step(span("b.py", 7), "built here"),))
    text = full([made], root=root, here=root / "pkg")
    assert text.startswith("a.py:1:1: ")
    assert "built here (../b.py:7)" in text


def test_a_span_of_many_lines_is_marked_to_the_end_of_its_first(root):

    text = full([claim(Span("pkg/a.py", 1, 8, 3, 4))], root=root)
    assert "  1 | import x\n    |        ^ taken" in text


def test_a_source_that_is_gone_or_shorter_is_no_failure(root):
    text = full([claim(span("pkg/a.py", 99)), claim(span("gone.py"), scope="g")], root=root)
    assert "pkg/a.py:99:1: KV900" in text
    assert "gone.py:1:1: KV900" in text
    assert " | " not in text


def test_control_characters_of_the_code_do_not_reach_the_terminal(root):
    (root / "pkg/a.py").write_text("x = '\x1b[2J'\n")
    text = full([claim(message="read from \x1b]0;title\x07")], root=root)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_faults_come_first(root):
    text = full([claim()], root=root, faults=[fault()])
    assert text.startswith("pkg/broken.py:2:3: invalid-syntax: '(' was never closed")
    assert text.endswith("1 assumption in 1 file, 1 file not understood")


def test_paint_colours_words_and_changes_none(root):
    view = seen([claim(span("pkg/a.py", 2))], root=root, faults=[fault()])
    painted = "\n".join(render(view, lambda text, style: f"<{text}>"))
    assert painted.replace("<", "").replace(">", "") == "\n".join(render(view, plain))
