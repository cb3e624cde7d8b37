"""What git says has changed, asked of real repositories."""

import os

import pytest

from kvlint.engine.changes import Changes, Hunk, changes_since
from kvlint.engine.errors import UsageError
from tests.repository import Repository, environment

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture(autouse=True)
def _no_git_of_the_caller(monkeypatch):
    for name in os.environ.keys() - environment().keys():
        monkeypatch.delenv(name)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def repository(tmp_path):
    made = Repository.new(tmp_path / "repository")
    made.write("a.py", TEN)
    made.write("pkg/b.py", TEN)
    made.commit()
    return made


def since(repository, revision="HEAD"):
    return changes_since(repository.root, revision)


def edit(repository, path, old, new):
    file = repository.root / path
    file.write_text(file.read_text().replace(old, new))


def test_nothing_changed(repository):
    changes = since(repository)
    assert changes.hunks == {}
    assert not changes.any_of("a.py")


def test_lines_are_those_of_the_working_tree_staged_or_not(repository):
    edit(repository, "a.py", "line 2\n", "new\nnewer\n")
    repository.git("add", "a.py")
    edit(repository, "a.py", "line 9\n", "line 9\nadded\n")
    edit(repository, "pkg/b.py", "line 4\nline 5\n", "")
    assert since(repository).hunks == {
        "a.py": [Hunk(2, 3, ("line 2",)), Hunk(11, 11)],
        "pkg/b.py": [Hunk(4, 3, ("line 4", "line 5"))],
    }


def test_a_commit_in_between_counts(repository):
    edit(repository, "a.py", "line 1\n", "other\n")
    repository.commit()
    assert since(repository).hunks == {}
    assert since(repository, "HEAD~1").hunks == {"a.py": [Hunk(1, 1, ("line 1",))]}


def test_what_git_does_not_track_is_new_ignored_or_not(repository):
    repository.write(".gitignore", "made.py\n")
    repository.commit()
    for name in ("made.py", "new.py"):
        repository.write(name, TEN)
        assert since(repository).all_of(name)
    repository.git("add", "--intent-to-add", "new.py")
    assert since(repository).hunks["new.py"] == [Hunk(1, 10)]


def test_a_renamed_file_has_changed_only_where_its_lines_have(repository):
    repository.git("mv", "a.py", "c.py")
    assert not since(repository).any_of("c.py")
    edit(repository, "c.py", "line 3\n", "other\n")
    assert since(repository).hunks == {"c.py": [Hunk(3, 3, ("line 3",))]}


def test_a_file_that_is_gone_has_no_lines(repository):
    (repository.root / "a.py").unlink()
    assert since(repository).hunks == {}


@pytest.mark.parametrize(
    "name",
    [
        "with blank.py",
        "tab\there.py",
        'quo"te.py',
        "back\\slash.py",
        "new\nline.py",
        "é.py",
        " .py",
    ],
)
def test_any_name_is_read_back(repository, name):
    repository.write(name, TEN)
    repository.commit()
    repository.write(name, "first\n" + TEN)
    assert since(repository).hunks == {name: [Hunk(1, 1)]}


def test_a_name_in_no_encoding_is_read_back(repository):
    name = os.fsdecode(b"\xff.py")
    repository.write(name, TEN)
    repository.commit()
    repository.write(name, "first\n" + TEN)
    assert since(repository).hunks == {name: [Hunk(1, 1)]}


def test_content_is_never_taken_for_a_header(repository):
    tricky = "++ b/other.py\n@@ -1 +1 @@\ndiff --git a/x b/x\n-- a/other.py"
    repository.write("a.py", tricky)
    repository.commit()
    repository.write("a.py", f"first\n{tricky}\n++ b/z.py\n@@ -1 +1 @@\n+ x\n- y\n")
    hunks = since(repository).hunks
    assert list(hunks) == ["a.py"]
    assert [(hunk.first, hunk.last) for hunk in hunks["a.py"]] == [(1, 1), (5, 9)]


def test_line_ends_and_bytes_do_not_matter(repository):
    repository.write(".gitattributes", "binary.py binary\n")
    repository.write("dos.py", TEN.replace("\n", "\r\n"))
    repository.write("binary.py", TEN.encode() + b"\0\xff")
    repository.commit()
    edited = TEN.replace("line 5", "other")
    repository.write("dos.py", edited.replace("\n", "\r\n"))
    repository.write("binary.py", edited.encode() + b"\0\xff")
    assert since(repository).hunks == {
        "binary.py": [Hunk(5, 5, ("line 5",))],
        "dos.py": [Hunk(5, 5, ("line 5\r",))],
    }


