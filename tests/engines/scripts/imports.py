"""Imports the modules that are named, and prints what this environment has of `kvlint-geometry`
and of the distribution named first."""

import importlib
import json
import sys
from importlib.metadata import entry_points, version

distribution, *modules = sys.argv[1:]
for module in modules:
    importlib.import_module(module)
print(
    json.dumps(
        {
            "version": version(distribution),
            "kvlint": version("kvlint-geometry"),
            "doors": [door.group for door in entry_points(name="kvlint")],
            "armed": "kvlint" in sys.modules,
        }
    )
)
