"""From the text of an expression to a small tree of allowed operations.

The text may come from a stranger's design file, so nothing of it is ever executed: Python's parser only
reads it, each node is looked up in a closed list, and length, nesting, size and exponents are bounded
before any number is computed. There is no attribute access, no string but a component's name, no
container, no lambda, and all arithmetic is float64, which cannot grow.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rlnb.design.expressions import functions
from rlnb.design.expressions.functions import CONSTANTS, FUNCTIONS, Kind, Operation
from rlnb.design.expressions.namespace import GROUPS, subscript
from rlnb.errors import ExpressionError, did_you_mean

#: characters, nested levels and operations an expression may have, and the magnitude of a constant exponent
MAX_LENGTH, MAX_DEPTH, MAX_SIZE, MAX_EXPONENT = 2000, 50, 400, 64.0

_BINARY: dict[type[ast.operator], Operation] = {
    ast.Add: functions.ADD, ast.Sub: functions.SUBTRACT, ast.Mult: functions.MULTIPLY,
    ast.Div: functions.DIVIDE, ast.FloorDiv: functions.FLOOR_DIVIDE, ast.Mod: functions.REMAINDER,
    ast.Pow: functions.POWER, ast.BitAnd: functions.AND, ast.BitOr: functions.OR, ast.BitXor: functions.XOR,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Operation] = {
    ast.USub: functions.NEGATE, ast.UAdd: functions.POSITIVE,
    ast.Not: functions.NOT, ast.Invert: functions.NOT,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Operation] = {
    ast.Lt: functions.LESS, ast.LtE: functions.LESS_EQUAL, ast.Gt: functions.GREATER,
    ast.GtE: functions.GREATER_EQUAL, ast.Eq: functions.EQUAL, ast.NotEq: functions.NOT_EQUAL,
}  # fmt: skip
_BITS = (functions.AND, functions.OR, functions.XOR)


@dataclass(frozen=True)
class Node:
    """A constant (`value`), a name, or an operation on `parts`.

    Attributes:
        position: 0-based offset in the text, for messages.
    """

    kind: Kind
    position: int
    value: float = math.nan
    name: str | None = None
    operation: Operation | None = None
    parts: tuple[Node, ...] = ()

    @property
    def is_constant(self) -> bool:
        """No name occurs below this node."""
        return self.name is None and all(part.is_constant for part in self.parts)


def parse(text: str) -> Node:
    """Reads an expression.

    Raises:
        ExpressionError: it is empty, not an expression, uses something not on the list, or is too large;
            `position` tells where.
    """
    if not isinstance(text, str):
        raise ExpressionError(f"An expression is a text such as 'abs(x) < 0.1', not {text!r:.60}.")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"The expression has {len(text)} characters; at most {MAX_LENGTH} are allowed. Split it into terms.",
            MAX_LENGTH,
        )
    if not text.strip():
        raise ExpressionError("The expression is empty; write one such as '-abs(x)'.", 0)
    for match in re.finditer(r"[\\#;\x00]|(?<![\w.])\d[\w.]*?(?<=[\d.])(?=and|or|if|else|in|is|not)", text):
        at = match.end() - 1
        raise ExpressionError(f"{text[at]!r} cannot stand here in an expression.", at)
    # one line for the parser, at unchanged offsets; leading blanks would be an indentation
    flat = re.sub(r"[\r\n\t\f\v]", " ", text)
    lead = len(flat) - len(flat.lstrip())
    try:
        tree = ast.parse(flat.strip(), mode="eval")
    except SyntaxError as error:
        at = lead + max((error.offset or 1) - 1, 0)
        raise ExpressionError(
            f"{_shown(text)} is not an expression: {error.msg} at character {at + 1}.", at
        ) from None
    except (MemoryError, RecursionError, ValueError):
        raise ExpressionError("The expression is nested too deeply; split it into terms.", 0) from None
    return _Reader(text, flat.strip(), lead).read(tree.body, 0)


class _Reader:
    """Turns the parser's nodes into ours, counting as it goes."""

    def __init__(self, text: str, parsed: str, lead: int) -> None:
        self._text = text
        self._bytes = parsed.encode()
        self._lead = lead
        self._size = 0

    def read(self, node: ast.expr, depth: int) -> Node:
        self._size += 1
        if depth > MAX_DEPTH:
            raise self._fault(
                node, f"The expression is nested more than {MAX_DEPTH} deep; split it into terms."
            )
        if self._size > MAX_SIZE:
            raise self._fault(
                node, f"The expression has more than {MAX_SIZE} operations; split it into terms."
            )
        match node:
            case ast.Constant(value=value):
                return self._constant(node, value)
            case ast.Name(id=name):
                if name in CONSTANTS:
                    return Node(Kind.NUMBER, self._at(node), value=CONSTANTS[name])
                if name in FUNCTIONS:
                    raise self._fault(node, f"{name} is a function; write {name}(…) with its arguments.")
                return Node(Kind.NUMBER, self._at(node), name=name)
            case ast.Subscript():
                return Node(Kind.NUMBER, self._at(node), name=self._subscripted(node))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._binary(node, _BINARY[type(op)], left, right, depth)
            case ast.UnaryOp(op=op, operand=operand):
                return self._make(node, _UNARY[type(op)], [self.read(operand, depth + 1)])
            case ast.BoolOp(op=op, values=values):
                operation = functions.AND if isinstance(op, ast.And) else functions.OR
                return self._make(node, operation, [self.read(value, depth + 1) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._comparison(node, left, ops, others, depth)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                parts = [self.read(part, depth + 1) for part in (test, body, orelse)]
                return self._make(node, functions.WHERE, parts)
            case ast.Call():
                return self._call(node, depth)
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=attr):
                raise self._fault(
                    node, f"Write {attr} without the 'np.' before it; expressions have no attributes."
                )
            case ast.Attribute(attr=attr):
                raise self._fault(
                    node,
                    f'Expressions have no attribute access (.{attr}); write a component as obs["{attr}"] or {attr}.',
                )
        raise self._fault(
            node,
            f"{self._source(node)} is not allowed in an expression; use numbers, names, operators and functions.",
        )

    def _constant(self, node: ast.expr, value: object) -> Node:
        if isinstance(value, bool):
            return Node(Kind.NUMBER, self._at(node), value=float(value))
        if isinstance(value, int | float):
            try:
                return Node(Kind.NUMBER, self._at(node), value=float(value))
            except OverflowError:
                raise self._fault(node, "This number is too large for a float64 (1.8e308).") from None
        raise self._fault(node, f"{value!r:.40} is not a number; only numbers can be used as values.")

    def _subscripted(self, node: ast.Subscript) -> str:
        match node:
            case ast.Subscript(value=ast.Name(id=group), slice=ast.Constant(value=str(name))):
                if group in GROUPS:
                    return subscript(group, name)
                raise self._fault(
                    node, f'{group!r} has no components.{did_you_mean(group, GROUPS)} Write {GROUPS[0]}["…"].'
                )
        raise self._fault(node, 'Only names may stand in brackets, as in obs["vy"].')

    def _binary(
        self, node: ast.expr, operation: Operation, left: ast.expr, right: ast.expr, depth: int
    ) -> Node:
        parts = [self.read(left, depth + 1), self.read(right, depth + 1)]
        if operation in _BITS:
            for part in parts:
                if part.kind is Kind.NUMBER and part.name is None:
                    raise self._fault(
                        node, "& | ^ bind tighter than comparisons: put each comparison in parentheses, "
                        "as in (x > 0) & (y < 1), or write 'and' and 'or'."
                    )  # fmt: skip
        if operation is functions.POWER:
            return self._power(node, right, parts)
        return self._make(node, operation, parts)

    def _power(self, node: ast.expr, right: ast.expr, parts: list[Node]) -> Node:
        if parts[1].is_constant:
            low, high = bounds(parts[1], {})
            if not -MAX_EXPONENT <= low <= high <= MAX_EXPONENT:
                raise self._fault(
                    node,
                    f"The exponent {self._source(right)} is too large; at most {MAX_EXPONENT:g} is allowed.",
                )
            if low == high == 2.0:
                return self._make(node, functions.SQUARE, parts[:1])
        return self._make(node, functions.POWER, parts)

    def _comparison(
        self, node: ast.expr, left: ast.expr, ops: Sequence[ast.cmpop], others: Sequence[ast.expr], depth: int
    ) -> Node:
        values = [self.read(value, depth + 1) for value in (left, *others)]
        tests = []
        for place, op in enumerate(ops):
            if type(op) not in _COMPARE:
                raise self._fault(
                    node, f"{type(op).__name__.lower()!r} is not allowed; compare with < <= > >= == !=."
                )
            tests.append(self._make(node, _COMPARE[type(op)], values[place : place + 2]))
        return tests[0] if len(tests) == 1 else self._make(node, functions.AND, tests)

    def _call(self, node: ast.Call, depth: int) -> Node:
        if not isinstance(node.func, ast.Name):
            if isinstance(node.func, ast.Attribute):
                self.read(node.func, depth + 1)
            raise self._fault(node, "Only functions from the list can be called, by their plain name.")
        name = node.func.id
        operation = FUNCTIONS.get(name)
        if operation is None:
            raise self._fault(
                node, f"{name!r} is not a function of expressions.{did_you_mean(name, FUNCTIONS)} "
                f"There are: {', '.join(sorted(FUNCTIONS))}."
            )  # fmt: skip
        if node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
            raise self._fault(node, f"{name} takes plain arguments only, as in {name}(x).")
        if not operation.least <= len(node.args) <= operation.most:
            wanted = (
                str(operation.least) if operation.least == operation.most else f"at least {operation.least}"
            )
            raise self._fault(node, f"{name} takes {wanted} argument(s), not {len(node.args)}.")
        parts = [self.read(part, depth + 1) for part in node.args]
        if operation.name == "power":
            return self._power(node, node.args[1], parts)
        return self._make(node, operation, parts)

    def _make(self, node: ast.expr, operation: Operation, parts: Sequence[Node]) -> Node:
        return Node(operation.gives, self._at(node), operation=operation, parts=tuple(parts))

    def _at(self, node: ast.expr) -> int:
        # the parser counts bytes of UTF-8
        return self._lead + len(self._bytes[: node.col_offset].decode(errors="ignore"))

    def _source(self, node: ast.expr) -> str:
        end = self._bytes[node.col_offset : node.end_col_offset].decode(errors="ignore")
        return _shown(end)

    def _fault(self, node: ast.expr, message: str) -> ExpressionError:
        return ExpressionError(message, self._at(node))


def bounds(node: Node, known: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """Returns bounds of a node from those of the names below it; a name not in `known` is unbounded."""
    if node.operation is not None:
        return node.operation.rule(*(bounds(part, known) for part in node.parts))
    if node.name is not None:
        return known.get(node.name, (-math.inf, math.inf))
    return (node.value, node.value) if not math.isnan(node.value) else (-math.inf, math.inf)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")
