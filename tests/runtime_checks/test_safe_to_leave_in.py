"""The companion may be left in a server: each promise that is made about this, in its order."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvlint import runtime_checks
from kvlint.runtime_checks import arming, bootstrap
from kvlint.runtime_checks.evidence import Evidence, prepare
from tests.runtime_checks.breaches import breach, lines, site
from tests.runtime_checks.programs import WITHOUT_TORCH

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")

ROOT = Path(__file__).parents[2]
FOLDER = bootstrap.__path__[0]

# Two agents, some right transfers and some faults; what must not be told is in the environment,
# in locals, in the notification, in the regions. Prints every address it has used.
PROGRAM = """
import os, sys
os.umask(0)
from pathlib import Path
import numpy as np
from tests.runtime_checks.hosts import Host, indices, neighbours, rows3, starts

def serve(prompt, token):
    ours, theirs = neighbours([6, 5, 6]), neighbours([6, 5, 6])
    text = np.frombuffer(b"cachebytes-" * 100, np.uint8)
    for part in [*ours, *theirs]:
        part[:] = text[:part.size].reshape(part.shape)
    a, b = Host("a", ours), Host("b", theirs)
    for host in (a, b):
        host.register()
    a.meet(b)
    lists = a.prepare(None, rows3(ours)), a.prepare(b, rows3(theirs))
    right = indices(starts(ours), [1, 2])
    wrong = [
        indices([0, 6, 12], [1, 2]),
        right.astype("i8") + 2**32,
        right.astype(float),
        np.repeat(right[:1], 6),
        right + 100,
        right[:2],
    ]
    for index in [right, *wrong]:
        try:
            handle = a.agent.make_prepped_xfer("WRITE", lists[0], right, lists[1], index, token)
            a.agent.transfer(handle)
            a.finish(handle)
            a.agent.transfer(handle)
            a.finish(handle)
            a.agent.release_xfer_handle(handle)
        except Exception:
            pass
    b.agent.get_new_notifs()
    beyond = rows3(theirs)
    beyond[-1, 0] += 1 << 20
    for name, rows in (("", beyond), (b.name, beyond)):
        try:
            a.agent.prep_xfer_dlist(name, rows, "DRAM")
        except Exception:
            pass
    for part in [*ours, *theirs]:
        print(part.ctypes.data)
    print(int(beyond[-1, 0]))

serve("prompt-of-somebody", b"notification-of-somebody")
"""
SECRETS = [
    "prompt-of-somebody",
    "notification-of-somebody",
    "value-of-the-environment",
    "cachebytes",
    "99, 97, 99, 104, 101",
    "6361636865",
]


@pytest.fixture
def ran(tmp_path, nixl):
    def run(**variables):
        for name in ("home", "work", "temporary"):
            (tmp_path / name).mkdir(exist_ok=True)
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("KVLINT_", "PYTEST"))}
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_TORCH + PROGRAM],
            env=kept
            | {
                "PYTHONPATH": f"{FOLDER}{os.pathsep}{ROOT}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": str(tmp_path / "home"),
                "TMPDIR": str(tmp_path / "temporary"),
                "API_KEY": "value-of-the-environment",
                "NIXL_LOG_LEVEL": "ERROR",
            }
            | variables,
            cwd=tmp_path / "work",
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def test_nothing_is_armed_unless_kvlint_runtime_is_set(ran, tmp_path):
    variables = {"KVLINT_REPORT": str(tmp_path / "out"), "KVLINT_REQUIRE": "all"}
    done = ran(**variables)
    assert done.returncode == 0, done.stderr
    assert "kvlint" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_files_are_0600_in_the_folder_that_the_operator_names_and_nowhere_else(ran, tmp_path):
    done = ran(KVLINT_RUNTIME="log", KVLINT_REPORT=str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    modes = {path.name.partition("-")[0]: path.stat().st_mode for path in tmp_path.glob("out/*")}
    kinds = ("armed", "calls", "geometry", "transfers", "violations")
    assert modes == dict.fromkeys(kinds, 0o100600)
    for name in ("home", "work", "temporary"):
        assert list((tmp_path / name).iterdir()) == []


def test_no_links_are_followed(tmp_path):
    folder, victim = tmp_path / "out", tmp_path / "victim"
    prepare(folder)
    victim.write_text("precious")
    (folder / "transfers-r-1.jsonl").symlink_to(victim)
    (folder / ".transfers-r-1.jsonl.0.new").symlink_to(victim)
    Evidence(folder, "r", 1).replace_ring([{"id": 1}])
    assert victim.read_text() == "precious"
    assert lines(folder, "transfers") == [{"id": 1}]

    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(NotADirectoryError):
        Evidence(folder, "r", 1).add_violation({"number": 1})
    assert lines(tmp_path / "moved") == []


def test_size_is_bounded_by_64_mib_and_the_oldest_are_dropped(tmp_path):
    prepare(tmp_path / "out")
    evidence, filler = Evidence(tmp_path / "out", "r", 1), "x" * 250_000
    for number in range(300):
        evidence.add_violation({"number": number, "message": filler})
    evidence.replace_ring([{"id": number, "message": filler} for number in range(100)])
    assert sum(path.stat().st_size for path in tmp_path.glob("out/*")) <= 64 << 20
    kept = sorted(record["number"] for record in lines(tmp_path / "out"))
    assert kept == list(range(kept[0], 300))
    assert kept[0] > 0
    ring = [entry["id"] for entry in lines(tmp_path / "out", "transfers")]
    assert ring == list(range(ring[0], 100))


@pytest.mark.parametrize("mode", ["log", "assert", "paranoid"])
def test_records_hold_no_bytes_prompts_environment_or_locals_and_no_address(ran, tmp_path, mode):
    done = ran(KVLINT_RUNTIME=mode, KVLINT_REPORT=str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    told = done.stderr + "".join(path.read_text() for path in tmp_path.glob("out/*"))
    found = {record["check"] for record in lines(tmp_path / "out") if "check" in record}
    assert found >= {"column", "index-dtype", "index-range", "unequal-counts", "unregistered"}
    assert [secret for secret in SECRETS if secret in told] == []
    addresses = [int(line) for line in done.stdout.splitlines()]
    assert len(addresses) == 7
    assert [a for a in addresses if str(a) in told or f"{a:x}" in told.lower()] == []


LISTEN = """
import os, sys
from kvlint import runtime_checks
from kvlint.runtime_checks import arming
from tests.runtime_checks.hosts import Host, regions
from tests.runtime_checks.breaches import breach, site

