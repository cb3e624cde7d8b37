"""One specialisation of a kernel, and what was said of its launches so far."""

from collections.abc import Sequence
from typing import Any, Final

from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.launches.deciding import Reach, Rules
from kvlint.runtime_checks.launches.facts import Signature, memory_of, values_of
from kvlint.runtime_checks.launches.launch import Launch
from kvlint.runtime_checks.launches.reading import read
from kvlint.runtime_checks.launches.sources import source_of
from kvlint.runtime_checks.launches.tables import Table, tables_of
from kvlint.runtime_checks.launches.terms import Terms, UnreadableError

# Of a launch's arguments and what was said of them, some hundred bytes each.
KEPT: Final = 256
Key = tuple[object, ...]


class Kernel:
    """
    name      for people
    function  Python's, that it was made of, if it was
    compiled  and not interpreted
    tables    of loaded indices that can be looked at
    verdicts  by the arguments of a launch
    unread    why nothing is known of its accesses, or ""
    """

    def __init__(
        self, function: Any, signature: Signature, name: str = "", *, compiled: bool = True
    ) -> None:
        plain = getattr(function, "fn", function)
        self.compiled = compiled
        self.function = plain
        self.name = name or str(getattr(plain, "__qualname__", "a kernel"))
        self.own = str(getattr(plain, "__module__", "")).startswith("kvlint.")
        self.launches = 0
        self.verdicts: dict[Key, Sequence[Breach]] = {}
        self.rules: Rules | None = None
        self.tables: list[Table] = []
        self.unread = ""
        self._pointers = signature.pointers()
        self._integers = signature.integers()
        self._places = tuple(at for at, _ in self._integers)
        self._addresses = tuple(at for at, _ in self._pointers)
        self._sizes = {
            name: element.width
            for _, name in self._pointers
            if (element := signature.element(name)) is not None
        }
        self._reaches: dict[Key, Reach] = {}
        if not self.own:
            self._read(function, signature)

    def _read(self, function: Any, signature: Signature) -> None:
        terms = Terms()
        try:
            contract = read(source_of(function), signature.given(terms), terms)
        except UnreadableError as error:
            self.unread = str(error)
            return
        self.rules = Rules(contract)
        self.tables = tables_of(contract)

    def key(self, stamp: int, grid: Any, arguments: Sequence[Any]) -> Key:
        """Equal where nothing that a check looks at differs.

        stamp  of what is declared
        """
        parts = [stamp, *grid, *[arguments[at] for at in self._places]]
        for at in self._addresses:
            tensor = arguments[at]
            parts.append(tensor.data_ptr())
            try:
                storage = tensor.untyped_storage()
            except AttributeError:
                # One that stands around a tensor, or another package's array.
                parts.append(id(tensor))
                continue
            parts.append(storage.nbytes())
            parts.append(storage.data_ptr())
        return tuple(parts)

    def launch(self, grid: Sequence[int], arguments: Sequence[Any]) -> Launch:
        integers = {name: arguments[at] for at, name in self._integers}
        found = {
            name: memory_of(arguments[at], self._sizes[name])
            for at, name in self._pointers
            if name in self._sizes
        }
        memory = {name: place for name, place in found.items() if place is not None}
        return Launch(self.name, memory, values_of(integers, grid))

    def tensors(self, arguments: Sequence[Any]) -> dict[str, Any]:
        return {
            name: arguments[at]
            for at, name in self._pointers
            if hasattr(arguments[at], "untyped_storage")
        }

    def reach(self, launch: Launch) -> Reach | None:
        """Kept by what it depends on: layers differ in their addresses alone."""
        if self.rules is None:
            return None
        key = (launch.values.grid, *launch.values.arguments.values())
        found = self._reaches.get(key)
        if found is None:
            if len(self._reaches) >= KEPT:
                self._reaches.clear()
            found = self._reaches[key] = self.rules.reach(launch.values)
        return found

    def keep(self, key: Key, breaches: Sequence[Breach]) -> None:
        if len(self.verdicts) >= KEPT:
            self.verdicts.clear()
        self.verdicts[key] = breaches
