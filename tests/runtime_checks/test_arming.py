"""Armed, hooked, forked, ended and undone: the life of the companion in a process."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kvlint import runtime_checks
from kvlint.runtime_checks import arming
from tests.runtime_checks.breaches import breach, lines, site
from tests.runtime_checks.programs import WITHOUT_TORCH

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

ROOT = Path(__file__).parents[2]


def python(script, **variables):
    environ = {name: value for name, value in os.environ.items() if name[:7] != "KVLINT_"}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH + script],
        env=environ | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def patchable(api):
    """All that hooks could change: the attributes of the module's classes."""
    return {name: dict(vars(value)) for name, value in vars(api).items() if isinstance(value, type)}


# Off.


def test_importing_it_imports_itself_and_nothing_else():
    script = """
import sys
before = set(sys.modules)
import kvlint.runtime_checks
print(sorted(set(sys.modules) - before))
kvlint.runtime_checks.arm_from_environment()
print(sorted(set(sys.modules) - before))
"""
    loaded = "['kvlint', 'kvlint.runtime_checks']\n"
    assert python(script).stdout == python(script, KVLINT_RUNTIME="off").stdout == loaded * 2


def test_off_patches_nothing(nixl):
    before = patchable(nixl)
    runtime_checks.arm("off")
    assert patchable(nixl) == before
    assert runtime_checks.status() == {"mode": "off"}


# Armed.


def test_armed_before_or_after_the_import_the_same_classes_are_hooked(nixl):
    before = python("from kvlint import runtime_checks as r; r.arm(); import nixl._api")
    after = python("import nixl._api; from kvlint import runtime_checks as r; r.arm()")
    for ran in (before, after):
        (line,) = ran.stderr.splitlines()
        installed, total = line.partition("hooks=")[2].partition(" ")[0].split("/")
        assert line.startswith("kvlint: armed: mode=log hooks=")
        assert installed == total
        assert int(total) >= 10


@pytest.mark.parametrize("importing", ["import nixl_cu13._api", "from nixl._api import nixl_agent"])
def test_whatever_name_nixl_is_imported_by_it_is_hooked_once(nixl, importing):
    pytest.importorskip("nixl_cu13", reason="the wheel nixl-cu13 is missing")
    ran = python(
        f"from kvlint import runtime_checks as r; r.arm(); {importing}; import nixl\n"
        "print(r.status()['status'])"
    )
    assert ran.stdout == "installed\n"
    assert ran.stderr.count("kvlint: armed:") == 1


def test_disarmed_nixl_is_as_it_was(nixl, capsys):
    before = patchable(nixl)
    for _ in range(2):
        runtime_checks.arm()
        assert patchable(nixl) != before
        runtime_checks.disarm()
        assert patchable(nixl) == before
        assert runtime_checks.status() == {"mode": "off"}
    runtime_checks.disarm()


def test_armed_again_with_the_same_settings_nothing_happens_and_others_are_refused(tmp_path):
    runtime_checks.arm("assert", report=tmp_path)
    companion = arming._armed
    runtime_checks.arm("assert", report=str(tmp_path))
    assert arming._armed is companion
    for mode, report in (("log", tmp_path), ("assert", tmp_path / "other"), ("off", tmp_path)):
        with pytest.raises(ValueError, match=r"^armed already with other settings \(mode assert\)"):
            runtime_checks.arm(mode, report=report)
    assert arming._armed is companion


