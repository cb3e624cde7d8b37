"""Patterns for files and folders, as .gitignore writes them.

A pattern without a slash matches the name of a file or folder at any depth; one with a slash is a
path from the folder that the patterns belong to. `*` and `?` stay within one name, `**` is any
number of folders, `[ab]` one of these letters, `{one,other}` one of these words. A slash at the
end asks for a folder. What lies in a folder that matches, matches.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Globs:
    """Patterns that belong to `folder`, an absolute path with forward slashes."""

    folder: str
    _names: re.Pattern[str] | None
    _paths: re.Pattern[str] | None

    @classmethod
    def of(cls, patterns: Sequence[str], folder: str) -> Self:
        """Raises ValueError, with the pattern and what is wrong, for what is no pattern."""
        names: list[str] = []
        paths: list[str] = []
        for pattern in patterns:
            text = pattern.removeprefix(f"{folder}/")
            named = "/" not in pattern.removesuffix("/")
            text = text.removeprefix("./").removeprefix("/")
            if not text.strip("/"):
                raise ValueError(f"{pattern!r} names nothing")
            if ".." in text.split("/"):
                raise ValueError(f"{pattern!r} leads out of its folder")
            try:
                expression = _expression(text)
                re.compile(expression)
            except (ValueError, re.error) as error:
                reason = str(error) if type(error) is ValueError else "no such set of letters"
                raise ValueError(f"{pattern!r} is no pattern: {reason}") from None
            (names if named else paths).append(expression)
        return cls(folder, _any(names), _any(paths))

    def match(self, path: str, name: str, end: str = "") -> bool:
        """Whether a file is meant, or a folder when `end` is "/"; those above are not asked.

        `path` is absolute, `name` its last part.
        """
        if self._names is not None and self._names.fullmatch(name + end):
            return True
        if self._paths is None:
            return False
        within = _within(path, self.folder)
        return within is not None and self._paths.fullmatch(within + end) is not None

    def cover(self, path: str) -> bool:
        """Whether a file is meant, or a folder above it and below the folder of the patterns."""
        within = _within(path, self.folder)
        if within is None:
            return self.match(path, path.rpartition("/")[2])
        at, end = path, ""
        while len(at) > len(path) - len(within):
            if self.match(at, at.rpartition("/")[2], end):
                return True
            at, end = at.rpartition("/")[0], "/"
        return False


def _within(path: str, folder: str) -> str | None:
    top = folder if folder.endswith("/") else f"{folder}/"
    return path[len(top) :] if path.startswith(top) else None


def _any(expressions: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(expressions), re.DOTALL) if expressions else None


_SPECIAL = (  # as text: compiled only where there are patterns
    r"\\.|(?:^|(?<=/))\*\*(?:/|$)|\*+|\?|\[[!^]?\]?[^\]]*\]|[\\\[{},]"
)


def _expression(text: str) -> str:
    """A regular expression; a folder is matched with a slash at its end."""
    found, at, open_words = [], 0, False
    for special in re.finditer(_SPECIAL, text, re.DOTALL):
        found.append(re.escape(text[at : special.start()]))
        at = special.end()
        match special.group():
            case "**/":
                found.append("(?:.*/)?")
            case "**":
                found.append(".*" if at == len(text) else "[^/]*")
            case "?":
                found.append("[^/]")
            case "{" if open_words:
                raise ValueError("{ in {")
            case "{":
                open_words = True
                found.append("(?:")
            case "}" if open_words:
                open_words = False
                found.append(")")
            case ",":
                found.append("|" if open_words else ",")
            case "[":
                raise ValueError("[ without ]")
            case "\\":
                raise ValueError("\\ at its end")
            case star if star[0] == "*":
                found.append("[^/]*")
            case letters if letters[0] == "[":
                inside = letters[1:-1].replace("\\", r"\\").replace("[", r"\[")
                found.append(
                    f"(?!/)[{inside.replace('!', '^', 1) if inside[0] == '!' else inside}]"
                )
            case other:
                found.append(re.escape(other.removeprefix("\\")))
    if open_words:
        raise ValueError("{ without }")
    found.append(re.escape(text[at:]))
    expression = "".join(found)
    return expression if text.endswith("/") else f"{expression}/?"
