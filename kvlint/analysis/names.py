"""Names of a project: what a dotted name means, and which class is a kind of which."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kvlint.analysis.files import Files
from kvlint.analysis.memory import Memory
from kvlint.analysis.outline import Definition, module_of

MANY_BASES = 60  # no real class has as many; what does is not followed to its end


def modules(paths: Iterable[str]) -> dict[str, str]:
    """Dotted name -> path; also without leading folders, where that names one file only.

    The root of a project is seldom the folder that imports start from (`src/`, `python/`).
    """
    whole = {module_of(path): path for path in paths}
    shorter: dict[str, str | None] = {}
    for name, path in whole.items():
        parts = name.split(".")
        for start in range(1, len(parts)):
            tail = ".".join(parts[start:])
            shorter[tail] = None if tail in shorter else path
    return {name: path for name, path in shorter.items() if path is not None} | whole


class Names(Files):
    def __init__(self, texts: Mapping[str, str], memory: Memory | None = None) -> None:
        super().__init__(texts, memory)
        self._modules = modules(texts)
        self._families: dict[str, tuple[str, ...]] = {}
        self._children: dict[str, list[tuple[str, str]]] | None = None

    def lookup(self, dotted: str, depth: int = 0) -> str | None:
        """Key of a function or class by its dotted name, through re-exports."""
        module, _, name = dotted.rpartition(".")
        rest = name
        while module:
            path = self._modules.get(module)
            if path is not None:
                found = self.outline(path)
                if found is None:
                    return None
                if rest in found.definitions or rest in found.classes:
                    return f"{path}::{rest}"
                head, _, tail = rest.partition(".")
                target = found.imports.get(head)
                if target and depth < 4 and target != dotted:
                    return self.lookup(f"{target}.{tail}" if tail else target, depth + 1)
                return None
            module, _, head = module.rpartition(".")
            rest = f"{head}.{rest}"
        return None

    def family(self, class_key: str) -> tuple[str, ...]:
        """The class and its bases as far as the project knows them, nearest first."""
        if class_key not in self._families:
            found: dict[str, None] = {}
            waiting = [class_key]
            while waiting and len(found) < MANY_BASES:
                key = waiting.pop()
                if key in found:
                    continue
                found[key] = None
                known = self.class_at(key)
                for base in reversed(known.bases) if known is not None else ():
                    named = self.class_named(key.partition("::")[0], base)
                    if named is not None:
                        waiting.append(named)
            self._families[class_key] = tuple(found)
        return self._families[class_key]

    def external_bases(self, class_key: str) -> set[str]:
        """Dotted names of bases that no project file defines."""
        result: set[str] = set()
        for key in self.family(class_key):
            known = self.class_at(key)
            found = self.outline(known.path) if known else None
            if known is None or found is None:
                continue
            for base in known.bases:
                if self.class_named(known.path, base) is None:
                    head, _, tail = base.partition(".")
                    resolved = found.imports.get(head, head)
                    result.add(f"{resolved}.{tail}" if tail else resolved)
        return result

    def class_named(self, path: str, name: str) -> str | None:
        found = self.outline(path)
        if found is None or not name:
            return None
        if name in found.classes:
            return f"{path}::{name}"
        head, _, tail = name.partition(".")
        target = found.imports.get(head)
        if target is None:
            return None
        key = self.lookup(f"{target}.{tail}" if tail else target)
        return key if key and self.class_at(key) else None

    def heirs(self, class_key: str) -> list[str]:
        """Classes of the project that derive from this one, by way of others too."""
        if self._children is None:
            table: dict[str, list[tuple[str, str]]] = defaultdict(list)
            for path in self.texts:
                for name, bases in self.listed(path).derived:
                    for base in bases.split(","):
                        table[base.strip().rpartition(".")[2]].append((path, name))
            self._children = table
        short = class_key.partition("::")[2].rpartition(".")[2]
        if not short:
            return []  # of a function, which is in no class
        self.basis.words.add(short)
        found: list[str] = []
        for path, name in self._children.get(short, ()):
            source = self.outline(path)
            for full in source.classes if source else ():
                key = f"{path}::{full}"
                if full.rpartition(".")[2] == name and class_key in self.family(key):
                    found.append(key)
        return found

    def home(self, class_key: str) -> list[str]:
        """Files that define the class, its bases and its heirs."""
        keys = [*self.family(class_key), *self.heirs(class_key)]
        return sorted({key.partition("::")[0] for key in keys} & self.texts.keys())

    def is_abstract(self, definition: Definition) -> bool:
        source = self.outline(definition.path)
        text = source.text(definition) if source else ""
        return "abstractmethod" in definition.decorators or (
            "NotImplementedError" in text and "return " not in text
        )
