"""The plug-ins, as an engine's loader finds and calls them in an environment with kvlint."""

import json
import os
import subprocess
import sys

import pytest

from tests.building import install
from tests.runtime_checks.programs import WITHOUT_TORCH

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")
pytestmark = pytest.mark.usefixtures("nixl")

# What both engines' loaders do, apart from filters: SGLang's catches Exception, vLLM's nothing.
LOAD = """
import sys
from importlib.metadata import entry_points

def load(group):
    for plugin in entry_points(group=group):
        plugin.load()()

def load_as_sglang():
    try:
        load("sglang.srt.plugins")
    except Exception as error:
        print("only logged:", error)

def load_as_vllm():
    load("vllm.general_plugins")

def status():
    from kvlint import runtime_checks
    return runtime_checks.status()

"""
BOTH = pytest.mark.parametrize("door", ["sglang", "vllm"])


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """kvlint installed from its wheel, away from this tree."""
    return install(tmp_path_factory.mktemp("doors"))


@pytest.fixture
def python(site, tmp_path):
    def python(script, *arguments, path=(), command=(sys.executable,), **variables):
        program = tmp_path / "program.py"
        program.write_text(WITHOUT_TORCH + LOAD + script)
        environ = {name: value for name, value in os.environ.items() if name[:7] != "KVLINT_"}
        environ["PYTHONPATH"] = os.pathsep.join(map(str, (*path, site)))
        return subprocess.run(
            [*command, str(program), *arguments],
            cwd=tmp_path,
            env=environ | variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return python


@BOTH
def test_not_armed_a_door_imports_next_to_nothing_and_patches_nothing(python, door):
    ran = python(f"""
before = set(sys.modules)
load_as_{door}()
print(sorted(set(sys.modules) - before))
""")
    assert ran.stdout == "['kvlint', 'kvlint.runtime_checks', 'kvlint.runtime_checks.doors']\n"
    assert ran.stderr == ""


@BOTH
def test_an_engine_is_armed_by_the_environment_alone(python, site, door, tmp_path):
    ran = python(
        f"load_as_{door}()\nimport nixl._api, kvlint\nprint(status()['status'], kvlint.__file__)",
        KVLINT_RUNTIME="log",
        KVLINT_REPORT=str(tmp_path / "out"),
    )
    assert ran.stdout == f"installed {site}/kvlint/__init__.py\n"
    (line,) = ran.stderr.splitlines()
    assert line.startswith("kvlint: armed: ")
    (file,) = (tmp_path / "out").glob("armed-*.json")
    hooks = json.loads(file.read_text())["hooks"]
    assert set(hooks.values()) == {"installed"}
    assert f"hooks={len(hooks)}/{len(hooks)} " in line


@pytest.mark.parametrize("around", [(), ("-m", "kvlint", "run", "--", sys.executable)])
def test_through_however_many_doors_it_is_armed_once(python, around):
    ran = python(
        "for _ in range(2):\n    load_as_sglang()\n    load_as_vllm()\n"
        "import nixl._api\nload_as_vllm()",
        command=(sys.executable, *around),
        KVLINT_RUNTIME="log",
    )
    assert ran.returncode == 0
    assert ran.stderr.count("kvlint: armed: ") == 1
    assert "other settings" not in ran.stderr


def test_threads_that_call_at_once_arm_once(python):
    ran = python(
        """
import threading
threads = [threading.Thread(target=load_as_vllm) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
import nixl._api
print(status()["mode"])
""",
        KVLINT_RUNTIME="log",
    )
    assert ran.stdout == "log\n"
    assert ran.stderr.count("kvlint: armed: ") == 1


BROKEN = 'sys.modules["kvlint.runtime_checks.arming"] = None\n'


@BOTH
def test_what_fails_in_a_door_is_one_line_and_never_the_engines_failure(python, door):
    ran = python(f"{BROKEN}load_as_{door}()\nprint('went on')", KVLINT_RUNTIME="log")
    assert (ran.returncode, ran.stdout) == (0, "went on\n")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("kvlint: not armed: ModuleNotFoundError: ")


@BOTH
@pytest.mark.parametrize("mode", ["log", "loud"])
def test_what_is_required_and_fails_ends_the_process_through_the_loader(python, door, mode):
    ran = python(
        f"{BROKEN if mode == 'log' else ''}load_as_{door}()\nprint('went on')",
        KVLINT_RUNTIME=mode,
        KVLINT_REQUIRE="all",
    )
    assert (ran.returncode, ran.stdout) == (78, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("kvlint: not armed: ")


def test_what_is_wrong_with_the_environment_is_said_once_however_often_a_door_is_tried(python):
    ran = python("load_as_vllm()\nload_as_sglang()\nload_as_vllm()\n", KVLINT_RUNTIME="loud")
    assert ran.returncode == 0
    assert ran.stderr.splitlines() == [
        "kvlint: not armed: unknown mode: loud; there are off, log, sample, assert, paranoid"
    ]
