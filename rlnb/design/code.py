"""A design as Python source: the cell that makes the same reward and state without a design file."""

from __future__ import annotations

import keyword
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from rlnb.design.design import Design
from rlnb.design.term import Term

#: columns of a line; a notebook's cell shows about this many at 1280 pixels
WIDTH = 100
#: names that the cell gives itself, and that a function may therefore not be called by
_OWN = ("rlnb", "reward", "state")
#: fields that are given without their keyword
_PLAIN = ("name", "names", "terms", "expression", "potential")


def to_code(design: Design, *, function_sources: Mapping[str, str] | None = None) -> str:
    """Returns the source of a cell that defines `reward` and `state`, equal to the design's.

    They are what `rlnb.Experiment(…, reward=reward, state=state)` takes: lists of terms and operations, or
    a `RewardSpec` where the reward has more than terms. Only what differs from the defaults is written.

    Args:
        function_sources: function's name → its source, written above; a function without one has to be
            defined in an earlier cell.
    """
    sources = function_sources or {}
    names = [part.python for part in design.reward.terms if isinstance(part, Term) and part.python]
    functions = [
        textwrap.dedent(sources[name]).strip("\n") for name in dict.fromkeys(names) if name in sources
    ]
    whole = _call(design.reward)
    reward = whole.items[0] if len(whole.items) == 1 else whole
    state = _Written("[", [_call(step) for step in design.state.ops], "]")
    blocks = ["import rlnb", *functions, f"reward = {_lay_out(reward, 9)}\nstate = {_lay_out(state, 8)}"]
    return "\n\n".join(blocks) + "\n"


@dataclass(frozen=True)
class _Written:
    """Source between two brackets: what may be broken into lines."""

    head: str
    items: Sequence[_Written | str]
    tail: str
    prefix: str = ""

    def line(self) -> str:
        inside = ", ".join(item if isinstance(item, str) else item.line() for item in self.items)
        return f"{self.prefix}{self.head}{inside}{self.tail}"


def _lay_out(part: _Written | str, column: int, indent: int = 0) -> str:
    """The source in one line where it fits, else one item a line; plain lists fill their lines."""
    if isinstance(part, str):
        return part
    # A list of calls is read row by row, and edited so.
    rows = part.head == "[" and any(isinstance(item, _Written) for item in part.items)
    if column + len(part.line()) <= WIDTH - 1 and not rows:
        return part.line()
    if not part.items:
        return part.line()
    inner = " " * (indent + 4)
    if all(isinstance(item, str) for item in part.items) and part.head == "[":
        body = _filled([str(item) for item in part.items], inner)
    else:
        body = "".join(f"{inner}{_lay_out(item, indent + 4, indent + 4)},\n" for item in part.items)
    return f"{part.prefix}{part.head}\n{body}{' ' * indent}{part.tail}"


def _filled(items: list[str], inner: str) -> str:
    lines, line = [], inner
    for item in items:
        if len(line) > len(inner) and len(line) + len(item) + 1 > WIDTH:
            lines.append(line.rstrip())
            line = inner
        line += f"{item}, "
    return "\n".join([*lines, line.rstrip()]) + "\n"


def _call(value: Any) -> _Written:
    """`rlnb.Kind(…)` with the fields that differ from their defaults."""
    items: list[_Written | str] = []
    keywords = False
    for item in fields(value):
        given = getattr(value, item.name)
        if not item.init or not item.compare or (item.name == "python" and isinstance(value, Term)):
            continue
        if isinstance(value, Term) and item.name == "expression" and value.python is not None:
            name = _function(value)
            keywords = keywords or name is None
            items.append(f"python={_literal(value.python)}" if name is None else name)
            continue
        default = item.default if item.default_factory is MISSING else item.default_factory()
        if repr(given) == repr(default) and item.name != "terms":  # unlike ==, repr tells 0.0 from -0.0
            continue
        plain = item.name in _PLAIN and not keywords
        keywords = keywords or not plain
        written = _literal(given)
        if not plain:
            key = f"{item.name}="
            written = key + written if isinstance(written, str) else _prefixed(key, written)
        items.append(written)
    return _Written(f"rlnb.{type(value).__name__}(", items, ")")


def _prefixed(key: str, written: _Written) -> _Written:
    return _Written(written.head, written.items, written.tail, prefix=key)


def _function(term: Term) -> str | None:
    """How a term's function is called in the cell; None where its name must stand as a text.

    An object with `__call__` is found by the name of its class, which in the cell is the class itself.
    """
    name = str(term.python)
    known = term.function is None or hasattr(term.function, "__name__")
    usable = name.isidentifier() and not keyword.iskeyword(name) and name not in _OWN
    return name if known and usable else None


def _literal(value: Any) -> _Written | str:
    if is_dataclass(value):
        return _call(value)
    if isinstance(value, tuple | list):
        pair = len(value) == 2 and all(isinstance(item, int | float) for item in value)
        brackets = "()" if pair else "[]"
        return _Written(brackets[0], [_literal(item) for item in value], brackets[1])
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        return _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    """The text in double quotes, where that needs no more escapes than single ones."""
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in written else written
