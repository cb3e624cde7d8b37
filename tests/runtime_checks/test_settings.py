"""What the environment and a call may say, and the one line for what they may not."""

import os
import signal
from pathlib import Path

import pytest

from kvlint.runtime_checks.settings import Mode, Settings, SettingsError


def read(**variables: str) -> Settings:
    return Settings.from_environment({f"KVLINT_{name}": v for name, v in variables.items()})


def test_an_empty_environment_is_off():
    assert read() == Settings(mode=Mode.OFF)
    assert read(RUNTIME="").mode is Mode.OFF


def test_everything_can_be_said_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = read(
        RUNTIME="assert",
        REPORT="out",
        REQUIRE="nixl_agent.transfer, nixl_agent.prep_xfer_dlist",
        STRICT_PREPARE="1",
        DUMP_SIGNAL="SIGUSR2",
        CAPTURE="/geometry",
        RUN="ab12",
        LAUNCHES="0",
    )
    assert found == Settings(
        Mode.ASSERT,
        Path(tmp_path / "out"),
        ("nixl_agent.prep_xfer_dlist", "nixl_agent.transfer"),
        True,
        signal.SIGUSR2,
        Path("/geometry"),
        launches=False,
    )
    assert found.run == "ab12"


def test_a_call_comes_before_the_environment(tmp_path):
    environ = {"KVLINT_RUNTIME": "assert", "KVLINT_REPORT": "/a", "KVLINT_REQUIRE": "x"}
    found = Settings.from_environment(environ, mode="log", report=tmp_path, require=["all", "y"])
    assert found == Settings(Mode.LOG, tmp_path, ("all",))


@pytest.mark.parametrize("mode", ["assert", "paranoid"])
def test_two_modes_raise(mode):
    assert Mode.named(mode).raises


@pytest.mark.parametrize("mode", ["off", "log"])
def test_two_modes_never_raise(mode):
    assert not Mode.named(mode).raises


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"RUNTIME": "loud"}, "unknown mode: loud; there are off, log, sample, assert, paranoid"),
        ({"RUNTIME": "a\nb"}, r"unknown mode: a\nb; there are off, log, sample, assert, paranoid"),
        ({"DIGEST_KEY": "short"}, "KVLINT_DIGEST_KEY must have 16 characters or more"),
        ({"STRICT_PREPARE": "yes"}, "KVLINT_STRICT_PREPARE is 0 or 1, not yes"),
        ({"LAUNCHES": "off"}, "KVLINT_LAUNCHES is 0 or 1, not off"),
        ({"DUMP_SIGNAL": "SIGTERM"}, "KVLINT_DUMP_SIGNAL is SIGUSR1 or SIGUSR2, not SIGTERM"),
        ({"RUN": "../../etc"}, "KVLINT_RUN is up to 32 letters and digits, not ../../etc"),
    ],
)
def test_what_does_not_exist_is_one_line(variables, said):
    with pytest.raises(SettingsError) as refused:
        read(**variables)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_two_runs_have_two_names():
    assert read().run != read().run


def test_a_key_is_bytes_of_whatever_encoding():
    key = b"\xff" * 16
    assert read(DIGEST_KEY=os.fsdecode(key)).key == key


def test_the_key_is_in_nothing_that_is_written():
    settings = read(DIGEST_KEY="0123456789abcdef")
    assert settings.key == b"0123456789abcdef"
    assert "0123456789abcdef" not in repr(settings)
