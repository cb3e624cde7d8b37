"""Every rule there is: the classes found in the modules of `kvlint.rules`.

A file whose name starts with an underscore is a helper of rules and holds none.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from functools import cache
from types import ModuleType

import kvlint.rules
from kvlint.rule import Rule


class RegistryError(Exception):
    """A rule file that holds no rule, or two rules that claim one code."""


@cache
def all_rules() -> tuple[Rule, ...]:
    """One instance of every rule, in the order of their codes. Raises RegistryError."""
    names = (module.name for module in pkgutil.iter_modules(kvlint.rules.__path__))
    modules = (
        importlib.import_module(f"kvlint.rules.{name}")
        for name in sorted(names)
        if not name.startswith("_")
    )
    return collect(modules)


def collect(modules: Iterable[ModuleType]) -> tuple[Rule, ...]:
    """The rules of these modules by code. Raises RegistryError."""
    by_code: dict[str, type[Rule]] = {}
    for module in modules:
        rule = _rule_of(module)
        other = by_code.setdefault(rule.code, rule)
        if other is not rule:
            raise RegistryError(
                f"{rule.code} is claimed by both {other.__module__} and {rule.__module__}"
            )
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
    if len(found) != 1:
        raise RegistryError(f"{module.__name__} must define one rule, it defines {len(found)}")
    return found[0]
