"""Whether files can be read and parsed at all, asked of Python's own parser, and what their
comments tell kvlint.

The analysis opens only files that speak of cache memory. A file that it never opens may be
broken too, and whoever asked for it wants to know, under a folder as under its own name.
"""

import io
import symtable
import tokenize
import warnings
from dataclasses import dataclass

from kvlint.engine.directives import directives
from kvlint.findings import Directive, Fault, Span
from kvlint.tree import Tree


@dataclass(frozen=True, slots=True)
class Looked:
    """What Python's parser says of a file, and what comments in it tell kvlint."""

    faults: tuple[Fault, ...] = ()
    directives: tuple[Directive, ...] = ()


_SILENT = Looked()


def look(tree: Tree, path: str) -> Looked:
    """One fault when `path` is no Python, else its comments for kvlint. Nothing is run."""
    match _text(tree, path):
        case Fault() as fault:
            return Looked(faults=(fault,))
        case str(source) if told := directives(path, source):
            return Looked(directives=tuple(told))
    return _SILENT


def _text(tree: Tree, path: str) -> str | Fault:
    start = Span(path, 1, 1, 1, 1)
    try:
        data = tree.read(path)
    except OSError as error:
        return Fault("unreadable", start, error.strerror or str(error))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        # Text, not bytes: positions then count characters.
        return _parsed(path, data.decode(encoding))
    except SyntaxError as error:
        return Fault("invalid-syntax", _span(path, error), error.msg)
    except LookupError as error:
        return Fault("invalid-syntax", start, f"unknown encoding: {error}")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Fault("invalid-syntax", Span(path, line, 1, line, 1), str(error))
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes, codecs, nesting
        return Fault("invalid-syntax", start, str(error) or "nested too deeply")


def _parsed(path: str, source: str) -> str:
    """The text, in older syntax where this Python is too old for it. Raises as `compile` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a SyntaxWarning of the checked code is not ours
        try:
            # Parses as `ast.parse` does, without building the tree: two thirds of the time.
            symtable.symtable(source, path, "exec")
        except SyntaxError:
            from kvlint.analysis.newer import in_older_syntax

            older = in_older_syntax(source)
            if older is None:
                raise
            symtable.symtable(older, path, "exec")
            return older
    return source


def _span(path: str, error: SyntaxError) -> Span:
    """Where Python points; it leaves out, or sets to 0 or -1, what it does not know."""
    line, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
    end = (max(error.end_lineno or 0, line), max(error.end_offset or 0, 0))
    end_line, end_column = max(end, (line, column + 1))
    return Span(path, line, column, end_line, end_column)
