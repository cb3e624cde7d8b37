"""Geometry as files: one an agent, whole or not at all, for their owner only."""

import os
import stat

import pytest

from kvlint.geometry import Geometry, Region
from kvlint.runtime_checks import capture
from kvlint.runtime_checks.capture import Capture, CaptureError


def geometry(count: int = 1) -> Geometry:
    regions = [
        Region(
            name=f"layer {number} key",
            address=1 << 40 | number << 20,
            length=40960,
            stride=256,
            transfer_length=256,
            memory_kind="DRAM",
            device=0,
            list="kv",
            layer=number,
        )
        for number in range(count)
    ]
    return Geometry(tuple(regions), "engine 1.0", "decode tp0")


def test_what_is_written_is_the_geometry(tmp_path):
    path = Capture(tmp_path, "ab12").write("agent-1", geometry(3))
    assert path == tmp_path / f"geometry-ab12-{os.getpid()}-agent-1.json"
    assert Geometry.from_json(path.read_bytes()) == geometry(3)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_declared_again_it_is_replaced_and_nothing_is_left_beside(tmp_path):
    files = Capture(tmp_path, "r")
    for count in (3, 1):
        path = files.write("a", geometry(count))
    assert Geometry.from_json(path.read_bytes()) == geometry(1)
    assert list(tmp_path.iterdir()) == [path]


def test_an_agent_of_any_name_has_a_file_of_its_own(tmp_path):
    files = Capture(tmp_path, "r")
    names = ["a", "a/b", "../a", "", "ä", "a" * 100, "a" * 101, "\ud800", "a b"]
    assert len({files.write(name, geometry()) for name in names}) == len(names)
    assert len(list(tmp_path.iterdir())) == len(names)


def test_no_link_is_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("untouched")
    (tmp_path / "out").mkdir()
    files = Capture(tmp_path / "out", "r")
    (tmp_path / "out" / f"geometry-r-{os.getpid()}-a.json").symlink_to(other)
    assert not files.write("a", geometry()).is_symlink()
    assert other.read_text() == "untouched"
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with pytest.raises(OSError, match="link"):
        Capture(tmp_path / "link", "r").write("a", geometry())


def test_all_files_of_a_process_stay_within_the_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(capture, "MOST", 5 * len(geometry().to_json()))
    files = Capture(tmp_path, "r")
    for name in ("a", "b", "c", "a"):
        files.write(name, geometry())
    files.write("a", geometry(2))
    with pytest.raises(CaptureError, match="geometry of agent d is not captured"):
        files.write("d", geometry(2))
    assert len(list(tmp_path.iterdir())) == 3