def test_threads_that_arm_at_once_arm_once(nixl, capfd):
    threads = [threading.Thread(target=runtime_checks.arm) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capfd.readouterr().err.count("kvlint: armed:") == 1


@pytest.mark.parametrize("mode", ["loud", ""])
def test_a_mode_that_there_is_not_is_one_line_and_arms_nothing(mode):
    with pytest.raises(ValueError, match="mode") as refused:
        runtime_checks.arm(mode)
    assert "\n" not in str(refused.value)
    assert runtime_checks.status() == {"mode": "off"}


def test_a_folder_that_takes_no_files_is_refused_where_the_program_asks(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"^cannot write evidence to .*/file: File exists$"):
        runtime_checks.arm(report=tmp_path / "file")
    assert runtime_checks.status() == {"mode": "off"}


def test_what_the_environment_says_holds_where_the_call_does_not(tmp_path, monkeypatch):
    monkeypatch.setenv("KVLINT_REPORT", str(tmp_path / "out"))
    monkeypatch.setenv("KVLINT_RUN", "abc")
    runtime_checks.arm()
    assert (tmp_path / f"out/armed-abc-{os.getpid()}.json").exists()


def test_without_wrapt_it_is_one_line():
    ran = python(
        "import sys; sys.modules['wrapt'] = None\n"
        "from kvlint import runtime_checks; runtime_checks.arm_from_environment()",
        KVLINT_RUNTIME="log",
    )
    assert (ran.returncode, ran.stderr) == (
        0,
        "kvlint: not armed: wrapt is not installed; kvlint-geometry[runtime] brings it\n",
    )


# Proof.


def test_a_file_says_hook_by_hook_what_is_armed(nixl, tmp_path):
    runtime_checks.arm("paranoid", report=tmp_path)
    (path,) = tmp_path.glob("armed-*.json")
    told = json.loads(path.read_text())
    assert (told["mode"], told["status"], told["pid"]) == ("paranoid", "installed", os.getpid())
    assert told["hooks"]["nixl_agent.transfer"] == "installed"
    assert told["versions"]["nixl"]
    assert told["hooks"] == runtime_checks.status()["hooks"]


def test_until_nixl_comes_the_file_says_that_it_is_awaited(tmp_path):
    script = "from kvlint import runtime_checks as r; r.arm_from_environment()"
    ran = python(script, KVLINT_RUNTIME="log", KVLINT_REPORT=str(tmp_path))
    assert ran.stderr == ""
    (path,) = tmp_path.glob("armed-*.json")
    assert json.loads(path.read_text())["status"] == "waiting for nixl"


def test_a_check_that_was_switched_off_is_no_longer_proven(tmp_path):
    runtime_checks.arm(report=tmp_path)
    with arming._armed.policy.contained("column"):
        raise KeyError
    (path,) = tmp_path.glob("armed-*.json")
    told = json.loads(path.read_text())
    assert told["tool_errors"] == {"column": 1}
    assert told["switched_off"]["column"].startswith("KeyError at ")


IMPORT = """
from kvlint import runtime_checks
runtime_checks.arm_from_environment()
import nixl._api
print("went on")
"""


# As in a version of NIXL that lacks the method.
OLDER = """
import nixl._api
del nixl._api.nixl_agent.estimate_xfer_cost
"""
IN_A_THREAD = """
import threading
thread = threading.Thread(target=lambda: exec(script, {}))
thread.start()
thread.join()
print("went on")
"""


@pytest.mark.parametrize("required", ["nixl_agent.transfer,nixl_agent.estimate_xfer_cost", "all"])
@pytest.mark.parametrize("where", ["main thread", "another thread"])
def test_a_missing_hook_that_is_required_ends_the_process(nixl, tmp_path, required, where):
    script = OLDER + IMPORT
    if where == "another thread":
        script = f"script = {script!r}\n{IN_A_THREAD}"
    environ = {"RUNTIME": "log", "REQUIRE": required, "REPORT": str(tmp_path)}
    ran = python(script, **{f"KVLINT_{name}": value for name, value in environ.items()})
    assert (ran.returncode, ran.stdout) == (78, "")
    *_, last = ran.stderr.splitlines()
    assert last == "kvlint: not armed: required and missing: nixl_agent.estimate_xfer_cost"
    (file,) = tmp_path.glob("armed-*.json")
    assert "missing" in json.loads(file.read_text())["hooks"]["nixl_agent.estimate_xfer_cost"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nixl_agent.transfr", "did you mean nixl_agent.transfer?"),
        ("sglang.nowhere", "armed-*.json has the names"),
        ("a\nb", "armed-*.json has the names"),
    ],
)
def test_a_name_that_no_hook_will_ever_have_is_refused_when_arming(name, hint):
    with pytest.raises(ValueError, match=r"^no hook has the name") as refused:
        runtime_checks.arm(require=f"nixl_agent.transfer,{name}")
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(f"; {hint}")
    assert runtime_checks.status() == {"mode": "off"}
    ran = python(IMPORT, KVLINT_RUNTIME="log", KVLINT_REQUIRE=name)
    assert (ran.returncode, ran.stdout) == (78, "")
    (line,) = ran.stderr.splitlines()
    assert line == f"kvlint: not armed: {refused.value}"


