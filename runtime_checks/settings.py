"""What the companion is told to do, by its environment or by a call."""

import secrets
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

RUNTIME: Final = "KVLINT_RUNTIME"
REPORT: Final = "KVLINT_REPORT"
CAPTURE: Final = "KVLINT_CAPTURE"
REQUIRE: Final = "KVLINT_REQUIRE"
STRICT_PREPARE: Final = "KVLINT_STRICT_PREPARE"
DUMP_SIGNAL: Final = "KVLINT_DUMP_SIGNAL"
RUN: Final = "KVLINT_RUN"
LAUNCHES: Final = "KVLINT_LAUNCHES"
DIGEST_KEY: Final = "KVLINT_DIGEST_KEY"

# What both sides share must not be guessed by whoever can write into a mailbox.
_SHORTEST_KEY: Final = 16

# Signals that programs have for themselves. A handler on another one, SIGTERM say, would take the
# place of what the system does by default.
_SIGNALS: Final = ("SIGUSR1", "SIGUSR2")


class SettingsError(ValueError):
    """What was asked for does not exist; the message is one line."""


class Mode(StrEnum):
    """How much is checked, and whether a violation is raised."""

    OFF = "off"
    LOG = "log"
    SAMPLE = "sample"
    ASSERT = "assert"
    PARANOID = "paranoid"

    @property
    def raises(self) -> bool:
        return self in (Mode.ASSERT, Mode.PARANOID)

    @property
    def reads(self) -> bool:
        """Whether bytes of caches are read, for their digests."""
        return self in (Mode.SAMPLE, Mode.ASSERT, Mode.PARANOID)

    @classmethod
    def named(cls, name: str) -> "Mode":
        """Raises SettingsError for what is no mode."""
        try:
            return cls(name)
        except ValueError:
            raise SettingsError(
                f"unknown mode: {one_line(name)}; there are {', '.join(cls)}"
            ) from None


def one_line(text: str) -> str:
    """The text without line breaks and without what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True, slots=True)
class Settings:
    """
    report          folder for evidence, absolute; None for no files
    require         hooks without which the process must not go on, or ("all",)
    strict_prepare  what is found while preparing is raised there, not at first use
    dump_signal     signal that writes the recorder's ring, or None
    capture         folder for the geometry of pools, absolute; None for no files. In mode off it
                    arms the engines' adapters alone, which then check nothing
    run             names the processes that belong together, in file names and records
    key             what both sides of a transfer share, so that one tells the other its digests;
                    None where nothing is told. Written nowhere
    launches        whether launches of Triton's kernels are looked at
    """

    mode: Mode = Mode.LOG
    report: Path | None = None
    require: tuple[str, ...] = ()
    strict_prepare: bool = False
    dump_signal: signal.Signals | None = None
    capture: Path | None = None
    run: str = field(default_factory=lambda: secrets.token_hex(4), compare=False)
    key: bytes | None = field(default=None, repr=False)
    launches: bool = True

    @property
    def checks(self) -> bool:
        """Whether anything is checked."""
        return self.mode is not Mode.OFF

    @property
    def arms(self) -> bool:
        """Whether anything is hooked."""
        return self.checks or self.capture is not None

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        *,
        mode: str | None = None,
        report: str | Path | None = None,
        require: str | Iterable[str] = (),
    ) -> "Settings":
        """What a call says counts, then the environment. Raises SettingsError."""
        return cls(
            mode=Mode.named(environ.get(RUNTIME) or "off" if mode is None else mode),
            report=_folder(report or environ.get(REPORT)),
            require=names_in(require or environ.get(REQUIRE, "")),
            strict_prepare=_switch(environ, STRICT_PREPARE),
            launches=_switch(environ, LAUNCHES, "1"),
            dump_signal=_signal(environ.get(DUMP_SIGNAL, "")),
            capture=_folder(environ.get(CAPTURE)),
            run=_run(environ.get(RUN, "")),
            key=_key(environ.get(DIGEST_KEY, "")),
        )


def _folder(given: str | Path | None) -> Path | None:
    return Path(given).absolute() if given else None


def names_in(given: str | Iterable[str]) -> tuple[str, ...]:
    """Names of hooks, as a list or with commas between; ("all",) where that is among them."""
    parts = given.split(",") if isinstance(given, str) else given
    names = tuple(sorted({part.strip() for part in parts} - {""}))
    return ("all",) if "all" in names else names


def _switch(environ: Mapping[str, str], name: str, otherwise: str = "") -> bool:
    value = environ.get(name) or otherwise
    if value not in ("", "0", "1"):
        raise SettingsError(f"{name} is 0 or 1, not {one_line(value)}")
    return value == "1"


def _signal(name: str) -> signal.Signals | None:
    if not name:
        return None
    if name not in _SIGNALS:
        raise SettingsError(f"{DUMP_SIGNAL} is {' or '.join(_SIGNALS)}, not {one_line(name)}")
    return signal.Signals[name]


def _run(name: str) -> str:
    """It becomes part of file names."""
    if not name:
        return secrets.token_hex(4)
    if not (name.isascii() and name.isalnum() and len(name) <= 32):
        raise SettingsError(f"{RUN} is up to 32 letters and digits, not {one_line(name)}")
    return name


def _key(text: str) -> bytes | None:
    if not text:
        return None
    # An environment may hold any bytes.
    key = text.encode(errors="surrogateescape")
    if len(key) < _SHORTEST_KEY:
        raise SettingsError(f"{DIGEST_KEY} must have {_SHORTEST_KEY} characters or more")
    return key
