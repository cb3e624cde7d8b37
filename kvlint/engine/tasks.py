"""One task done, or what kept it from being done."""

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kvlint.engine.errors import one_line

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Died:
    """Why there is no result, in words: what was raised, or what ended the process."""

    how: str


def done(work: Callable[[Task], Result], task: Task) -> Result | Died:
    """What `work` makes of a task, in this process."""
    try:
        return work(task)
    except Exception as error:  # ours, whatever it is: it may cost this task and no other
        if os.environ.get("KVLINT_DEBUG"):
            traceback.print_exc()
        return Died(one_line(error))
