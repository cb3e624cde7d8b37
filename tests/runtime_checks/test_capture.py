"""Geometry as files: one an agent, whole or not at all, for their owner only."""

import os
import stat
from pathlib import Path

import pytest

from kvlint import runtime_checks
from kvlint.geometry import Geometry, Region
from kvlint.runtime_checks import capture
from kvlint.runtime_checks.capture import Capture, CaptureError, rebased
from kvlint.runtime_checks.captured import process_of, read_geometries, spoken

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")


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


# In a live process.


@pytest.fixture
def pool(torch):
    return {"key": torch.zeros(8, 16), "value": torch.zeros(8, 16)}


def captured(folder: Path) -> list[Geometry]:
    return [Geometry.from_json(path.read_bytes()) for path in sorted(folder.glob("geometry-*"))]


@pytest.mark.parametrize("mode", ["log", "off"])
def test_what_is_declared_is_captured_in_every_mode(tmp_path, monkeypatch, pool, mode):
    monkeypatch.setenv("KVLINT_CAPTURE", str(tmp_path / "out"))
    runtime_checks.arm(mode)
    runtime_checks.guard_pool(pool, name="mine", agent="decode")
    (found,) = captured(tmp_path / "out")
    assert [region.address for region in found.regions] == [t.data_ptr() for t in pool.values()]
    (path,) = (tmp_path / "out").iterdir()
    assert path.name.endswith(f"-{os.getpid()}-decode.json")


def test_alone_it_hooks_no_transport_and_checks_nothing(tmp_path, monkeypatch, nixl, pool, capfd):
    before = dict(vars(nixl.nixl_agent))
    monkeypatch.setenv("KVLINT_CAPTURE", str(tmp_path / "out"))
    monkeypatch.setenv("KVLINT_REPORT", str(tmp_path / "report"))
    runtime_checks.arm_from_environment()
    assert dict(vars(nixl.nixl_agent)) == before
    told = runtime_checks.status()
    assert (told["mode"], told["status"]) == ("off", "capturing only")
    # Twice as long as the tensor: a violation, where anything is checked.
    key = pool["key"]
    runtime_checks.guard_pool(pool, said=[(key.data_ptr(), 2 * key.nbytes, 64)])
    assert runtime_checks.status()["violations"] == 0
    assert capfd.readouterr().err == ""
    assert not list((tmp_path / "report").glob("violations-*"))


def test_pools_without_an_agent_have_files_by_their_names(tmp_path, monkeypatch, pool):
    monkeypatch.setenv("KVLINT_CAPTURE", str(tmp_path))
    runtime_checks.arm()
    runtime_checks.guard_pool(pool["key"], name="keys")
    runtime_checks.guard_pool(pool["value"], name="values")
    assert len(captured(tmp_path)) == 2


def test_a_forked_child_has_files_of_its_own(tmp_path, monkeypatch, pool):
    monkeypatch.setenv("KVLINT_CAPTURE", str(tmp_path))
    runtime_checks.arm()
    runtime_checks.guard_pool(pool, agent="a")
    child = os.fork()
    if child == 0:
        runtime_checks.guard_pool(pool, agent="a")
        os._exit(0)
    os.waitpid(child, 0)
    pids = {path.stem.split("-")[2] for path in tmp_path.glob("geometry-*")}
    assert pids == {str(os.getpid()), str(child)}


def test_a_folder_that_takes_no_files_is_said_and_the_checks_go_on(tmp_path, monkeypatch, capfd):
    (tmp_path / "file").touch()
    monkeypatch.setenv("KVLINT_CAPTURE", str(tmp_path / "file"))
    monkeypatch.setenv("KVLINT_RUNTIME", "log")
    runtime_checks.arm_from_environment()
    assert runtime_checks.status()["mode"] == "log"
    assert capfd.readouterr().err.splitlines()[0] == (
        f"kvlint: cannot write geometry to {tmp_path}/file: File exists; going on without files"
    )


def test_a_disk_that_is_full_stops_no_server(tmp_path, monkeypatch, pool, capfd):
    monkeypatch.setenv("KVLINT_CAPTURE", str(tmp_path / "out"))
    runtime_checks.arm("off")
    (tmp_path / "out").rmdir()
    runtime_checks.guard_pool(pool, agent="a")
    assert capfd.readouterr().err == (
        "kvlint: geometry of agent a is not captured: No such file or directory\n"
    )


