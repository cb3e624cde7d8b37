"""What the engine refuses: each message is one line, made to be printed as it is."""


class UsageError(Exception):
    """The caller asked for something that does not exist; the command line exits with 2."""


class RuleError(Exception):
    """A rule raised, `cause` in one line. The other rules are not affected."""

    def __init__(self, code: str, name: str, cause: str) -> None:
        super().__init__(f"internal error in {code} ({name}): {cause}")
        self.code = code


def one_line(error: BaseException) -> str:
    """`KeyError: 'x'`, whatever line breaks the error's own text has."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
