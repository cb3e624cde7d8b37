"""What the methods of a class and of its bases do to an object of it."""

import re

from kvlint.analysis.bodies import Body, Store
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.terms import Call, This


class Members:
    """Asked by the key of a class (`path::Class`); answers are kept."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._stored: dict[tuple[str, str], list[tuple[Body, Store]]] = {}
        self._called: dict[tuple[str, str], list[tuple[Body, Call]]] = {}
        self._listed: dict[str, list[tuple[Definition, str]]] = {}
        self._run: dict[tuple[str, str], bool] = {}

    def methods(self, kind: str) -> list[tuple[Definition, str]]:
        """All methods of a class and of its bases, nearest first, each with its text."""
        if kind not in self._listed:
            self._listed[kind] = []
            for key in self.program.family(kind):
                path, _, name = key.partition("::")
                source = self.program.outline(path)
                all_ = source.definitions.values() if source else ()
                own = (d for d in all_ if d.class_name == name)
                self._listed[kind] += [(d, self.program.text(d)) for d in own]
        return self._listed[kind]

    def method(self, kind: str, name: str) -> Definition | None:
        for key in self.program.family(kind):
            found = self.program.definition(f"{key}.{name}")
            if found is not None:
                return None if self.program.is_abstract(found) else found
        return None

    def stores(self, kind: str, name: str) -> list[tuple[Body, Store]]:
        """What the methods that an object of this class runs put into its field."""
        if (kind, name) not in self._stored:
            written = re.compile(rf"\.{re.escape(name)}\b(?!\()")
            self._stored[kind, name] = [
                (body, store)
                for definition, text in self.methods(kind)
                if written.search(text)
                and self.runs(kind, definition)
                and (body := self.program.body(definition)) is not None
                for store in body.stores
                if store.name == name and isinstance(store.of, This)
            ]
        return self._stored[kind, name]

    def runs(self, kind: str, definition: Definition) -> bool:
        """Whether an object of this class runs a method of its own or a base's: not one that is
        replaced, nor one that only replaced methods call."""
        key = (kind, definition.key)
        if key not in self._run:
            self._run[key] = True  # methods that call each other
            self._run[key] = self.program.runs_on(definition, kind) and self._is_called(
                kind, definition
            )
        return self._run[key]

    def _is_called(self, kind: str, definition: Definition) -> bool:
        called = f".{definition.short}("
        callers = [
            method for method, text in self.methods(kind) if method != definition and called in text
        ]
        return not callers or any(self.runs(kind, caller) for caller in callers)

    def calls(self, kind: str, name: str) -> list[tuple[Body, Call]]:
        """Calls of a method by the methods of the same object."""
        if (kind, name) not in self._called:
            self._called[kind, name] = [
                (body, site.call)
                for method, text in self.methods(kind)
                if f".{name}(" in text and (body := self.program.body(method)) is not None
                for site in body.calls
                if site.call.name == name and isinstance(site.call.receiver, This)
            ]
        return self._called[kind, name]