def ports():
    # Sockets of this process that others could reach: TCP that listens, and UDP.
    own = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            own.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass
    found = 0
    for table, states in (("tcp", ["0A"]), ("tcp6", ["0A"]), ("udp", None), ("udp6", None)):
        with open(f"/proc/self/net/{table}") as rows:
            for _, _, _, state, *_, inode in [row.split()[:10] for row in rows][1:]:
                found += f"socket:[{inode}]" in own and (states is None or state in states)
    return found

if sys.argv[1] != "off":
    runtime_checks.arm(sys.argv[1], report=sys.argv[2])
host = Host("a", regions([4]))
if sys.argv[1] != "off":
    arming._armed.policy.judge(breach(), [site()], agent="a")
print(ports())
"""


def test_no_port_is_opened(nixl, tmp_path):
    if not Path("/proc/self/net/tcp").exists():
        pytest.skip("no /proc: sockets cannot be counted")
    counts = [
        subprocess.run(
            [sys.executable, "-c", WITHOUT_TORCH + LISTEN, mode, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.splitlines()[-1]
        for mode in ("off", "paranoid")
    ]
    assert counts[0] == counts[1]


def test_signal_handlers_are_off_by_default():
    signals = sorted(signal.valid_signals())
    before = [signal.getsignal(number) for number in signals]
    runtime_checks.arm()
    assert [signal.getsignal(number) for number in signals] == before


class Entry:
    def to_dict(self):
        return {"kind": "transfer", "id": "x"}


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN, "a handler"])
def test_signal_handlers_chain(tmp_path, monkeypatch, before):
    got = []
    handler = (lambda number, frame: got.append(number)) if before == "a handler" else before
    monkeypatch.setenv("KVLINT_DUMP_SIGNAL", "SIGUSR2")
    signal.signal(signal.SIGUSR2, handler)
    try:
        runtime_checks.arm(report=tmp_path)
        arming._armed.policy.recorder.append(Entry())
        os.kill(os.getpid(), signal.SIGUSR2)
        assert len(lines(tmp_path, "transfers")) == 1
        assert got == ([signal.SIGUSR2] if before == "a handler" else [])
        runtime_checks.disarm()
        assert signal.getsignal(signal.SIGUSR2) == handler
    finally:
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)


def test_prometheus_uses_the_engines_registry():
    prometheus = pytest.importorskip(
        "prometheus_client", reason="the wheel prometheus-client is missing"
    )
    engine = prometheus.Counter("engine_requests", "The engine's own.")
    try:
        runtime_checks.arm()
        arming._armed.policy.judge(breach(), [site()], agent="a")
        shown = prometheus.generate_latest(prometheus.REGISTRY).decode()
        assert "engine_requests_total 0.0" in shown
        assert 'kvlint_violations_total{check="column",code=""} 1.0' in shown
    finally:
        prometheus.REGISTRY.unregister(engine)
