import io
import sys

import pytest

from kvlint.reporters.paint import paint_for, plain, printable


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


def test_a_terminal_gets_colours_and_a_pipe_does_not():
    assert "\x1b[" in paint_for(Terminal())("KV101", "bold red")
    assert paint_for(io.StringIO()) is plain


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert paint_for(io.StringIO()) is not plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint_for(Terminal()) is plain


def test_a_terminal_that_knows_no_colours_gets_none(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert paint_for(Terminal()) is plain


def test_a_terminal_without_rich_gets_none(monkeypatch):
    for name in ("rich.color", "rich.style"):
        monkeypatch.setitem(sys.modules, name, None)
    assert paint_for(Terminal()) is plain


def test_only_what_can_be_printed_is_left_of_a_text():
    assert printable("é = 'ü' \x1b[0m\u202e") == "é = 'ü' \N{REPLACEMENT CHARACTER}[0m" + (
        "\N{REPLACEMENT CHARACTER}"
    )
