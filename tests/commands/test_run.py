"""`kvlint run`: the command's own life, and what is said and returned at its end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

ROOT = Path(__file__).parents[2]
ENVIRON = {name: value for name, value in os.environ.items() if name[:7] != "KVLINT_"} | {
    "PYTHONPATH": str(ROOT)
}
FIND = """
from kvlint.runtime_checks import arming
from tests.runtime_checks.breaches import breach, site
for region in (1, 2, 2):
    arming._armed.policy.judge(breach(region), [site()], agent="a")
"""


def command_line(*options, mode="log", report="out"):
    return [sys.executable, "-m", "kvlint", "run", "--mode", mode, "--report", report, *options]


@pytest.fixture
def run(tmp_path):
    def run(*command, options=(), **given):
        return subprocess.run(
            [*command_line(*options, **given), "--", *command],
            cwd=tmp_path,
            env=ENVIRON,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def python(script):
    return (sys.executable, "-c", script)


def test_the_command_gets_its_arguments_and_its_streams(run):
    ran = run(*python("import sys; print(sys.argv[1:])"), "--report", "-x", "a b")
    assert ran.stdout == "['--report', '-x', 'a b']\n"


def test_what_no_option_says_the_environment_does(tmp_path):
    script = python("from kvlint import runtime_checks as r; print(r.status()['mode'])")
    for given, mode, folder in (
        ({}, "log", "kvlint-report"),
        ({"KVLINT_RUNTIME": "assert", "KVLINT_REPORT": "mine"}, "assert", "mine"),
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "kvlint", "run", "--", *script],
            cwd=tmp_path,
            env=ENVIRON | given,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ran.returncode, ran.stdout) == (0, f"{mode}\n"), ran.stderr
        assert list((tmp_path / folder).glob("armed-*.json"))


def test_violations_make_a_success_a_failure_and_are_counted(run, tmp_path):
    ran = run(*python(FIND))
    assert ran.returncode == 70
    *_, last = ran.stderr.splitlines()
    assert last == "kvlint: 2 violations in out; kvlint report out shows them"
    assert len(list((tmp_path / "out").glob("violations-*.jsonl"))) == 1


def test_violations_of_grandchildren_count(run):
    spawn = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {FIND!r}])"
    assert run(*python(spawn)).returncode == 70


def test_violations_of_an_earlier_run_do_not_count(run):
    assert [run(*python(FIND)).returncode, run(*python("")).returncode] == [70, 0]


@pytest.mark.parametrize("code", [1, 3, 70, 78])
def test_the_commands_own_failure_comes_first(run, code):
    assert run(*python(f"{FIND}\nraise SystemExit({code})")).returncode == code


def test_a_command_that_dies_of_a_signal_ends_as_in_a_shell(run):
    assert run(*python("import os; os.kill(os.getpid(), 11)")).returncode == 128 + 11


def test_where_nixl_was_never_imported_nothing_was_checked(run):
    ran = run(*python(""))
    assert (ran.returncode, ran.stderr) == (
        0,
        "kvlint: nothing was checked: no process of the command has imported NIXL\n",
    )


def test_a_pool_of_ones_own_was_looked_at_without_nixl(run):
    guard = (
        "import numpy, torch; from kvlint.runtime_checks import guard_pool; "
        "guard_pool(torch.zeros(4, 8))"
    )
    pytest.importorskip("torch", reason="the wheel torch is missing (a CPU build)")
    ran = run(*python(guard))
    assert ran.returncode == 0
    assert ran.stderr.endswith("kvlint: no violations in 1 process that had pools alone\n")


def test_where_nixl_could_not_be_hooked_that_is_not_armed(run, tmp_path):
    # A module of that name with nothing in it that could be hooked.
    (tmp_path / "nixl_cu12").mkdir()
    (tmp_path / "nixl_cu12/_api.py").write_text("class nixl_agent:\n    pass\n")
    ran = run(*python("import nixl_cu12._api"))
    assert ran.returncode == 78
    assert ran.stderr.splitlines()[-1] == (
        "kvlint: not armed: NIXL was imported and could not be hooked"
    )


def test_where_hooks_are_required_that_is_not_armed(run):
    assert run(*python(""), options=["--require", "all"]).returncode == 78
    ran = run(*python(""), options=["--require", "nixl_agent.transfer"])
    assert ran.returncode == 78
    assert ran.stderr.splitlines()[-1] == (
        "kvlint: not armed: required and missing: nixl_agent.transfer"
    )


# A module by the name of an engine's, with a pool in it that says what SGLang's say.
ENGINE = """
class {name}:
    def get_contiguous_buf_infos(self):
        return [], [], []
