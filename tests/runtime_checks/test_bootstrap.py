"""What stands first on PYTHONPATH below `kvlint run`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvlint.runtime_checks import bootstrap

ROOT = Path(__file__).parents[2]
FOLDER = Path(bootstrap.__path__[0])
STATUS = "from kvlint import runtime_checks; print(runtime_checks.status()['mode'])"


def python(*arguments, path=(), **variables):
    environ = {name: value for name, value in os.environ.items() if name[:7] != "KVLINT_"}
    environ["PYTHONPATH"] = os.pathsep.join(map(str, (FOLDER, *path, ROOT)))
    return subprocess.run(
        [sys.executable, *arguments],
        env=environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_it_arms_as_the_environment_says():
    assert python("-c", STATUS, KVLINT_RUNTIME="assert").stdout == "assert\n"


def test_without_the_environment_nothing_of_the_companion_is_imported():
    script = "import sys; print([m for m in sys.modules if m.startswith('kvlint.')])"
    assert python("-c", script).stdout == "['kvlint.runtime_checks']\n"


def test_the_programs_own_sitecustomize_runs_after_it_and_takes_its_name(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nprint('own, armed:', 'kvlint.runtime_checks.arming' in sys.modules)\nX = 1\n"
    )
    script = "import sitecustomize, sys; print(sitecustomize.X, sys.path.count(sys.argv[1]))"
    ran = python("-c", script, FOLDER, path=[tmp_path], KVLINT_RUNTIME="log")
    assert ran.stdout == "own, armed: True\n1 1\n"


def test_what_the_programs_own_sitecustomize_raises_is_told_as_ever(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise KeyError('own')\n")
    ran = python("-c", "print(1)", path=[tmp_path], KVLINT_RUNTIME="log")
    assert ran.stdout == "1\n"
    assert ran.stderr.startswith("Error in sitecustomize")
    assert "KeyError: 'own'" in ran.stderr


def test_the_programs_own_sitecustomize_may_be_a_folder(tmp_path):
    (tmp_path / "sitecustomize").mkdir()
    (tmp_path / "sitecustomize/__init__.py").write_text("from sitecustomize.part import X\n")
    (tmp_path / "sitecustomize/part.py").write_text("X = 1\n")
    script = "import sitecustomize; print(sitecustomize.X, sitecustomize.part.__name__)"
    ran = python("-c", script, path=[tmp_path], KVLINT_RUNTIME="log")
    assert ran.stdout == "1 sitecustomize.part\n"


def test_a_usercustomize_runs_as_ever(tmp_path):
    (tmp_path / "usercustomize.py").write_text("print('user')\n")
    # Python leaves it out in an environment of its own, where it is asked for by hand.
    script = "import site, sys; site.ENABLE_USER_SITE or site.execusercustomize(); print(1)"
    assert python("-c", script, path=[tmp_path], KVLINT_RUNTIME="log").stdout == "user\n1\n"


# What arming imports, as if it asked a program of its own for something.
MEDDLING = """
import os, subprocess, sys
print("started in a watched process:", "BELOW" in os.environ, flush=True)
subprocess.run([sys.executable, "-c", "import sys; print([p for p in sys.path if 'boot' in p])"],
               env={**os.environ, "BELOW": "1"})
"""


def test_a_process_started_while_it_starts_is_no_recursion(tmp_path):
    (tmp_path / "wrapt.py").write_text(MEDDLING + "def register_post_import_hook(*_):\n    pass\n")
    script = "import os, sys; print(sys.path.count(sys.argv[1]), os.environ['PYTHONPATH'])"
    ran = python("-c", script, FOLDER, path=[tmp_path], KVLINT_RUNTIME="log")
    path = os.pathsep.join(map(str, (FOLDER, tmp_path, ROOT)))
    assert ran.stdout == f"started in a watched process: False\n[]\n1 {path}\n"


def test_the_path_comes_back_where_arming_fails(tmp_path):
    (tmp_path / "wrapt.py").write_text("raise OSError('no')\n")
    script = "import os, sys; print(sys.path[0:2], os.environ['PYTHONPATH'])"
    ran = python("-c", script, path=[tmp_path], KVLINT_RUNTIME="log")
    path = os.pathsep.join(map(str, (FOLDER, tmp_path, ROOT)))
    assert ran.stdout == f"{['', str(FOLDER)]} {path}\n"
    assert ran.stderr == f"kvlint: not armed: {sys.executable}: OSError: no\n"


START = """
import multiprocessing, subprocess, sys
from kvlint import runtime_checks

def tell():
    print(runtime_checks.status()["mode"], flush=True)

if __name__ == "__main__":
    if sys.argv[1] == "subprocess":
        subprocess.run([sys.executable, "-c", sys.argv[2]])
    else:
        process = multiprocessing.get_context(sys.argv[1]).Process(target=tell)
        process.start()
        process.join()
"""


@pytest.mark.parametrize("how", ["spawn", "fork", "forkserver", "subprocess"])
def test_children_are_armed_however_they_are_started(tmp_path, how):
    (tmp_path / "program.py").write_text(START)
    ran = python(str(tmp_path / "program.py"), how, STATUS, KVLINT_RUNTIME="log")
    assert (ran.stdout, ran.stderr) == ("log\n", "")


def test_where_kvlint_is_not_installed_the_program_runs_and_one_line_says_so(tmp_path):
    (tmp_path / "kvlint.py").write_text("# another project of this name\n")
    ran = python("-c", "print(1)", path=[tmp_path], KVLINT_RUNTIME="log")
    assert (ran.returncode, ran.stdout) == (0, "1\n")
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"kvlint: not armed: {sys.executable}: ModuleNotFoundError: ")


@pytest.mark.parametrize(("require", "code", "out"), [("", 0, "1\n"), ("all", 78, "")])
def test_a_mode_that_does_not_exist_is_one_line_and_ends_only_what_requires(require, code, out):
    ran = python("-c", "print(1)", KVLINT_RUNTIME="loud", KVLINT_REQUIRE=require)
    assert (ran.returncode, ran.stdout) == (code, out)
    (line,) = ran.stderr.splitlines()
    assert line.startswith("kvlint: not armed: ")


def test_a_folder_that_takes_no_files_is_said_and_the_program_is_watched_without(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    ran = python("-c", STATUS, KVLINT_RUNTIME="log", KVLINT_REPORT=str(tmp_path / "link"))
    assert (ran.returncode, ran.stdout) == (0, "log\n")
    assert ran.stderr == (
        f"kvlint: cannot write evidence to {tmp_path}/link: it is a link; going on without files\n"
    )
