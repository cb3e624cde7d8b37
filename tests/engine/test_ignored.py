"""What git ignores, with real git in real repositories."""

import pytest

from kvlint.engine.discover import discover
from kvlint.engine.errors import UsageError
from tests.repository import OWN, Repository


def git(folder, *arguments):
    Repository(folder).git("-c", "protocol.file.allow=always", *arguments)


@pytest.fixture(autouse=True)
def _plain_git(tmp_path, monkeypatch):
    """Kvlint's git, too, is that of nobody in particular."""
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def repository(project):
    def make(files):
        root = project(files)
        git(root, "init", "-q")
        return root

    return make


def known(root, *paths):
    files = discover(root, paths or [root])
    assert files.notices == ()
    return list(files.reported)


def test_what_git_ignores_is_not_read(repository):
    root = repository(
        {
            ".gitignore": "out/\n*_gen.py\n",
            "a.py": "",
            "out/b.py": "",
            "pkg/c_gen.py": "",
            "pkg/.gitignore": "d.py\n!e_gen.py\n",
            "pkg/d.py": "",
            "pkg/e_gen.py": "",
            "d.py": "",
            "info.py": "",
            "with blank.py": "",
        }
    )
    (root / ".git/info/exclude").write_text("info.py\n")
    assert known(root) == ["a.py", "d.py", "pkg/e_gen.py", "with blank.py"]


def test_a_tracked_file_is_read_whatever_matches_it(repository):
    root = repository({".gitignore": "out/\n", "out/a.py": "", "out/b.py": "", "out/x/c.py": ""})
    git(root, "add", "-f", "out/a.py", "out/x/c.py")
    assert known(root) == ["out/a.py", "out/x/c.py"]


def test_what_is_given_is_read_though_git_ignores_it(repository):
    root = repository({".gitignore": "out/\n", "a.py": "", "out/b.py": "", "out/pkg/c.py": ""})
    assert known(root, root / "out/b.py") == ["out/b.py"]
    assert known(root, root / "out") == ["out/b.py", "out/pkg/c.py"]
    # A project of its own in a folder that the repository around it ignores.
    assert known(root / "out/pkg") == ["c.py"]


def test_a_project_may_be_a_folder_of_the_repository(repository):
    root = repository(
        {".gitignore": "*_gen.py\n", "a[1]/b.py": "", "a[1]/c_gen.py": "", "a1/d.py": ""}
    )
    assert known(root / "a[1]") == ["b.py"]


def test_nested_repositories_and_submodules_speak_for_themselves(repository, tmp_path):
    root = repository({".gitignore": "a_gen.py\n", "a_gen.py": "", "b_gen.py": ""})
    other = tmp_path / "other"
    for folder in (other, root / "nested"):
        folder.mkdir()
        git(folder, "init", "-q")
        for name in ("a_gen.py", "b_gen.py"):
            (folder / name).touch()
        (folder / ".gitignore").write_text("b_gen.py\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "one")
    git(root, "submodule", "add", "-q", str(other), "sub")
    (root / "sub/b_gen.py").touch()
    everything = ["b_gen.py", "nested/a_gen.py", "sub/a_gen.py"]
    assert known(root) == everything
    assert known(root, root / "sub", root / "nested") == everything[1:]


def test_a_worktree_is_a_repository(repository, tmp_path):
    root = repository({".gitignore": "b.py\n", "a.py": ""})
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree/b.py").touch()
    assert known(tmp_path / "tree") == ["a.py"]


def test_a_hooks_environment_speaks_of_another_repository(repository, tmp_path, monkeypatch):
    root = repository({".gitignore": "b.py\n", "a.py": "", "b.py": ""})
    git(tmp_path, "init", "-q", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index.lock")
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "0")
    assert known(root) == ["a.py"]


def test_no_program_of_the_repository_is_run(repository, tmp_path):
    root = repository({"a.py": ""})
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    monitor.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(monitor))
    assert known(root) == ["a.py"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [("a folder", "not a git repository"), ("a file", "invalid gitfile format")],
)
def test_a_broken_repository_ignores_nothing_and_is_spoken_of(project, monkeypatch, broken, reason):
    root = project({".gitignore": "b.py\n", "a.py": "", "b.py": ""})
    if broken == "a folder":
        (root / ".git").mkdir()
    else:
        (root / ".git").write_text("nonsense\n")
    monkeypatch.chdir(root)
    files = discover(root, [root])
    assert files.reported == ("a.py", "b.py")
    (notice,) = files.notices
    assert notice.startswith(f".gitignore is not respected in .: {reason}")


def test_without_git_nothing_is_ignored_and_that_is_said_once(repository, monkeypatch, tmp_path):
    root = repository({".gitignore": "b.py\n", "a.py": "", "b.py": ""})
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", str(tmp_path))
    files = discover(root, [root, root / "a.py"])
    assert files.reported == ("a.py", "b.py")
    assert files.notices == (
        ".gitignore is not respected in .: git does not run: No such file or directory",
    )


def test_without_a_repository_git_is_not_asked(project, monkeypatch, tmp_path):
    root = project({".gitignore": "b.py\n", "b.py": ""})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert known(root) == ["b.py"]


def test_links_are_left_alone_also_when_they_lead_nowhere_or_round(repository):
    root = repository({"a.py": "", "pkg/b.py": ""})
    (root / "pkg/gone.py").symlink_to("nowhere.py")
    (root / "pkg/self.py").symlink_to("self.py")
    (root / "pkg/round").symlink_to("..")
    assert known(root) == ["a.py", "pkg/b.py"]
    with pytest.raises(UsageError, match=r"no such file or folder: .*gone"):
        discover(root, [root / "pkg/gone.py"])
    with pytest.raises(UsageError, match=r"cannot open .*self"):
        discover(root, [root / "pkg/self.py"])


def test_a_repository_of_somebody_else_is_not_trusted(repository, monkeypatch):
    root = repository({".gitignore": "b.py\n", "a.py": "", "b.py": ""})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    files = discover(root, [root])
    assert files.reported == ("a.py", "b.py")
    (notice,) = files.notices
    assert "detected dubious ownership" in notice
    assert "\n" not in notice
