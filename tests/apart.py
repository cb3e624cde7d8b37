"""Questions asked in a process of their own, for what may kill one."""

import os
import signal
import traceback
from collections.abc import Callable

MEGABYTES = 500


def apart(question: Callable[[], str], seconds: int) -> str:
    """The answer. What the question raises, what kills its process, and that it takes more than
    so many seconds or 500 MiB, are answers as well."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)  # its default action ends the process
        try:
            answer = question()
        except BaseException:
            answer = traceback.format_exc()
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer.encode("utf-8", "backslashreplace"))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return f"not done after {seconds} s"
    if code != 0:
        return f"ended with {code}"
    if usage.ru_maxrss > MEGABYTES * 1024:
        return f"took {usage.ru_maxrss // 1024} MiB"
    return answer
