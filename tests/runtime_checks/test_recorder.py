"""The ring of the last transfers."""

from dataclasses import dataclass

from kvlint.runtime_checks.recorder import SIZE, Recorder
from tests.runtime_checks.breaches import breach, lines, site


@dataclass
class Entry:
    id: int
    state: str = "PROC"

    def to_dict(self):
        return {"kind": "transfer", "id": self.id, "state": self.state}


def test_the_ring_keeps_the_newest():
    recorder = Recorder()
    for number in range(SIZE + 3):
        recorder.append(Entry(number))
    assert [entry.id for entry in recorder.entries()] == list(range(3, SIZE + 3))


def test_what_later_entries_speak_of_is_kept_when_they_have_pushed_the_rest_out():
    recorder = Recorder(size=2)
    recorder.keep(Entry(0))
    for number in range(1, 5):
        recorder.append(Entry(number))
    assert [entry.id for entry in recorder.entries()] == [0, 3, 4]


def test_entries_are_put_into_words_when_they_are_dumped(policy, tmp_path):
    judged = policy()
    entry = Entry(1)
    judged.recorder.append(entry)
    entry.state = "DONE"
    judged.dump()
    (told,) = lines(tmp_path / "report", "transfers")
    assert (told["id"], told["state"], told["run"], told["pid"]) == (1, "DONE", "r", judged.pid)


def test_a_violation_dumps_the_ring_but_not_more_than_once_a_second(policy, tmp_path):
    judged = policy()
    judged.recorder.append(Entry(1))
    judged.judge(breach(0), [site()], agent="a")
    judged.recorder.append(Entry(2))
    judged.judge(breach(1), [site()], agent="a")
    assert [entry["id"] for entry in lines(tmp_path / "report", "transfers")] == [1]


def test_an_empty_ring_leaves_no_file(policy, tmp_path):
    policy().dump()
    assert not list((tmp_path / "report").glob("transfers*"))