@pytest.mark.parametrize("required", ["all", "nixl_agent.transfer"])
def test_what_is_required_and_was_never_imported_is_said_at_the_end(required):
    script = IMPORT.replace("import nixl._api", "")
    ran = python(script, KVLINT_RUNTIME="log", KVLINT_REQUIRE=required)
    assert (ran.returncode, ran.stdout) == (0, "went on\n")
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"kvlint: required, and never imported: {required} pid=")


@pytest.mark.parametrize(("require", "code", "out"), [("", 0, "went on\n"), ("all", 78, "")])
def test_hooking_that_fails_never_fails_the_import_unless_required(nixl, require, code, out):
    broken = "import sys; sys.modules['kvlint.runtime_checks.nixl.interposition'] = None\n"
    ran = python(broken + IMPORT, KVLINT_RUNTIME="log", KVLINT_REQUIRE=require)
    assert (ran.returncode, ran.stdout) == (code, out)
    assert "Traceback" not in ran.stderr
    assert "kvlint: armed" not in ran.stderr
    assert ran.stderr.count("internal error, interposition is switched off") == 1


# Forks and ends.


@pytest.fixture
def armed(tmp_path):
    runtime_checks.arm(report=tmp_path)
    return arming._armed.policy


class Entry:
    def to_dict(self):
        return {"kind": "transfer", "id": str(os.getpid())}


def in_fork(act):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(20)
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    return child


def test_a_forked_child_has_files_ring_and_counts_of_its_own(armed, tmp_path):
    armed.recorder.append(Entry())
    armed.judge(breach(0), [site()], agent="a")

    def act():
        assert not armed.recorder.entries()
        assert runtime_checks.status()["violations"] == 0
        armed.recorder.append(Entry())
        armed.judge(breach(0), [site()], agent="a")

    child = in_fork(act)
    assert [(r["pid"], r["number"]) for r in lines(tmp_path)] == [
        (pid, 1) for pid in sorted([os.getpid(), child], key=str)
    ]
    assert {e["id"] for e in lines(tmp_path, "transfers")} == {str(os.getpid()), str(child)}
    assert len(list(tmp_path.glob("armed-*.json"))) == 2


def test_a_fork_while_another_thread_judges_does_not_hang_the_child(armed, capfd):
    going = True

    def work():
        while going:
            armed.judge(breach(0), [site()], agent="a")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            in_fork(lambda: armed.judge(breach(0), [site()], agent="a"))
    finally:
        going = False
        for thread in threads:
            thread.join()


CHILD = """
import multiprocessing, os, sys
from kvlint import runtime_checks
from kvlint.runtime_checks import arming
runtime_checks.arm_from_environment()

class Entry:
    def to_dict(self):
        return {"kind": "transfer", "id": "x"}

def work():
    arming._armed.policy.recorder.append(Entry())

if __name__ == "__main__":
    if sys.argv[1] == "self":
        work()
    else:
        process = multiprocessing.get_context(sys.argv[1]).Process(target=work)
        process.start()
        process.join()
"""


@pytest.mark.parametrize("how", ["self", "fork", "spawn", "forkserver"])
def test_the_ring_is_written_when_a_process_ends(tmp_path, how):
    (tmp_path / "program.py").write_text(CHILD)
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), how],
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "KVLINT_RUNTIME": "log", "KVLINT_REPORT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stderr == ""
    assert [entry["id"] for entry in lines(tmp_path, "transfers")] == ["x"]


def test_disarming_writes_what_the_end_would(armed, tmp_path):
    armed.recorder.append(Entry())
    runtime_checks.disarm()
    assert len(lines(tmp_path, "transfers")) == 1


def test_the_ring_is_written_on_demand(armed, tmp_path):
    armed.recorder.append(Entry())
    runtime_checks.dump()
    assert len(lines(tmp_path, "transfers")) == 1


def test_in_another_thread_there_is_no_signal_and_one_line_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KVLINT_DUMP_SIGNAL", "SIGUSR2")
    thread = threading.Thread(target=runtime_checks.arm)
    thread.start()
    thread.join()
    assert runtime_checks.status()["mode"] == "log"
    assert "SIGUSR2 does not dump: signals can only be handled from the main thread" in (
        capsys.readouterr().err
    )
