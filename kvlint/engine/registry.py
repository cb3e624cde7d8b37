"""Every rule there is: the classes found in the modules of `kvlint.rules`.

A file whose name starts with an underscore is a helper of rules and holds none.
"""

import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterable
from functools import cache
from types import ModuleType

import kvlint.rules
from kvlint.engine.errors import UsageError, one_line
from kvlint.rule import Rule


class RegistryError(UsageError):
    """A rule file that cannot be loaded or holds no rule, or two rules that claim one code."""


@cache
def all_rules() -> tuple[Rule, ...]:
    """One instance of every rule, in the order of their codes. Raises RegistryError."""
    names = (module.name for module in pkgutil.iter_modules(kvlint.rules.__path__))
    return collect(_loaded(name) for name in sorted(names) if not name.startswith("_"))


def collect(modules: Iterable[ModuleType]) -> tuple[Rule, ...]:
    """The rules of these modules by code. Raises RegistryError."""
    by_code: dict[str, type[Rule]] = {}
    for module in modules:
        rule = _rule_of(module)
        if not hasattr(rule, "code"):
            raise RegistryError(f"{_place(rule)}: {rule.__name__} has no code")
        other = by_code.setdefault(rule.code, rule)
        if other is not rule:
            raise RegistryError(f"{_place(rule)}: {rule.code} is the code of {_place(other)}, too")
    return tuple(by_code[code]() for code in sorted(by_code))


def _rule_of(module: ModuleType) -> type[Rule]:
    # What a module imports from another is that other module's rule, or no rule at all.
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Rule)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    ]
    if not found:
        why = "no class derived from Rule that has a `check`"
        raise RegistryError(f"{_file(module.__name__)}:1: holds no rule: {why}")
    if len(found) > 1:
        raise RegistryError(f"{_place(found[1])}: a second rule: each has a file of its own")
    return found[0]


def _loaded(name: str) -> ModuleType:
    full = f"kvlint.rules.{name}"
    try:
        return importlib.import_module(full)
    except SyntaxError as error:
        where = _shown(error.filename) if error.filename else full
        raise RegistryError(f"{where}:{error.lineno or 1}: {error.msg}") from error
    except Exception as error:  # the file is run, and may do anything
        from importlib.util import find_spec
        from traceback import extract_tb

        spec = find_spec(full)
        path = (spec and spec.origin) or full
        lines = [at.lineno for at in extract_tb(error.__traceback__) if at.filename == path]
        line = (lines and lines[-1]) or 1
        raise RegistryError(f"{_shown(path)}:{line}: {one_line(error)}") from error


def _place(rule: type[Rule]) -> str:
    try:
        line = inspect.getsourcelines(rule)[1]
    except (OSError, TypeError):  # a class that was made, not written
        line = 1
    return f"{_file(rule.__module__)}:{line}"


def _file(module: str) -> str:
    loaded = sys.modules.get(module)
    return _shown(loaded.__file__) if loaded and loaded.__file__ else module


def _shown(file: str) -> str:
    """Where the file really is: a checkout reaches `rules` by a link."""
    return os.path.relpath(os.path.realpath(file))