def test_no_configuration_changes_the_answer(repository, tmp_path):
    edit(repository, "a.py", "line 2\n", "new\n")
    edit(repository, "a.py", "line 4\n", "new\n")
    plain = since(repository)
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    repository.write(".git/info/attributes", "*.py diff=own\n")
    for key, value in {
        "color.ui": "always",
        "core.fsmonitor": program,
        "core.quotePath": "true",
        "diff.context": "9",
        "diff.external": program,
        "diff.interHunkContext": "9",
        "diff.mnemonicPrefix": "true",
        "diff.noprefix": "true",
        "diff.own.command": program,
        "diff.own.textconv": program,
        "diff.relative": "false",
        "diff.renames": "false",
        "diff.wordRegex": ".",
    }.items():
        repository.git("config", key, value)
    assert since(repository) == plain
    assert not ran.exists()


def test_a_project_can_be_a_folder_of_the_repository(repository):
    repository.write("pkg/new.py", "")
    edit(repository, "a.py", "line 1\n", "new\n")
    edit(repository, "pkg/b.py", "line 1\n", "new\n")
    changes = changes_since(repository.root / "pkg", "HEAD")
    assert list(changes.hunks) == ["b.py"]
    assert changes.tracked == {"b.py"}
    assert changes.all_of("new.py")


def test_a_hook_speaks_of_the_working_tree_whatever_git_has_set(repository, monkeypatch):
    edit(repository, "a.py", "line 1\n", "new\n")
    plain = since(repository)
    other = Repository.new(repository.root.parent / "other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/next-index-1.lock")
    monkeypatch.setenv("GIT_PREFIX", "pkg/")
    assert since(repository) == plain


def test_a_submodule_that_changed_is_new_as_a_whole(repository, tmp_path):
    inner = Repository.new(tmp_path / "inner")
    inner.write("c.py", TEN)
    inner.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", inner.root, "sub")
    repository.commit()
    assert not since(repository).any_of("sub/c.py")
    edit(repository, "sub/c.py", "line 1\n", "new\n")
    assert since(repository).all_of("sub/c.py")
    assert not since(repository).any_of("a.py")


def refused(root, revision):
    with pytest.raises(UsageError) as caught:
        changes_since(root, revision)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        ("", "--since takes a git revision, not ''"),
        ("--output=x", "--since takes a git revision, not '--output=x'"),
        ("gone", "--since gone: no such commit here"),
        ("HEAD:a.py", "--since HEAD:a.py: no such commit here"),
        ("HEAD..main", "--since HEAD..main: one revision is needed, not a range"),
    ],
)
def test_a_revision_that_is_not_there_is_one_line(repository, revision, message):
    assert refused(repository.root, revision) == message


def test_a_revision_of_two_meanings_is_refused(repository):
    repository.git("branch", "twice")
    repository.git("tag", "twice")
    assert "--since twice: the revision is ambiguous" in refused(repository.root, "twice")


def test_a_shallow_clone_says_how_to_get_the_history(repository, tmp_path):
    first = repository.git("rev-parse", "HEAD")
    edit(repository, "a.py", "line 1\n", "new\n")
    repository.commit()
    url = f"file://{repository.root}"
    repository.git("clone", "--quiet", "--depth=1", url, tmp_path / "clone")
    said = refused(tmp_path / "clone", first)
    assert said.startswith(f"--since {first}: no such commit here; this clone is shallow")
    assert "`fetch-depth: 0`" in said


def test_no_repository_and_no_git_are_one_line(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    assert refused(tmp_path / "plain", "HEAD").endswith("/plain: no git repository")
    monkeypatch.setenv("PATH", "")
    assert refused(repository.root, "HEAD").startswith("--since needs git: ")


def test_a_repository_without_a_commit_has_no_revision(tmp_path):
    assert refused(Repository.new(tmp_path / "empty").root, "HEAD").endswith("no such commit here")


def test_what_lies_beside_a_submodule_is_not_in_it():
    changes = Changes("HEAD", {}, frozenset({"sub.py", "subway/a.py"}), ("sub",))
    assert [p for p in ("sub.py", "subway/a.py", "sub/a.py") if changes.all_of(p)] == ["sub/a.py"]
