"""What was known before. The entries are made of hand-made findings and written to real files."""

import json
from dataclasses import replace

import pytest

from kvlint.engine.baseline import Baseline, known_before, renewed, stale
from kvlint.engine.errors import UsageError
from kvlint.findings import Confidence, Report, Silence
from kvlint.reporters.view import Choice
from tests.samples import claim, conditional, finding, guarded, span

COUNTS = Choice().counts


def report(*claims):
    return Report(tuple(finding(made) for made in claims))


def everything(entry):
    return True


def of(*claims, old=None, judged=everything):
    return renewed(old or Baseline({}), report(*claims), COUNTS, judged)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def at(line, name="f", **changes):
    return claim(span(line=line), scope=f"pkg/a.py::{name}", **changes)


def test_what_is_known_is_silent_wherever_it_has_moved():
    known = known_before(report(at(40), at(41)), of(at(3), at(4)), "known.json", COUNTS)
    assert [(s.by, s.reason) for s in known.silenced] == [(Silence.BASELINE, "known.json")] * 2
    assert known.findings == ()


def test_what_is_new_is_reported():
    found = report(at(3), at(9, "g"))
    assert known_before(found, of(at(3)), "known.json", COUNTS).findings == found.findings[1:]


def test_one_place_more_is_news_of_all_places():
    found = report(at(3), at(4), at(5, "g"))
    known = known_before(found, of(at(3), at(5, "g")), "known.json", COUNTS)
    assert known.findings == found.findings[:2]
    assert known.notices == (
        f"{found.findings[0].assumption_id} is made at 2 places, known.json knows 1: all are shown",
    )
    assert known_before(report(at(3)), of(at(3), at(4)), "known.json", COUNTS).findings == ()


def test_a_place_more_that_is_not_sure_enough_to_be_shown_is_no_news():
    found = report(at(3), at(4, by_name_only=True))
    assert known_before(found, of(at(3)), "known.json", COUNTS).findings == ()
    sure = Choice(Confidence.MEDIUM).counts
    assert len(known_before(found, of(at(3)), "known.json", sure).findings) == 2
    # Once written with it, it stays known, whatever the next run looks for.
    both = renewed(Baseline({}), found, sure, everything)
    assert renewed(both, found, COUNTS, everything) == both


def test_what_has_become_less_sure_is_still_known_and_what_is_guarded_no_longer():
    baseline = of(claim())
    assert known_before(report(conditional()), baseline, "b", COUNTS).findings == ()
    assert stale(report(conditional()), baseline, everything) == []
    assert len(known_before(report(guarded()), baseline, "b", COUNTS).findings) == 1
    assert stale(report(guarded()), baseline, everything) == list(baseline.entries.values())


def test_only_what_a_run_can_judge_is_stale():
    baseline = of(at(3), at(4, "g"))
    gone = stale(report(), baseline, lambda entry: entry.definition == "g")
    assert [entry.definition for entry in gone] == ["g"]


def test_writing_again_takes_in_what_is_new_and_out_what_is_gone():
    old = of(at(3), at(4, "g"), at(5, "h"))
    found = [at(30), at(31), at(6, "new"), conditional(span(line=7), scope="pkg/a.py::less")]
    new = of(*found, old=old, judged=lambda entry: entry.definition != "h")
    assert {entry.definition: entry.places for entry in new.entries.values()} == {
        "f": 2,
        "h": 1,
        "new": 1,
    }


def test_writing_again_keeps_what_is_only_less_sure_now():
    assert of(conditional(), old=of(claim())).entries == of(claim()).entries


def test_a_file_is_read_back_and_has_an_entry_a_line_in_an_order_of_its_own(tmp_path):
    baseline = replace(of(at(3, "é"), at(4, "b"), at(5, "a\udcff")), project="..")
    path = tmp_path / "known.json"
    baseline.save(path)
    assert Baseline.load(path) == baseline
    entries = [line for line in path.read_text("utf-8").splitlines() if "KV900" in line]
    assert [json.loads(line.rstrip(","))["definition"] for line in entries] == ["a\udcff", "b", "é"]
    assert replace(of(at(5, "a\udcff"), at(4, "b"), at(3, "é")), project="..").to_text() == (
        baseline.to_text()
    )


def test_an_empty_baseline_is_one(tmp_path):
    Baseline({}).save(tmp_path / "known.json")
    assert Baseline.load(tmp_path / "known.json") == Baseline({})


def test_writing_goes_through_a_link_and_keeps_the_mode(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "known.json"
    real.write_text("{}")
    real.chmod(0o640)
    link.symlink_to(real)
    of(claim()).save(link)
    assert link.is_symlink()
    assert Baseline.load(real) == of(claim())
    assert real.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["known.json", "real.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "known.json"
    path.mkdir()
    (path / "x").touch()
    with pytest.raises(UsageError, match=r"^cannot write the baseline .*known\.json: "):
        of(claim()).save(path)
    assert names(tmp_path) == ["known.json"]
    with pytest.raises(UsageError, match=r"^cannot write the baseline .*: No such file"):
        of(claim()).save(tmp_path / "missing/known.json")


HEAD = '{"tool": "kvlint", "schema": 1, "project": null, "baseline": '


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"broken: .*known\.json:1 is no JSON"),
        (b"<<<<<<< HEAD\n{}", r"known\.json:1 is no JSON"),
        (b'{\n"a": 1,,}', r"known\.json:2 is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"\xff\xfe", "not a baseline of kvlint"),
        (b"[]", "not a baseline of kvlint"),
        (b'{"version": "2.1.0"}', "not a baseline of kvlint"),
        (b'{"tool": "kvlint", "schema": 2}', "has schema 2, this kvlint reads 1"),
        (b'{"tool": "kvlint", "schema": 1}', "has no list of entries"),
        (HEAD.encode() + b'{"id": 1}}', "has no list of entries"),
        (HEAD.encode() + b'[{"id": "KV101-1"}]}', r"broken: entry 1 of .*known\.json"),
        (HEAD.encode() + b"[3]}", "entry 1"),
    ],
)
def test_what_is_no_baseline_is_refused_in_one_line(tmp_path, content, message):
    path = tmp_path / "known.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        Baseline.load(path)
    assert "\n" not in str(caught.value)


def test_a_missing_baseline_says_how_to_make_it(tmp_path):
    with pytest.raises(UsageError, match=r"no such baseline: .*; --write-baseline .* makes one"):
        Baseline.load(tmp_path / "known.json")
    with pytest.raises(UsageError, match=r"cannot read the baseline .*: Is a directory"):
        Baseline.load(tmp_path)


def test_of_two_entries_that_a_merge_left_the_larger_counts(tmp_path):
    one, two = of(claim()).to_text(), of(claim(), claim(span(line=2))).to_text()
    line = next(line for line in two.splitlines() if "KV900" in line)
    path = tmp_path / "known.json"
    path.write_text(one.replace('"baseline": [', f'"baseline": [\n{line},'))
    assert Baseline.load(path) == of(claim(), claim(span(line=2)))
