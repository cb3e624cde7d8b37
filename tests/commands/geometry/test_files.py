"""Files that are no geometry: one line that names the file, and exit code 2, from each command."""

import os

import pytest

from kvlint.geometry import Geometry


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.json"
    path.write_text(Geometry((), "engine").to_json())
    return path


@pytest.fixture(params=["show", "diff", "draw"])
def refused(request, kvlint, good, tmp_path, monkeypatch):
    """What the command says of a file; `diff` has it as the second."""
    monkeypatch.chdir(tmp_path)
    before = [good] if request.param == "diff" else []

    def refused(path):
        ran = kvlint("geometry", request.param, *before, path)
        assert (ran.code, ran.out) == (2, "")
        (line,) = ran.err.splitlines()
        return line.removeprefix("kvlint: ")

    return refused


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty, not a kvlint geometry"),
        (b" \n", "the file is empty, not a kvlint geometry"),
        (b'{"findings": []}', "not a kvlint geometry, field 'schema' is missing"),
        (b"[]", "not a kvlint geometry, field 'schema' is missing"),
        (b'{"schema": 2, "regions": []}', "field 'schema': 2 is not known, only 1 is"),
        (b'{"schema": 1}', "field 'regions' is missing"),
        (b'{"schema": 1, "regions": [{"name": "k"}]}', "region 'k': field 'address' is missing"),
        (b"\x7fELF\x02\x01\x00\x00", "not readable as JSON: "),
        (b"\x80\x04\x95", "not readable as JSON: "),
        (b"[" * 100_000, "not readable as JSON: "),
        (b"def f(): pass", "not readable as JSON: "),
    ],
)
def test_what_is_no_geometry(refused, tmp_path, content, said):
    (tmp_path / "given.json").write_bytes(content)
    assert refused("given.json").startswith(f"given.json: {said}")


def test_what_is_no_file(refused, tmp_path):
    assert refused("none.json") == "no such file: none.json"
    (tmp_path / "folder").mkdir()
    assert refused("folder") == "cannot read folder: Is a directory"
    os.mkfifo(tmp_path / "pipe")
    assert refused("pipe") == "pipe is no file"


def test_what_is_too_large_is_not_read(refused, tmp_path):
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(1 << 40)
    assert "huge.json: 1,099,511,627,776 bytes" in refused("huge.json")


def test_an_unknown_command_gets_a_suggestion(kvlint):
    ran = kvlint("geometry", "drow", "x")
    assert (ran.code, ran.err) == (2, "kvlint: no such command: drow; did you mean draw?\n")
