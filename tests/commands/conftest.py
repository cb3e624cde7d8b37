from collections.abc import Callable
from typing import NamedTuple

import pytest

from kvlint.cli import run as command_line


class Ran(NamedTuple):
    code: int | str | None
    out: str
    err: str


@pytest.fixture
def kvlint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the command line in this process, from the current folder."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr("sys.argv", ["kvlint", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            command_line()
        out, err = capsys.readouterr()
        return Ran(ended.value.code, out, err)

    return run


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes the given rules the only ones there are."""

    def register(*made: object) -> None:
        for module in ("check", "rules", "explain"):
            monkeypatch.setattr(f"kvlint.commands.{module}.all_rules", lambda: made)

    return register
