"""Expressions: safe, vectorised, and the same bytes however a batch is cut.

What is guaranteed: the value of a row depends on that row alone, bit for bit. That holds because every
operation is elementwise over contiguous float64 arrays (numpy's vector loops give the same bits in their
tails, which the tests check on the machine at hand), because there is no reduction across rows, and because
every NaN is replaced by the one quiet NaN at the end (its sign is the one thing vector lanes and tails
disagree on). That freedom is used: long batches are evaluated in blocks that stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.expressions import syntax
from rlnb.design.expressions.functions import Kind
from rlnb.design.expressions.interval import Interval
from rlnb.design.expressions.namespace import hint, plain_names
from rlnb.design.expressions.syntax import Node
from rlnb.errors import ExpressionError

#: rows evaluated at a time; a few arrays of this length stay in a core's cache
BLOCK = 8192

_Step = Callable[[Mapping[str, Any]], Any]


class Expression:
    """A compiled expression.

    Attributes:
        text: as it was written.
        names: every name it uses (canonical spelling, `obs["vy"]` for subscripts) → 0-based position of
            its first use.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = syntax.parse(text)
        self.names: dict[str, int] = {}
        _collect(self._tree, self.names)
        self._run = _number(self._tree)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def check(self, names: Collection[str]) -> None:
        """Checks that every name is known.

        Raises:
            ExpressionError: with the position of the first unknown name, and the nearest known one.
        """
        for name, position in self.names.items():
            if name not in names:
                raise ExpressionError(
                    f"{name!r} in {self.text!r:.80} is not a known name.{hint(name, names)} "
                    f"There are: {', '.join(plain_names(names)) or 'none'}.",
                    position,
                )

    def evaluate(self, namespace: Mapping[str, Array], *, rows: int | None = None) -> Array:
        """Computes the expression.

        Args:
            namespace: every used name → float64 (n,) array; a scalar counts for all rows.
            rows: n, needed only for an expression that uses no array.

        Returns:
            float64 (n,), a fresh array without negative NaNs. Overflow and invalid operations give
            inf and NaN silently: what to do about them is the caller's to say.
        """
        if rows is None:
            rows = next((len(namespace[name]) for name in self.names if np.ndim(namespace[name])), 1)
        result = np.empty(rows)
        with np.errstate(all="ignore"):
            self.fill(result, namespace)
            return quiet(result)

    def fill(self, out: Array, namespace: Mapping[str, Array]) -> None:
        """Computes the expression into `out`, float64 (n,), for a caller that has silenced numpy's warnings
        and makes NaNs quiet itself (`quiet`)."""
        rows = len(out)
        used = {name: namespace[name] for name in self.names}
        if rows <= BLOCK:
            out[...] = self._run(used)
            return
        for start in range(0, rows, BLOCK):
            part = slice(start, start + BLOCK)
            out[part] = self._run(
                {name: values[part] if np.ndim(values) else values for name, values in used.items()}
            )

    def bounds(self, known: Mapping[str, Interval]) -> Interval:
        """Returns bounds of the value from bounds of the names; a name left out is unbounded."""
        with np.errstate(all="ignore"):
            return syntax.bounds(self._tree, dict(known))


def compile_expression(text: str, names: Collection[str] | None = None) -> Expression:
    """Compiles the text of an expression.

    Args:
        text: for example `-abs(vy) * (y < 0.2)`; see `functions.FUNCTIONS` for what may be called.
        names: the known names (a batch's `namespace`, or any collection); None leaves the check for later.

    Raises:
        ExpressionError: with `position`, the 0-based offset of the fault.
    """
    expression = Expression(text)
    if names is not None:
        expression.check(names)
    return expression


def quiet(values: Array) -> Array:
    """Replaces every NaN, in place, by the one quiet positive NaN; the caller has silenced warnings."""
    # a sum is NaN where any number is (or where infinities cancel, which the exact test then sorts out)
    if not math.isfinite(np.add.reduce(values, axis=None)):
        values[values != values] = np.nan
    return values


def _collect(node: Node, names: dict[str, int]) -> None:
    if node.name is not None:
        names.setdefault(node.name, node.position)
    for part in node.parts:
        _collect(part, names)


def _number(node: Node) -> _Step:
    """Returns a step that gives the node as float64."""
    step = _step(node)
    if node.kind is Kind.NUMBER:
        return step
    return lambda used: step(used).astype(np.float64)


def _truth(node: Node) -> _Step:
    """Returns a step that gives the node as bool: a number is true where it is not 0."""
    step = _step(node)
    if node.kind is Kind.TRUTH:
        return step
    return lambda used: np.not_equal(step(used), 0.0)


def _step(node: Node) -> _Step:
    if node.name is not None:
        name = node.name
        return lambda used: used[name]
    operation = node.operation
    if operation is None:
        value = np.float64(node.value)
        return lambda used: value
    function = operation.function
    parts = [
        _number(part) if operation.kind_of(place) is Kind.NUMBER else _truth(part)
        for place, part in enumerate(node.parts)
    ]
    if node.is_constant:
        with np.errstate(all="ignore"):
            fixed = np.asarray(function(*(part({}) for part in parts)))[()]
        return lambda used: fixed
    if len(parts) == 1:
        (only,) = parts
        return lambda used: function(only(used))
    if len(parts) == 2:
        first, second = parts
        return lambda used: function(first(used), second(used))
    return lambda used: function(*(part(used) for part in parts))
