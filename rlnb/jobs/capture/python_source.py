"""Notebook cells as Python: magics are translated the way IPython does it."""

from __future__ import annotations

import ast
import functools
import warnings
from typing import Any

#: Cell magics whose body is Python that runs in the notebook's namespace.
_TRANSPARENT = frozenset({"time", "timeit", "capture", "prun"})


@functools.cache
def _transformer() -> Any:
    from IPython.core.inputtransformer2 import TransformerManager

    manager: Any = TransformerManager
    return manager()


def parse_cell(source: str) -> ast.Module | None:
    """Parse a cell, magics included.

    The body of `%%time` and its like is parsed in their place, at the lines it has in the cell.

    Returns:
        The tree, or None when the cell is no Python (a `%%bash` cell, or a syntax error).
    """
    stripped = source.lstrip()
    if stripped.startswith("%%"):
        first, _, body = stripped.partition("\n")
        if first[2:].split(" ")[0].strip() not in _TRANSPARENT:
            return None
        source = "\n" * (source.count("\n", 0, source.index("%%")) + 1) + body
    # Plain Python, which most cells are, is parsed without IPython: importing it takes half a second.
    tree = _parse(source)
    return tree if tree is not None else _parse(str(_transformer().transform_cell(source)))


def _parse(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            # A user's "\d" is theirs to mend when they run it, not a warning of every promotion.
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
