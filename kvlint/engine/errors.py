"""What the engine refuses: each message is one line, made to be printed as it is."""


class UsageError(Exception):
    """The caller asked for something that does not exist; the command line exits with 2."""


class InternalError(Exception):
    """Something of kvlint's own failed; what it did not concern goes on."""


class RuleError(InternalError):
    """A rule raised, `cause` in one line, at `path` and `more` other files. The other rules are
    not affected."""

    def __init__(self, code: str, name: str, cause: str, path: str, more: int = 0) -> None:
        others = f" (and {more} more {'file' if more == 1 else 'files'})" if more else ""
        super().__init__(f"internal error in {code} ({name}) on {path}{others}: {cause}")
        self.code = code


class FileError(InternalError):
    """A file could not be checked; the other files are not affected."""

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"internal error on {path}, which is not checked: {cause}")
        self.path = path


def one_line(error: BaseException) -> str:
    """`KeyError: 'x'`, whatever line breaks the error's own text has."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
