"""What the scripts here share: which release they are about, and how they end."""

import logging
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType
from unittest.mock import MagicMock


def needed(name: str, wanted: str) -> None:
    """Ends where another release of the package would be measured, or none."""
    try:
        found = version(name)
    except PackageNotFoundError:
        found = "none"
    if found != wanted:
        sys.exit(f"{name} {wanted} is needed, found {found}")
    logging.disable()


def stand_in(*packages: str) -> None:
    """For packages that the release imports and that nothing here calls, where they are absent."""
    sys.meta_path.append(StandIns({name for name in packages if find_spec(name) is None}))


class StandIns(MetaPathFinder, Loader):
    """Modules of these packages, whatever is asked of them."""

    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self.packages:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return MagicMock()

    def exec_module(self, module: ModuleType) -> None:
        pass


def end(*, shows: bool, control: bool) -> None:
    """Exit status 0: the fault shows, and does not where nothing breaks the assumption."""
    sys.exit(0 if shows and control else 1)
