"""examples/staging_server: a service that is armed from outside, broken by a flag, and watched."""

import functools
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("wrapt", reason="the wheel wrapt is missing")
pytest.importorskip("prometheus_client", reason="the wheel prometheus-client is missing")
pytestmark = pytest.mark.usefixtures("nixl", "torch")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/staging_server"
README = "examples/staging_server/README.md"
SERVE = [sys.executable, "examples/staging_server/serve.py"]
ENVIRON = os.environ | {"NIXL_LOG_LEVEL": "ERROR", "PYTHONPATH": str(ROOT)}


def watched(mode, report, *arguments):
    options = ["--mode", mode, "--report", str(report)]
    return [sys.executable, "-m", "kvlint", "run", *options, "--", *SERVE, *arguments]


def ran(command):
    return subprocess.run(
        command, cwd=ROOT, env=ENVIRON, capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Six requests of a server in a mode, broken or not: what it said, and its evidence."""

    @functools.cache
    def played(mode, broken):
        report = tmp_path_factory.mktemp("played") / "report"
        arguments = ["--requests", "6", *(["--break", broken] if broken else [])]
        return ran(watched(mode, report, *arguments)), report

    return played


def shown(page, name):
    """The lines that a page shows under that name, without prompts and indentation."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = text.split(f"<!-- {name}:start -->")[1].split(f"<!-- {name}:end -->")[0]
    return [line.strip() for line in text.splitlines() if line.strip()[:1] not in ("", "$")]


def last_line(done):
    return done.stdout.splitlines()[-1]


def violations(report):
    records = [
        json.loads(line)
        for file in report.glob("violations*.jsonl")
        for line in file.read_text().splitlines()
    ]
    return [record for record in records if "check" in record]


PATCHED = """
import atexit, os, pathlib, sys

def tell():
    if "nixl._api" in sys.modules:
        patched = sys.modules["nixl._api"].nixl_agent.transfer.__module__
        kvlint = sorted(name for name in sys.modules if name.split(".")[0] == "kvlint")
        file = pathlib.Path(__file__).parent / f"{os.getpid()}.txt"
        file.write_text(f"{patched.split('.')[-1]} {' '.join(kvlint)}")

atexit.register(tell)
"""


def test_not_armed_a_broken_one_answers_wrongly_and_says_nothing():
    done = ran([*SERVE, "--requests", "6", "--break", "pool-formula"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == shown(README, "broken")
    assert last_line(done) == "6 requests: 0 right, 6 wrong, 0 failed"


def test_armed_a_right_one_answers_as_ever_and_nothing_is_said(played):
    done, _ = played("assert", None)
    assert done.returncode == 0
    assert last_line(done) == "6 requests: 6 right, 0 wrong, 0 failed"
    *armed, alone, last = done.stderr.splitlines()
    assert alone.startswith("kvlint: not compared: the peer is in another process ")
    assert [line.rsplit(" ", 1)[0] for line in armed] == [armed[0].rsplit(" ", 1)[0]] * 2
    assert armed[0].startswith("kvlint: armed: mode=assert ")
    assert last == (
        "kvlint: no violations in 2 processes that used NIXL; 6 transfers were digested and not "
        "compared"
    )


def test_in_mode_log_the_same_wrong_answers_come_and_the_report_tells(played):
    done, report = played("log", "pool-formula")
    assert done.returncode == 70
    assert last_line(done) == "6 requests: 0 right, 6 wrong, 0 failed"
    for page in (README, "runtime_checks/OPERATING.md"):
        (line,) = shown(page, "violation")
        assert line in done.stderr
    found = violations(report)
    assert {(r["check"], r["code"], r["side"]) for r in found} == {
        ("column", "KV103", "local"),
        ("column", "KV103", "remote"),
    }


def test_another_element_type_is_named_where_the_pool_is_and_answers_stay_wrong(played):
    done, report = played("log", "element-type")
    assert done.returncode == 70
    assert last_line(done) == "6 requests: 0 right, 6 wrong, 0 failed"
    assert shown(README, "item-length")[0] in done.stderr
    pools = [r for r in violations(report) if r["check"] == "item-length"]
    assert len({r["pid"] for r in pools}) == 2
    assert [(r["code"], r["region_name"], r["region"]) for r in pools[:3]] == [
        ("KV201", f"layer {layer} index key", 3 + layer) for layer in range(3)
    ]


def test_in_mode_assert_it_is_the_requests_that_fail_for_it(played):
    done, _ = played("assert", "element-type")
    assert done.returncode == 70
    assert done.stdout.splitlines()[1:] == shown(README, "refused")


def test_the_report_puts_together_what_both_processes_saw_of_a_transfer(played):
    _, report = played("log", "pool-formula")
    shown = ran([sys.executable, "-m", "kvlint", "report", str(report), "--output-format", "json"])
    assert shown.returncode == 1
    told = json.loads(shown.stdout)
    assert told["unread"] == []
    steps = {
        (event["agent"], event["what"])
        for transfer in told["violations"][0]["transfers"]
        for event in transfer["events"]
    }
    assert ("prefill", "posted") in steps
    assert ("decode", "notified") in steps


class Server:
    """A server that goes on until it is told to end."""

    def __init__(self, command, *path):
        environ = ENVIRON | {"PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))}
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.url = self.process.stdout.readline().removeprefix("serving on ").strip()

    def ask(self, prompt):
        return self.open(urllib.request.Request(f"{self.url}/generate", prompt.encode()))

    def metrics(self):
        return self.open(f"{self.url}/metrics")[1].splitlines()

    def open(self, what):
        try:
            with urllib.request.urlopen(what, timeout=60) as reply:
                return reply.status, reply.read().decode().rstrip()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode().rstrip()

    def end(self):
        """Exit status and what was said on standard error."""
        for _ in range(2):
            self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@pytest.fixture
def serving():
    servers = []

    def serving(command, *path):
        servers.append(Server(command, *path))
        return servers[-1]

    yield serving
    for server in servers:
        server.process.kill()
        server.process.communicate()


def test_in_mode_assert_requests_fail_one_by_one_and_the_metrics_page_counts(serving, tmp_path):
    server = serving(watched("assert", tmp_path / "report", "--break", "pool-formula"))
    for prompt in ("a", "bird " * 200):
        status, text = server.ask(prompt)
        assert status == 500
        assert "\n" not in text
        assert "is 4 * 164 + " in text
        assert "but local region 4 starts at 653: it is local region 4 'layer 1 index key'" in text
    page = server.metrics()
    assert 'staging_requests_total{result="failed"} 2.0' in page
    assert 'kvlint_violations_total{check="column",code="KV103"} 4.0' in page
    code, said = server.end()
    assert code == 70
    assert said.splitlines()[-1].startswith("kvlint: 2 violations in ")


def test_not_armed_nothing_is_patched_and_a_signal_ends_all_processes(serving, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(PATCHED)
    server = serving(SERVE, tmp_path)
    played = ran([sys.executable, EXAMPLE / "load.py", server.url, "--requests", "6"])
    assert played.stdout == "6 requests: 6 right, 0 wrong, 0 failed\n"
    assert server.open(f"{server.url}/nowhere")[0] == 404
    assert server.end() == (0, "")
    told = [file.read_text() for file in tmp_path.glob("*.txt")]
    assert told == ["_api kvlint kvlint.runtime_checks"] * 2