def test_nixl_cannot_be_required_where_geometry_alone_is_captured(tmp_path, monkeypatch):
    monkeypatch.setenv("KVLINT_CAPTURE", str(tmp_path))
    with pytest.raises(ValueError, match="cannot be required where only KVLINT_CAPTURE is set"):
        runtime_checks.arm("off", require="nixl_agent.transfer")


# In a folder of evidence.


def test_beside_evidence_addresses_count_from_the_lowest_region(tmp_path):
    path = Capture(tmp_path, "r", relative=True).write("a", geometry(3))
    found, given = Geometry.from_json(path.read_bytes()), geometry(3)
    assert [region.address for region in found.regions] == [0, 1 << 20, 2 << 20]
    assert rebased(given) == found
    assert rebased(Geometry(())) == Geometry(())


@pytest.mark.parametrize("capture", [False, True])
def test_what_is_armed_keeps_geometry_beside_its_evidence(tmp_path, monkeypatch, pool, capture):
    report, wanted = tmp_path / "report", tmp_path / "capture"
    monkeypatch.setenv("KVLINT_REPORT", str(report))
    if capture:
        monkeypatch.setenv("KVLINT_CAPTURE", str(wanted))
    runtime_checks.arm("log")
    runtime_checks.guard_pool(pool, name="mine")
    (found,) = captured(report)
    addresses = [tensor.data_ptr() for tensor in pool.values()]
    assert [region.address for region in found.regions] == [a - min(addresses) for a in addresses]
    if capture:
        (absolute,) = captured(wanted)
        assert [region.address for region in absolute.regions] == addresses
    modes = {stat.S_IMODE(path.stat().st_mode) for path in report.iterdir()}
    assert modes == {0o600}


def test_whoever_wants_both_in_one_folder_gets_addresses(tmp_path, monkeypatch, pool):
    for name in ("REPORT", "CAPTURE"):
        monkeypatch.setenv(f"KVLINT_{name}", str(tmp_path))
    runtime_checks.arm("log")
    runtime_checks.guard_pool(pool, name="mine")
    (found,) = captured(tmp_path)
    assert [region.address for region in found.regions] == [t.data_ptr() for t in pool.values()]


def test_beyond_the_bound_of_evidence_one_line_says_so_and_a_server_goes_on(
    tmp_path, monkeypatch, pool, capfd
):
    monkeypatch.setattr("kvlint.runtime_checks.evidence.GEOMETRY", 100)
    monkeypatch.setenv("KVLINT_REPORT", str(tmp_path))
    runtime_checks.arm("log")
    runtime_checks.guard_pool(pool, name="mine")
    assert captured(tmp_path) == []
    assert "geometry of agent mine is not captured: beyond 100 bytes" in capfd.readouterr().err


# Read again.


def test_geometry_is_read_by_its_label_and_what_is_none_is_named(tmp_path):
    Capture(tmp_path, "r").write("a-b", geometry(2))
    (tmp_path / "geometry-r-2-x.json").write_text("{}")
    (tmp_path / "geometry-r-3-x.json").symlink_to(tmp_path / "geometry-r-2-x.json")
    (tmp_path / "geometry-r-4-x.json").mkdir()
    os.mkfifo(tmp_path / "geometry-r-5-x.json")
    found, unread = read_geometries(tmp_path)
    label = f"r-{os.getpid()}-a-b"
    assert found == {label: geometry(2)}
    assert unread == [
        "geometry-r-2-x.json: geometry: not a kvlint geometry, field 'schema' is missing",
        "geometry-r-3-x.json: a link",
        "geometry-r-4-x.json: Is a directory",
        "geometry-r-5-x.json: not a file",
    ]
    assert process_of(label) == ("r", os.getpid())
    assert spoken(label) == f"a-b of process {os.getpid()}"
    assert read_geometries(tmp_path, "s") == ({}, [])


@pytest.mark.parametrize("label", ["", "r", "r-", "r-x", "r--a", "r-٣-a", f"r-{'9' * 99}-a"])
def test_a_label_that_is_none_is_of_no_process(label):
    assert process_of(label)[1] is None
    assert isinstance(spoken(label), str)


def test_of_a_folder_with_very_many_files_the_first_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("kvlint.runtime_checks.captured.MOST_FILES", 2)
    files = Capture(tmp_path, "r")
    for name in "abcd":
        files.write(name, geometry())
    found, unread = read_geometries(tmp_path)
    assert (len(found), unread) == (2, ["2 more files of geometry are not read"])
