"""Processes that a watched one starts: each is watched, with files of its own, by whatever way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime_checks.breaches import lines
from tests.runtime_checks.programs import WITHOUT_TORCH

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")
pytestmark = pytest.mark.usefixtures("nixl")

ROOT = Path(__file__).parents[2]
WATCHED = (sys.executable, "-m", "kvlint", "run")

# The child does what is a violation: it prepares a slot that its memory does not have.
PROGRAM = """
import multiprocessing, os, subprocess, sys

def work():
    from tests.runtime_checks.hosts import Host, regions, rows3
    host = Host("child", regions([4]))
    host.register()
    try:
        host.prepare(None, rows3(host.regions, [5]))
    except Exception as error:
        print("refused", type(error).__name__, os.getpid(), flush=True)

if __name__ == "__main__":
    how, preloaded = sys.argv[1:3]
    if how == "self":
        work()
    elif how == "subprocess":
        subprocess.run([sys.executable, __file__, "self", ""])
    elif how == "os.fork":
        if os.fork() == 0:
            work()
            sys.exit()
        os.wait()
    else:
        context = multiprocessing.get_context(how)
        if preloaded and how == "forkserver":
            context.set_forkserver_preload(["nixl._api"])
        elif preloaded:
            import nixl._api
        child = context.Process(target=work)
        child.start()
        child.join()
        print("ended", child.exitcode, flush=True)
"""


def run(tmp_path, *arguments, **variables):
    (tmp_path / "program.py").write_text(WITHOUT_TORCH + PROGRAM)
    environ = {name: value for name, value in os.environ.items() if name[:7] != "KVLINT_"}
    return subprocess.run(
        [*WATCHED, "--report", "out", "--", sys.executable, "program.py", *arguments],
        cwd=tmp_path,
        env=environ | {"PYTHONPATH": str(ROOT), "UCX_LOG_LEVEL": "fatal"} | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


WAYS = [
    *(pytest.param(how, "", id=how) for how in ("subprocess", "os.fork")),
    *(pytest.param(how, "", id=how) for how in ("spawn", "fork", "forkserver")),
    *(pytest.param(how, "1", id=f"{how}, NIXL there before") for how in ("fork", "forkserver")),
]


@pytest.mark.parametrize(("how", "preloaded"), WAYS)
def test_a_violation_in_a_child_is_found_and_is_the_childs(tmp_path, how, preloaded):
    ran = run(tmp_path, how, preloaded)
    assert ran.returncode == 70, ran.stderr
    # NIXL prints, too.
    ((_, kind, pid),) = [
        line.split() for line in ran.stdout.splitlines() if line.startswith("refused")
    ]
    assert kind.startswith("nixl")
    (record,) = lines(tmp_path / "out")
    assert (record["check"], record["pid"]) == ("out-of-region", int(pid))
    armed = {}
    for path in (tmp_path / "out").glob("armed-*.json"):
        told = json.loads(path.read_text())
        assert path.stem.endswith(f"-{told['pid']}")
        armed[told["pid"]] = told
    assert len(armed) >= 2
    assert (armed[int(pid)]["status"], armed[int(pid)]["violations"]) == ("installed", 1)
    assert sum(told["violations"] for told in armed.values()) == 1


SETTING = """
import os, subprocess, sys
os.environ["KVLINT_RUNTIME"] = sys.argv[1]
script = "from kvlint import runtime_checks as r; print(r.status()['mode'])"
subprocess.run([sys.executable, "-c", script])
"""


@pytest.mark.parametrize("mode", ["off", "assert"])
def test_a_child_with_a_setting_of_its_own_keeps_to_it(tmp_path, mode):
    ran = subprocess.run(
        [*WATCHED, "--", sys.executable, "-c", SETTING, mode],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout) == (0, f"{mode}\n")
