"""`kvlint verify`: assumptions on geometry, as a table, as JSON, and as an exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvlint.geometry import Geometry, Region

EXAMPLES = Path(__file__).parents[2] / "examples"
FAULTY = "prepared_lists/transfer_faulty.py"
REPAIRED = "prepared_lists/transfer_repaired.py"


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.chdir(EXAMPLES)


@pytest.fixture
def geometry(tmp_path):
    def write(name, *slots, **labels):
        regions = [
            Region(
                name=f"layer {i} key",
                address=i << 32,
                length=n * 256,
                stride=256,
                transfer_length=256,
                memory_kind="DRAM",
                device=0,
                list="kv",
                layer=i,
            )
            for i, n in enumerate(slots)
        ]
        path = tmp_path / name
        path.write_text(Geometry(tuple(regions), **labels).to_json())
        return path

    return write


@pytest.fixture
def even(geometry):
    return geometry("even.json", 164, 164, 164, 164)


@pytest.fixture
def odd(geometry):
    return geometry("odd.json", 164, 164, 161, 161, engine="sglang 0.5.21", process="decode tp0")


def lines(ran):
    return ran.out.splitlines()


def row(ran, start):
    """The cells of the row of the table that begins so; places stand below their folder there."""
    return next(line for line in lines(ran) if line.startswith(start)).split()


def test_each_assumption_is_decided_on_each_geometry(kvlint, examples, even, odd):
    ran = kvlint("verify", FAULTY, "--geometry", even, "--geometry", odd, "--no-cache")
    assert ran.code == 1
    assert lines(ran)[:2] == [
        f"A  {even}: 4 regions in kv",
        f"B  {odd}: sglang 0.5.21, decode tp0, 4 regions in kv",
    ]
    assert row(ran, "KV103  transfer_faulty.py:101")[-2:] == ["holds", "broken"]
    detail = next(line for line in lines(ran) if line.startswith("  B  kv region 3"))
    assert detail == (
        "  B  kv region 3 'layer 3 key' slot 0 (byte 0): index 492 is taken for its slot 0, "
        "which is 489: 3 too far, slot 3 (byte 768) of region 3 'layer 3 key'"
    )


def test_nothing_breaks_on_regions_that_are_alike(kvlint, examples, even):
    ran = kvlint("verify", FAULTY, "--geometry", even, "--no-cache")
    assert ran.code == 0
    assert "broken" not in "".join(lines(ran)[:-1])
    assert lines(ran)[-1].startswith("A: 0 broken, ")


def test_what_the_repair_settles_holds_on_regions_that_differ(kvlint, examples, odd):
    ran = kvlint("verify", REPAIRED, "--geometry", odd, "--no-cache")
    assert ran.code == 0, ran.out
    assert row(ran, "KV103  transfer_repaired.py:113")[-1] == "holds"


def test_a_file_of_assumptions_says_the_same_as_the_code(kvlint, examples, odd, tmp_path):
    emitted = tmp_path / "assumptions.json"
    own = ("--project", ".", "--no-cache")
    assert kvlint("check", FAULTY, *own, "--emit-assumptions", emitted).code == 1
    direct = kvlint("verify", FAULTY, *own, "--geometry", odd)
    read = kvlint("verify", "--assumptions", emitted, "--geometry", odd)
    assert (read.code, read.out) == (1, direct.out)


def test_rules_and_certainty_are_chosen_as_for_check(kvlint, examples, odd, tmp_path):
    emitted = tmp_path / "assumptions.json"
    kvlint("check", "--emit-assumptions", emitted, "--no-cache")
    only = kvlint("verify", "--assumptions", emitted, "--select", "KV102", "--geometry", odd)
    assert {line[:5] for line in lines(only) if line.startswith("KV")} == {"KV102"}
    everything = kvlint(
        "verify", "--assumptions", emitted, "--min-confidence", "low", "--geometry", odd
    )
    fewer = kvlint("verify", "--assumptions", emitted, "--geometry", odd)
    assert "less sure not decided" in lines(fewer)[-1]
    assert "less sure not decided" not in lines(everything)[-1]
    assert len(lines(everything)) > len(lines(fewer))


def test_json_has_every_verdict_with_its_numbers(kvlint, examples, even, odd):
    ran = kvlint(
        "verify", FAULTY, "--geometry", even, "--geometry", odd, "--output-format", "json",
        "--no-cache",
    )  # fmt: skip
    found = json.loads(ran.out)
    assert [one["engine"] for one in found["geometries"]] == [None, "sglang 0.5.21"]
    (stride,) = [a for a in found["assumptions"] if a["line"] == 101 and a["code"] == "KV103"]
    holds, broken = stride["verdicts"]
    assert holds["outcome"] == "holds"
    assert broken["broken"]["region"] == 3
    assert (broken["broken"]["left"], broken["broken"]["right"]) == (489, 492)


def test_what_a_comment_silences_is_decided_all_the_same(kvlint, odd, tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(
        "def build(agent, kv_ptrs, kv_data_lens, kv_item_lens, device):\n"
        "    slots = kv_data_lens[0] // kv_item_lens[0]  # kvlint: ignore[KV101, KV102] alike\n"
        "    rows = [(p + s * 256, 256, device) for p in kv_ptrs for s in range(slots)]\n"
        "    return agent.get_xfer_descs(rows, 'VRAM')\n"
    )
    monkeypatch.chdir(tmp_path)
    assert kvlint("check", "a.py", "--no-cache", "--select", "KV101").code == 0
    ran = kvlint("verify", "a.py", "--no-cache", "--select", "KV101", "--geometry", odd)
    assert ran.code == 1
    assert row(ran, "KV101  a.py:2")[-1] == "broken"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ("\x00\x01", "not readable as JSON"),
        ('{"a": 1}', "not a kvlint geometry, field 'schema' is missing"),
        ('{"schema": 2, "regions": []}', "field 'schema': 2 is not known, only 1 is"),
        ('{"tool": "kvlint", "schema": 1, "assumptions": []}', "unknown"),
        ("[" * 100_000, "not readable as JSON"),
    ],
)
def test_a_file_that_is_no_geometry_is_named_in_one_line(kvlint, examples, tmp_path, content, says):
    path = tmp_path / "foreign.json"
    path.write_text(content)
    ran = kvlint("verify", FAULTY, "--geometry", path)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"kvlint: {path}: ")
    assert says in line


def test_what_cannot_be_read_at_all_is_named_in_one_line(kvlint, examples, even, tmp_path):
    missing = tmp_path / "missing.json"
    for arguments, says in (
        (("--geometry", missing), f"no such file: {missing}"),
        (("--geometry", tmp_path), "Is a directory"),
        (("--geometry", even, "--assumptions", missing), f"no such file: {missing}"),
        (("--geometry", even, "--assumptions", even), "no file of assumptions"),
        ((), "--geometry"),
    ):
        ran = kvlint("verify", *arguments)
        assert (ran.code, ran.out) == (2, ""), arguments
        (line,) = ran.err.splitlines()
        assert says in line


def test_paths_and_a_file_of_assumptions_exclude_each_other(kvlint, examples, even):
    ran = kvlint("verify", FAULTY, "--geometry", even, "--assumptions", even)
    assert (ran.code, ran.out) == (2, "")
    assert "leave out one of them" in ran.err


def test_a_file_that_is_not_understood_is_said_and_the_others_are_decided(
    kvlint, odd, tmp_path, monkeypatch
):
    (tmp_path / "a.py").write_text("kv_item_lens = [\n")
    (tmp_path / "b.py").write_text(
        "def build(agent, kv_ptrs, kv_item_lens, device):\n"
        "    size = kv_item_lens[0]\n"
        "    return agent.get_xfer_descs([(p, size, device) for p in kv_ptrs], 'VRAM')\n"
    )
    monkeypatch.chdir(tmp_path)
    ran = kvlint("verify", "--no-cache", "--geometry", odd)
    assert ran.code == 2
    assert "a.py:1" in ran.err
    assert row(ran, "KV101  b.py:2")[-1] == "holds"


def test_names_from_a_geometry_cannot_break_out_of_their_line(kvlint, examples, tmp_path, odd):
    text = odd.read_text().replace("layer 3 key", "\\u2028layer 3")
    (tmp_path / "hostile.json").write_text(text)
    ran = kvlint("verify", FAULTY, "--geometry", tmp_path / "hostile.json", "--no-cache")
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


def test_what_breaks_comes_first_and_what_breaks_alike_is_told_once(kvlint, examples, even, odd):
    ran = kvlint(
        "verify", "prepared_lists", "staging_server", "--geometry", odd, "--geometry", even,
        "--geometry", odd, "--select", "KV103", "--no-cache",
    )  # fmt: skip
    rows = [line.split()[-3:] for line in lines(ran) if line.startswith("KV103  ")]
    assert rows == sorted(rows, key=lambda row: "broken" not in row)
    told = [line for line in lines(ran) if line.startswith("  A C  kv region 3")]
    assert len(told) == 1


def test_places_are_told_below_the_folder_that_they_share(kvlint, examples, odd):
    ran = kvlint("verify", "prepared_lists", "staging_server", "--geometry", odd, "--no-cache")
    assert row(ran, "KV103  prepared_lists/transfer_faulty.py:101")[-1] == "broken"
    inside = kvlint("verify", "prepared_lists", "--geometry", odd, "--no-cache")
    head = next(line for line in lines(inside) if "assumes, for every region i" in line)
    assert head.split()[0] == "prepared_lists/"
    assert row(inside, "KV103  transfer_faulty.py:101")


@pytest.mark.parametrize("option", ["--geometry", "--assumptions"])
def test_a_file_that_nobody_would_have_written_is_not_read(kvlint, examples, tmp_path, odd, option):
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate((64 << 20) + 1)
    given = ["--geometry", odd] if option == "--assumptions" else []
    ran = kvlint("verify", *given, option, large)
    assert (ran.code, ran.out) == (2, "")
    assert "67,108,865 bytes are too many for a" in ran.err


def test_assumptions_are_not_mixed_with_findings(kvlint, examples, tmp_path):
    ran = kvlint("check", FAULTY, "--emit-assumptions", "-")
    assert (ran.code, ran.out) == (2, "")
    assert "takes a file" in ran.err


def test_the_guard_that_settles_what_holds_is_named(kvlint, examples, odd):
    ran = kvlint("verify", REPAIRED, "--select", "KV103", "--geometry", odd, "--no-cache")
    told = lines(ran)[lines(ran).index("settled by a guard") + 1]
    place, by, guard = told.split()
    assert row(ran, f"KV103  {place}")[-1] == "holds"
    number = int(guard.removeprefix("transfer_repaired.py:"))
    assert by == "by"
    # It prepares the list with the count that the index uses.
    assert "self._prepare(" in (EXAMPLES / REPAIRED).read_text().splitlines()[number - 1]


def test_nothing_is_said_of_guards_where_none_is(kvlint, examples, even):
    ran = kvlint("verify", "dsv4_slots", "--select", "KV101", "--geometry", even, "--no-cache")
    assert row(ran, "KV101")[-1] == "holds"
    assert "settled" not in ran.out


def test_why_something_was_not_exercised_is_told_for_each_geometry(
    kvlint, examples, even, odd, tmp_path
):
    state = tmp_path / "state.json"
    state.write_text(odd.read_text().replace('"list": "kv"', '"list": "state"'))
    given = [f for path in (even, state, state) for f in ("--geometry", path)]
    ran = kvlint("verify", "dsv4_slots", "--select", "KV101", *given, "--no-cache")
    assert row(ran, "KV101")[-3:] == ["holds", "-", "-"]
    assert "  1  B C  there is no kv list" in lines(ran)
    alone = kvlint("verify", "dsv4_slots", "--select", "KV101", "--geometry", state, "--no-cache")
    assert "  1  there is no kv list" in lines(alone)


def test_the_two_kinds_of_files_are_told_apart(kvlint, examples, odd, tmp_path):
    emitted = tmp_path / "a.json"
    kvlint("check", "dsv4_slots", "--emit-assumptions", emitted, "--no-cache")
    ran = kvlint("verify", "dsv4_slots", "--geometry", emitted)
    assert (ran.code, ran.err) == (2, f"kvlint: {emitted}: a file of assumptions, not a geometry\n")


def test_geometry_comes_through_a_pipe_too(odd):
    command = [sys.executable, "-m", "kvlint", "geometry", "show", "-"]
    ran = subprocess.run(command, input=odd.read_bytes(), capture_output=True)
    assert ran.stdout.startswith(b"-, sglang 0.5.21, decode tp0: 4 regions")
    empty = subprocess.run(command, input=b"", capture_output=True)
    assert (empty.returncode, empty.stdout) == (2, b"")
    assert empty.stderr == b"kvlint: -: the file is empty, not a kvlint geometry\n"


def test_a_closed_standard_input_is_said_to_be(kvlint, examples, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    ran = kvlint("verify", FAULTY, "--geometry", "-")
    assert (ran.code, ran.out, ran.err) == (2, "", "kvlint: standard input is closed\n")