"""
POOLS = "import sglang.srt.mem_cache.memory_pool"


@pytest.fixture
def engine(tmp_path):
    def engine(name="MHATokenToKVPool"):
        folder = tmp_path / "sglang/srt/mem_cache"
        folder.mkdir(parents=True)
        (folder / "memory_pool.py").write_text(ENGINE.format(name=name))

    return engine


def test_a_process_with_pools_alone_was_checked(run, engine):
    engine()
    ran = run(*python(POOLS), options=["--require", "all"])
    assert ran.returncode == 0
    armed, last = ran.stderr.splitlines()
    assert armed.startswith("kvlint: armed: mode=log sglang unknown pools hooks=1/1 pid=")
    assert last == "kvlint: no violations in 1 process that had pools alone"


def test_a_child_without_what_is_required_fails_the_command(run, engine):
    engine("OtherPool")
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {POOLS!r}])"
    assert run(*python(child)).returncode == 0
    ran = run(*python(child), options=["--require", "all"])
    assert ran.returncode == 78
    hook = "sglang.MHATokenToKVPool.get_contiguous_buf_infos"
    in_part, ended, parent, last = ran.stderr.splitlines()
    assert parent.startswith("kvlint: required, and never imported: all pid=")
    assert in_part == (
        f"kvlint: armed in part: sglang unknown sglang.srt.mem_cache.memory_pool: missing {hook}"
    )
    assert ended == last == f"kvlint: not armed: required and missing: {hook}"


def test_a_hook_that_there_will_never_be_is_one_line_and_nothing_is_started(run):
    ran = run(*python("print(1)"), options=["--require", "nixl_agent.transfr"])
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "kvlint: no hook has the name nixl_agent.transfr; did you mean nixl_agent.transfer?\n"
    )


@pytest.mark.parametrize("command", [(sys.executable, "-I", "-c", ""), ("true",)])
def test_a_command_that_kvlint_does_not_get_into_is_not_armed(run, command):
    ran = run(*command)
    assert ran.returncode == 78
    (line,) = ran.stderr.splitlines()
    assert line.startswith("kvlint: not armed: no process of the command has loaded kvlint")


def test_off_is_the_command_and_nothing_else(run, tmp_path):
    ran = run(
        *python("import sys; print('kvlint.runtime_checks.arming' in sys.modules)"), mode="off"
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "False\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_mode_that_there_is_not_is_one_line_and_nothing_is_started(run):
    ran = run(*python("print(1)"), mode="loud")
    assert (ran.returncode, ran.stdout) == (2, "")
    said = "kvlint: unknown mode: loud; there are off, log, sample, assert, paranoid\n"
    assert ran.stderr.startswith(said)
    assert ran.stderr.count("\n") == 1


def test_a_folder_that_takes_no_files_is_one_line_and_nothing_is_started(run, tmp_path):
    (tmp_path / "out").symlink_to(tmp_path)
    ran = run(*python("print(1)"))
    assert (ran.returncode, ran.stdout) == (78, "")
    assert ran.stderr == (
        f"kvlint: not armed: cannot write evidence to {tmp_path}/out: it is a link\n"
    )


def test_a_command_that_cannot_be_started_is_one_line_with_the_code_of_a_shell(run, tmp_path):
    ran = run("./nowhere")
    assert (ran.returncode, ran.stderr) == (
        127,
        "kvlint: cannot run ./nowhere: No such file or directory\n",
    )
    (tmp_path / "text").touch(0o644)
    assert run("./text").returncode == 126


def test_without_a_command_the_usage_is_one_line(run):
    ran = subprocess.run(command_line(), env=ENVIRON, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.startswith("kvlint: missing argument 'COMMAND...'")


def test_an_option_that_there_is_not_is_no_command(run):
    ran = run(*python(""), options=["--mdoe", "log"])
    assert ran.returncode == 2
    assert ran.stderr.startswith("kvlint: no such option")
    assert ran.stderr.count("\n") == 1


def test_what_the_environment_required_already_is_required(tmp_path):
    ran = subprocess.run(
        [*command_line(), "--", *python("import os; print(os.environ['KVLINT_REQUIRE'])")],
        cwd=tmp_path,
        env=ENVIRON | {"KVLINT_REQUIRE": "all"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (78, "all\n")


WAIT = """
import signal, sys, time
def handle(number, frame):
    print(signal.Signals(number).name, flush=True)
    sys.exit(5)
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
    signal.signal(getattr(signal, name), handle)
print("ready", flush=True)
# A signal that comes right before a sleep begins does not end it.
for _ in range(300):
    time.sleep(0.1)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_signals_reach_the_command_and_its_end_is_awaited(tmp_path, name):
    running = subprocess.Popen(
        [*command_line(), "--", *python(WAIT)],
        cwd=tmp_path,
        env=ENVIRON,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(getattr(signal, name))
    out, _ = running.communicate(timeout=30)
    assert (out, running.returncode) == (f"{name}\n", 5)


def test_what_could_not_be_written_is_no_success(run):
    # As on a full disk.
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    ran = run(*python(full + FIND))
    assert ran.returncode == 78
    assert ran.stderr.splitlines()[-1].startswith("kvlint: what was found could not be written")


def test_a_parent_that_ignores_its_children_changes_nothing(tmp_path):
    ran = subprocess.run(
        [*command_line(), "--mode", "off", "--", "sh", "-c", "exit 3"],
        cwd=tmp_path,
        env=ENVIRON,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        check=False,
    )
    assert ran.returncode == 3


def test_what_a_terminal_sends_arrives_once(tmp_path):
    count = """
import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("ready", flush=True)
end = time.monotonic() + 1
while time.monotonic() < end:
    time.sleep(0.05)
print(len(got), flush=True)
"""
    pid, terminal = os.forkpty()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(sys.executable, [*command_line(), "--", *python(count)], ENVIRON)
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 100)
    os.write(terminal, b"\x03")
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            shown += os.read(terminal, 100)
        except OSError:
            break
    os.waitpid(pid, 0)
    assert b"1\r\n" in shown


def test_a_pipe_without_reader_ends_the_command_as_without_kvlint(run):
    ran = run("sh", "-c", "yes | head -1")
    assert ran.stdout == "y\n"
    assert "Broken pipe" not in ran.stderr


def test_each_process_says_what_is_armed_in_it(run, tmp_path):
    run(*python("import os; print(os.getpid())"))
    (path,) = (tmp_path / "out").glob("armed-*.json")
    told = json.loads(path.read_text())
    assert (told["mode"], told["status"]) == ("log", "waiting for nixl")
    assert path.name == f"armed-{told['run']}-{told['pid']}.json"
    assert told["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
