"""The files of a process: whose they are, what they hold, and how large they get."""

import json
import os
import stat

import pytest

from kvlint.runtime_checks.evidence import Evidence, EvidenceError, prepare
from tests.runtime_checks.breaches import lines


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path):
    prepare(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def evidence(folder):
    return Evidence(folder, "r", 1)


def test_a_folder_is_made_for_its_owner_alone(tmp_path):
    prepare(tmp_path / "a/b")
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700
    assert names(tmp_path / "a/b") == []


def test_what_takes_no_files_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name, reason in (("file", "File exists"), ("link", "it is a link"), ("file/x", "Not a")):
        with pytest.raises(EvidenceError, match=f"cannot write evidence to .*{name}: {reason}"):
            prepare(tmp_path / name)


def test_violations_are_lines_and_the_ring_and_the_state_are_replaced(evidence, folder):
    for number in (1, 2):
        evidence.add_violation({"number": number})
        evidence.replace_ring([{"id": number}])
        evidence.replace_state({"hooks": number})
    assert lines(folder) == [{"number": 1}, {"number": 2}]
    assert lines(folder, "transfers") == [{"id": 2}]
    assert json.loads((folder / "armed-r-1.json").read_text()) == {"hooks": 2}
    assert names(folder) == ["armed-r-1.json", "transfers-r-1.jsonl", "violations-r-1.jsonl"]


def test_violations_of_the_same_process_go_on_in_the_same_file(folder):
    for number in (1, 2):
        Evidence(folder, "r", 1).add_violation({"number": number})
    assert lines(folder) == [{"number": 1}, {"number": 2}]


@pytest.mark.parametrize(
    ("put", "reason"),
    [
        (lambda mine, victim: mine.symlink_to(victim), "symbolic links"),
        (lambda mine, victim: mine.hardlink_to(victim), "is not a file of this process"),
        (lambda mine, victim: mine.touch(0o644), "is not a file of this process"),
        (lambda mine, victim: os.mkfifo(mine, 0o600), "No such device"),
    ],
    ids=["link", "hard link", "readable by others", "pipe"],
)
def test_a_file_put_there_by_others_is_not_written(evidence, folder, tmp_path, put, reason):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    put(folder / "violations-r-1.jsonl", victim)
    with pytest.raises(OSError, match=reason):
        evidence.add_violation({"number": 1})
    assert victim.read_text() == "precious"


def test_a_link_in_place_of_a_replaced_file_is_replaced_and_not_followed(
    evidence, folder, tmp_path
):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("transfers-r-1.jsonl", ".transfers-r-1.jsonl.0.new"):
        (folder / name).symlink_to(victim)
    evidence.replace_ring([{"id": 1}])
    assert victim.read_text() == "precious"
    assert lines(folder, "transfers") == [{"id": 1}]


def test_a_huge_record_loses_its_history_before_anything_else(evidence, folder):
    evidence.add_violation(
        {"check": "column", "region": 3, "message": "m", "history": ["x" * 1000] * 1000}
    )
    (record,) = lines(folder)
    assert (record["check"], record["region"], record["message"]) == ("column", 3, "m")
    assert record["left_out"] == "history, values"


def test_of_values_that_are_no_plain_data_only_the_type_is_told(evidence, folder):
    class Secret:
        def __repr__(self):
            return "the prompt"

    class Number:
        def __index__(self):
            return 7

    evidence.add_violation({"values": {"a": Secret(), "b": b"cache bytes", "c": Number()}})
    assert lines(folder) == [{"values": {"a": "<Secret>", "b": "<bytes>", "c": 7}}]
