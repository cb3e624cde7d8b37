"""The hook, run by the real pre-commit at real commits.

One environment is made for the whole file, as pre-commit makes it for a user: it installs the
package from a clone of this tree, and needs the network for what that depends on.
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repository import Repository, environment

ROOT = Path(__file__).parent.parent
FAULTY = (ROOT / "examples/prepared_lists/transfer_faulty.py").read_text(encoding="utf-8")
REPAIRED = (ROOT / "examples/prepared_lists/transfer_repaired.py").read_text(encoding="utf-8")
PACKAGE = ("kvlint", "rules", "runtime_checks")
FILES = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")

pytestmark = pytest.mark.installs

OFFLINE = re.compile(r"NewConnectionError|ConnectTimeout|name resolution|ProxyError|unreachable")


@dataclass(frozen=True)
class Engine(Repository):
    """A repository with the hook installed."""

    home: Path
    url: Path

    def hook(self, *arguments: str) -> None:
        self.write(
            ".pre-commit-config.yaml",
            f"repos:\n- repo: {self.url}\n  rev: v1\n  hooks:\n  - id: kvlint\n"
            f"    args: [{', '.join(arguments)}]\n",
        )

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.root,
            env=environment() | {"PRE_COMMIT_HOME": str(self.home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def try_commit(self) -> subprocess.CompletedProcess[str]:
        self.git("add", "--all")
        return self.run("git", "commit", "-m", "a commit")


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This tree as a repository that a configuration can name, with the revision v1."""
    made = Repository.new(tmp_path_factory.mktemp("tool"))
    for folder in PACKAGE:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, made.root / folder, symlinks=True, ignore=ignored)
    for file in FILES:
        shutil.copy(ROOT / file, made.root / file)
    made.commit()
    made.git("tag", "v1")
    return made.root


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def engine(tmp_path: Path, tool: Path, home: Path) -> Engine:
    """An engine with a clean commit behind it."""
    made = Engine(Repository.new(tmp_path / "engine").root, home, tool)
    made.hook()
    made.commit()
    installed = made.run(sys.executable, "-m", "pre_commit", "install", "--install-hooks")
    if installed.returncode != 0 and OFFLINE.search(installed.stdout):
        pytest.skip("pre-commit makes its environment from the Python index: no network")
    assert installed.returncode == 0, installed.stdout
    return made


def test_a_commit_with_a_fault_is_refused_in_one_call_for_all_files(engine):
    engine.write("src/one.py", FAULTY)
    engine.write("src/two.py", FAULTY)
    engine.write("notes.txt", "kv_item_lens[0]\n")
    ran = engine.try_commit()
    assert ran.returncode != 0
    assert "src/one.py:61:26: KV101 first-region-stands-for-all [error, high]" in ran.stdout
    assert ran.stdout.count(" in 2 files; ") == 1
    assert engine.git("log", "--oneline").count("\n") == 0


def test_what_an_engine_had_before_is_accepted_by_its_baseline(engine):
    engine.write("src/one.py", FAULTY)
    engine.git("add", "--all")
    engine.git("commit", "--no-verify", "-m", "before the hook")
    written = engine.run(
        sys.executable, "-m", "kvlint", "check", "--write-baseline", "kvlint-baseline.json"
    )
    assert written.returncode == 0, written.stdout
    engine.hook("--baseline", "kvlint-baseline.json")
    assert engine.try_commit().returncode == 0
    engine.write("src/one.py", f"# moved\n\n{FAULTY}")
    assert engine.try_commit().returncode == 0
    engine.write("src/two.py", FAULTY)
    ran = engine.try_commit()
    assert ran.returncode != 0
    assert "src/two.py:61:26: KV101" in ran.stdout
    assert "src/one.py:" not in ran.stdout


def test_only_what_a_commit_touches_can_be_asked_for(engine):
    engine.write("src/one.py", FAULTY)
    engine.git("add", "--all")
    engine.git("commit", "--no-verify", "-m", "before the hook")
    engine.hook("--since", "HEAD")
    assert engine.try_commit().returncode == 0
    engine.write("src/one.py", f"{FAULTY}\n\nPORT = 1\n")
    assert engine.try_commit().returncode == 0
    engine.write(
        "src/one.py", FAULTY.replace("        self.num_slots =", "        self.num_slots  =")
    )
    assert engine.try_commit().returncode != 0


def test_commits_without_a_fault_pass(engine):
    engine.write("src/one.py", REPAIRED)
    engine.write("src/two.py", "x = 1\n")
    engine.write("kvlint.toml", 'exclude = ["vendor"]\n')
    engine.write("vendor/three.py", FAULTY)
    (engine.root / "src/link.py").symlink_to("one.py")
    (engine.root / "src/dangling.py").symlink_to("nowhere.py")
    ran = engine.try_commit()
    assert ran.returncode == 0, ran.stdout
    (engine.root / "src/two.py").unlink()
    engine.git("mv", "src/one.py", "src/moved name.py")
    ran = engine.try_commit()
    assert ran.returncode == 0, ran.stdout
