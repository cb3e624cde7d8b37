"""The page of a real run, and a real browser to open it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.runtime_checks.programs import ROOT, kvlint

SERVER = "examples/staging_server"
# As root a browser has no sandbox, and none of what it does besides is wanted here.
ALONE = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Reported(NamedTuple):
    """run: folder with the evidence; page: the file; ran: the command that made it."""

    run: Path
    page: Path
    ran: subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def reported(nixl: Any, torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """Six requests of a server whose pools have unequal slot counts, watched over real NIXL, and
    judged by what the linter says of its code."""
    pytest.importorskip("wrapt", reason="the wheel wrapt is missing")
    folder = tmp_path_factory.mktemp("reported")
    run, assumptions, page = folder / "run", folder / "assumptions.json", folder / "report.html"
    kvlint(ROOT, "check", "--no-cache", "--emit-assumptions", str(assumptions), SERVER)
    serve = [sys.executable, f"{SERVER}/serve.py", "--requests", "6", "--break", "pool-formula"]
    watched = kvlint(ROOT, "run", "--mode", "log", "--report", str(run), "--", *serve)
    assert watched.returncode == 70, watched.stderr
    given = ["--assumptions", str(assumptions), "--html", str(page)]
    ran = kvlint(ROOT, "report", str(run), *given)
    return Reported(run, page, ran)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the wheel playwright is missing")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_api.sync_playwright() as playwright:
        program = program or playwright.chromium.executable_path
        if not Path(program).exists():
            pytest.skip("the program chromium is missing")
        browser = playwright.chromium.launch(executable_path=program, args=ALONE)
        yield browser
        browser.close()
