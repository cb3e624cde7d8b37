"""Methods of somebody else's classes, replaced and put back."""

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

Method = Callable[..., Any]

INSTALLED: Final = "installed"


class Hooks:
    """What was replaced, and by what. `status` is by "label.name".

    The methods of the classes themselves are replaced, so it does not matter under which name, in
    which subclass or since when an engine has them.
    """

    def __init__(self) -> None:
        self._status: dict[str, str] = {}
        self._put: list[tuple[type | ModuleType, str, Method, Method]] = []
        self._live = True

    @property
    def status(self) -> Mapping[str, str]:
        return dict(self._status)

    def put(
        self,
        label: str,
        owner: type | ModuleType | None,
        name: str,
        make: Callable[[Method], Method],
        *,
        optional: bool = False,
    ) -> None:
        """Put what `make` makes of the owner's own method, or function, in its place.

        label     the owner's name in the status
        optional  where the owner has none, nothing is missing: some versions lack it
        """
        original = vars(owner).get(name) if owner is not None else None
        if owner is None or original is None:
            if not optional:
                self._status[f"{label}.{name}"] = "missing: this version has none"
            return
        checked = make(original)
        checked.__qualname__ = original.__qualname__

        @functools.wraps(original)
        def method(*args: Any, **kwargs: Any) -> Any:
            # Another tool may have kept this method beyond `uninstall`; then it is its own again.
            return (checked if self._live else original)(*args, **kwargs)

        setattr(owner, name, method)
        self._put.append((owner, name, original, method))
        self._status[f"{label}.{name}"] = INSTALLED

    def uninstall(self) -> None:
        """The methods are the owners' own again, also where somebody has wrapped them once more."""
        self._live = False
        for owner, name, original, method in self._put:
            if vars(owner).get(name) is method:
                setattr(owner, name, original)
        self._put.clear()

    def at_exit(self) -> None:
        """What is told when the process ends."""
