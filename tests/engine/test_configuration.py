import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from kvlint.analysis.vocabulary.own import Own
from kvlint.engine.configuration import Configuration, read
from kvlint.engine.errors import UsageError
from kvlint.findings import Confidence

EVERYTHING = """
select = ["KV1"]
ignore = ["KV103"]
exclude = ["vendor"]
min-confidence = "medium"
max-file-size = "2MiB"
baseline = "known.json"
[per-file-ignores]
"tests/*" = ["KV101"]
"!src/*" = ["KV102"]
[vocabulary]
slots = ["bs_per_pool"]
item-lengths = ["rowBytes"]
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Writes a configuration into the working directory and reads it."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="kvlint.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read(path)

    return write


def test_every_key_is_read(config, tmp_path):
    found = config(EVERYTHING)
    assert found.source == tmp_path / "kvlint.toml"
    assert (found.select, found.ignore) == (("KV1",), ("KV103",))
    assert found.exclude.cover(f"{tmp_path}/vendor/a.py")
    assert (found.min_confidence, found.max_file_size) == (Confidence.MEDIUM, 2 << 20)
    assert found.baseline == tmp_path / "known.json"
    tests, rest = found.file_ignores
    assert (tests.codes, rest.codes) == (("KV101",), ("KV102",))
    covered = [
        (i.covers(f"{tmp_path}/tests/a.py"), i.covers(f"{tmp_path}/src/a.py"))
        for i in (tests, rest)
    ]
    assert covered == [(True, False), (True, False)]
    assert found.vocabulary == Own(slots=("bs_per_pool",), item_lengths=("rowBytes",))


def test_a_pyproject_says_it_in_a_table_or_says_nothing(config):
    assert config('[tool.kvlint]\nignore = ["KV1"]\n', "pyproject.toml").ignore == ("KV1",)
    assert config("[tool.kvlint]\n", "pyproject.toml").select is None
    assert config("[tool.other]\nkvlint = 1\n", "pyproject.toml") is None
    assert config("tool = 'kvlint'\n", "pyproject.toml") is None


def test_a_broken_pyproject_that_does_not_speak_of_kvlint_is_not_ours(config):
    assert config("[project\n", "pyproject.toml") is None
    with pytest.raises(UsageError, match=r"^pyproject\.toml:2: invalid TOML: "):
        config("[tool.kvlint]\nselect = [\n", "pyproject.toml")


@pytest.fixture
def example() -> str:
    """The configuration that the README shows."""
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (shown,) = re.findall(r"^```toml\n(.*?)^```$", readme, re.M | re.S)
    return shown


def test_the_example_of_the_readme_silences_nothing_as_it_stands(config, example):
    found = config(example)
    assert replace(found, source=None, vocabulary=None) == Configuration(
        select=("ALL",), min_confidence=Confidence.HIGH, max_file_size=1 << 20
    )


def test_the_example_of_the_readme_has_every_key(config, example):
    found = config(re.sub(r"^# ", "", example, flags=re.M))
    assert [field.name for field in fields(found) if getattr(found, field.name) in (None, ())] == []
    assert [field.name for field in fields(Own) if not getattr(found.vocabulary, field.name)] == []


def test_paths_can_start_in_another_folder(config, tmp_path):
    config('baseline = "b.json"\nexclude = ["pkg/a.py"]\n', "ci.toml")
    found = read(tmp_path / "ci.toml", Path("/elsewhere"))
    assert found.baseline == Path("/elsewhere/b.json")
    assert found.exclude.cover("/elsewhere/pkg/a.py")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", ":1: unknown key 'selct'; did you mean select?"),
        ("max_file_size = 1", ":1: unknown key 'max_file_size'; did you mean max-file-size?"),
        ("\nzzz = 1", ":2: unknown key 'zzz'; there are select, ignore, per-file-ignores, exclude"),
        ("[tool.kvlint]", ":1: keys stand at the top of this file, without [tool.kvlint]"),
        ("select = 'KV1'", ":1: select must be a list of strings, not a string"),
        ("ignore = [1]", ":1: ignore must hold strings, not a number"),
        ("exclude = ['[a']", ":1: exclude: '[a' is no pattern: [ without ]"),
        ("exclude = ['!a']", ":1: exclude: '!a' takes nothing back, ! has no meaning here"),
        ("per-file-ignores = []", ":1: per-file-ignores must be a table, not a list"),
        ("[per-file-ignores]\na = 1", ":2: a must be a list of strings, not a number"),
        ("min-confidence = 1", ":1: min-confidence must be one of high, medium, low, not 1"),
        (
            "max-file-size = true",
            ":1: max-file-size must be a whole number of bytes or a string such",
        ),
        ("max-file-size = -1", ":1: max-file-size: '-1' is no size"),
        (
            "max-file-size = 1979-05-27",
            ":1: max-file-size must be a whole number of bytes or a string",
        ),
        ("baseline = ''", ":1: baseline names no file"),
        ("[vocabulary]\nslot = []", ":2: unknown key 'slot' in vocabulary; did you mean slots?"),
        ("[vocabulary]\nslots = ['a b']", ":1: vocabulary: 'a b' is no name"),
        ("x = 1\ny =", ":2: invalid TOML: Invalid value"),
        ("a = 1\na = 2", ":2: invalid TOML: Cannot overwrite a value"),
        (b"a = 1\n# \xff", ":2: not UTF-8"),
        ("a = " + "[" * 9999, ": invalid TOML: nested too deeply"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(config, text, message):
    with pytest.raises(UsageError) as caught:
        config(text)
    assert str(caught.value).startswith(f"kvlint.toml{message}")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_line(config, tmp_path):
    with pytest.raises(UsageError, match=r"^cannot read gone\.toml: No such file or directory$"):
        read(tmp_path / "gone.toml")
