import os
from pathlib import Path

import pytest

from kvlint.engine.discover import discover, find_project
from kvlint.engine.errors import UsageError


def test_paths_choose_what_is_reported_and_the_project_is_what_is_known(project):
    root = project({"a.py": "", "pkg/b.py": "", "pkg/c.py": ""})
    files = discover(root, [root / "pkg"])
    assert list(files.reported) == ["pkg/b.py", "pkg/c.py"]
    assert list(files.known) == ["a.py", "pkg/b.py", "pkg/c.py"]


@pytest.mark.parametrize(
    "folder", [".git", ".hidden", ".venv", "venv", "node_modules", "__pycache__", "build", "dist"]
)
def test_a_folder_that_is_not_source_is_read_only_when_named(project, folder):
    root = project({"a.py": "", f"{folder}/b.py": ""})
    assert list(discover(root, [root]).known) == ["a.py"]
    named = discover(root, [root / folder])
    assert list(named.reported) == [f"{folder}/b.py"]
    assert list(named.known) == sorted(["a.py", f"{folder}/b.py"])


def test_a_virtual_environment_is_known_by_its_mark_not_its_name(project):
    root = project({"a.py": "", "env311/pyvenv.cfg": "", "env311/lib/b.py": ""})
    assert list(discover(root, [root]).known) == ["a.py"]


@pytest.mark.parametrize("name", ["tool", "a.pyi", "tool.cgi"])
def test_a_given_file_is_read_where_the_walk_would_pass_it(project, name):
    root = project({"a.py": "", name: "#!/usr/bin/env python3\nprint()"})
    assert list(discover(root, [root / name]).reported) == [name]
    assert list(discover(root, [root]).reported) == ["a.py"]


def test_a_given_file_that_ends_as_no_python_does_is_refused(project):
    root = project({"a.py": ""})
    with pytest.raises(UsageError, match=r"^not a Python file: .*pyproject\.toml$"):
        discover(root, [root / "pyproject.toml"])


def test_links_are_not_followed_and_a_linked_folder_is_known_by_its_real_name(project):
    root = project({"rules/a.py": "", "pkg/b.py": ""})
    (root / "pkg/rules").symlink_to("../rules")
    (root / "pkg/link.py").symlink_to("b.py")
    (root / "pkg/up").symlink_to("..")
    assert list(discover(root, [root]).known) == ["pkg/b.py", "rules/a.py"]
    assert list(discover(root, [root / "pkg"]).reported) == ["pkg/b.py"]
    assert list(discover(root, [root / "pkg/rules"]).reported) == ["rules/a.py"]
    assert list(discover(root, [root / "pkg/link.py"]).reported) == ["pkg/b.py"]


def test_what_is_no_plain_file_is_left_alone(project):
    root = project({"a.py": "", "folder.py/b.py": ""})
    os.mkfifo(root / "pipe.py")
    assert list(discover(root, [root]).known) == ["a.py", "folder.py/b.py"]
    with pytest.raises(UsageError, match=r"neither a file nor a folder: .*pipe\.py"):
        discover(root, [root / "pipe.py"])


def test_what_is_missing_or_outside_is_refused_in_one_line(project, tmp_path):
    root = project({"a.py": ""})
    with pytest.raises(UsageError, match="no such file or folder: "):
        discover(root, [root / "missing.py"])
    (tmp_path / "other.py").touch()
    with pytest.raises(UsageError, match=r"other\.py lies outside the project"):
        discover(root, [tmp_path / "other.py"])


@pytest.mark.parametrize("marker", ["pyproject.toml", "kvlint.toml", ".git"])
def test_the_project_is_the_nearest_marked_folder_above_the_paths(tmp_path, marker):
    inner = tmp_path / "outer/inner"
    (inner / "pkg").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (inner / marker).touch()
    (inner / "pkg/a.py").touch()
    (tmp_path / "outer/b.py").touch()
    assert find_project([inner / "pkg/a.py"]) == inner.resolve()
    assert find_project([inner]) == inner.resolve()
    assert find_project([inner / "pkg", tmp_path / "outer/b.py"]) == tmp_path.resolve()


def test_without_a_marker_the_project_is_the_working_directory(tmp_path, monkeypatch):
    # A marker above the temporary folder would decide instead.
    monkeypatch.setattr("kvlint.engine.discover.MARKERS", ("no-such-marker",))
    (tmp_path / "here/pkg").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert find_project([Path("pkg")]) == (tmp_path / "here").resolve()
    assert find_project([tmp_path]) == tmp_path.resolve()


def test_a_named_project_must_be_a_folder(project):
    root = project({"a.py": ""})
    assert find_project([root / "a.py"], root.parent) == root.parent
    with pytest.raises(UsageError, match="the project is no folder"):
        find_project([root], root / "a.py")


def test_a_notebook_is_named_and_not_read(project):
    root = project({"a.py": "", "b.ipynb": "{}"})
    assert discover(root, [root]).unreadable == ()
    files = discover(root, [root / "b.ipynb", root / "a.py"])
    assert files.reported == ("a.py",)
    assert files.unreadable == (f"{root}/b.ipynb: notebooks are not read",)


def test_a_file_that_cannot_be_reached_is_named_and_the_rest_is_found(project):
    root = project({"a.py": ""})
    folder = root
    while len(str(folder)) < 3900:
        folder /= "d" * 180
    folder.mkdir(parents=True)
    # The folder can still be listed; the system takes no path as long as the file's.
    at = os.open(folder, os.O_RDONLY)
    os.close(os.open(f"{'f' * 240}.py", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    files = discover(root, [root])
    assert list(files.reported) == ["a.py"]
    (line,) = files.unreadable
    assert line.endswith(".py: File name too long")
