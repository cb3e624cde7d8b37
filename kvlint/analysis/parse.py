"""The parse of one definition by libcst, without the checks that only hand-made nodes need."""

import libcst as cst
from libcst._nodes.base import CSTNode


def parse(text: str) -> cst.Module:
    """Raises `cst.ParserSyntaxError`.

    libcst has each node check itself when it is made; what its own grammar built is valid, and
    the checks take a third of the parse.
    """
    kept = CSTNode.__post_init__
    CSTNode.__post_init__ = _unchecked  # type: ignore[assignment,method-assign]
    try:
        return cst.parse_module(text)
    finally:
        CSTNode.__post_init__ = kept  # type: ignore[method-assign]


def _unchecked(node: CSTNode) -> None:
    return None
