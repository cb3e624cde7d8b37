"""Arms kvlint at the start of every Python process below `kvlint run`, then gives way.

Python imports the first `sitecustomize` it finds, and this one stands before the program's own,
which is imported after it as if this one were not there. While kvlint is armed its folder is
neither on `sys.path` nor in PYTHONPATH: a process started meanwhile would arm itself in turn.
Afterwards it is, for the processes that this one starts or hands its path to.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (before all else)


def _arm() -> None:
    """Says what is wrong in one line; only what is required and missing ends the process."""
    handed_on = os.environ.get("PYTHONPATH")
    if handed_on is not None:
        os.environ["PYTHONPATH"] = os.pathsep.join(_others(handed_on.split(os.pathsep)))
    try:
        from kvlint.runtime_checks import arm_from_environment

        arm_from_environment()
    except SystemExit as ended:
        # Raised from here it would be a fatal error of the interpreter, with a code of its own.
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        if sys.stderr is not None:
            print(f"kvlint: not armed: {sys.executable}: {text}", file=sys.stderr)
        if os.environ.get("KVLINT_REQUIRE"):
            os._exit(78)
    finally:
        if handed_on is not None:
            os.environ["PYTHONPATH"] = handed_on


def _import_own() -> None:
    """What the program's own sitecustomize raises is its own affair, as ever."""
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


def _others(path: list[str]) -> list[str]:
    return [entry for entry in path if os.path.abspath(entry) != _FOLDER]  # noqa: PTH100


def _start() -> None:
    path = list(sys.path)
    sys.path[:] = _others(path)
    try:
        _arm()
        if __name__ == "sitecustomize":
            _import_own()
    finally:
        # The program may have changed the path; only this folder comes back, to where it was.
        sys.path[0:0] = [entry for entry in path if os.path.abspath(entry) == _FOLDER][:1]  # noqa: PTH100


_start()
