"""Programs that run in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# NIXL imports torch, where there is one, to learn which CUDA it is for: two seconds a process.
WITHOUT_TORCH = "import sys\nsys.modules['torch'] = None\n"


def kvlint(folder, *arguments):
    """The command, run in a folder and over this checkout."""
    return subprocess.run(
        [sys.executable, "-m", "kvlint", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "NIXL_LOG_LEVEL": "ERROR"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
