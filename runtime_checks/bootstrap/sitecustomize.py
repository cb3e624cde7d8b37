"""Arms kvlint at the start of every Python process below `kvlint run`, then gives way.

Python imports the first `sitecustomize` it finds, and this one stands before the program's own,
which is imported after it as if this one were not there. It stays on the path: a process may
hand its path on to those it starts.
"""

import os
import sys


def _arm() -> None:
    """Says what is wrong in one line; only what is required and missing ends the process."""
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


def _give_way() -> None:
    """What the program's own sitecustomize raises is its own affair, as ever."""
    own, path = sys.modules.pop(__name__), list(sys.path)
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (before all else)
    sys.path[:] = [entry for entry in path if os.path.abspath(entry) != folder]  # noqa: PTH100
    try:
        __import__(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
    finally:
        # It may have changed the path; only this folder comes back, to where it was.
        added = [entry for entry in path if os.path.abspath(entry) == folder]  # noqa: PTH100
        sys.path[0:0] = added[:1]
        sys.modules.setdefault(__name__, own)


_arm()
if __name__ == "sitecustomize":
    _give_way()
