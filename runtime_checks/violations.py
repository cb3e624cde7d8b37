"""What is raised where the mode raises."""

from collections.abc import Mapping


class Violation(RuntimeError):  # noqa: N818 (it is no fault of the program that raises it)
    """A check failed. As text its one-line message.

    record  the object that was written as evidence
    """

    def __init__(self, message: str, record: Mapping[str, object]) -> None:
        super().__init__(message)
        self.record = record

    def __reduce__(self) -> tuple[type["Violation"], tuple[str, dict[str, object]]]:
        return type(self), (str(self), dict(self.record))
