"""Parameters: what the notebook's parameters cell offers, and how values are carried into it.

A value travels as Python source in a cell after the parameters cell, so that it arrives exactly:
no JSON in between turns a tuple into a list or a NaN into a syntax error.
"""

from __future__ import annotations

import ast
import datetime
import itertools
import json
import math
import re
import zoneinfo
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any

from rlnb.errors import ParameterError, SecretError, UsageError, did_you_mean
from rlnb.jobs.notebook import INJECTED, PARAMETERS, Cell, Notebook
from rlnb.run.secrets import Redactor, describe_secret, is_secret_name

_DATETIMES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone)


@dataclass(frozen=True)
class ParametersCell:
    """The cell tagged "parameters".

    Attributes:
        cell: the cell.
        defaults: name → the default's source, in the cell's order.
    """

    cell: Cell
    defaults: Mapping[str, str]


def find_parameters(notebook: Notebook) -> ParametersCell | None:
    """Return the first cell tagged "parameters", or None.

    Raises:
        ParameterError: the cell is not valid Python.
    """
    cell = next((cell for cell in notebook.code if PARAMETERS in cell.tags), None)
    if cell is None:
        return None
    try:
        tree = ast.parse(cell.source)
    except SyntaxError as error:
        raise ParameterError(
            f"The parameters cell is not plain Python (line {error.lineno}: {error.msg}); keep assignments in it only."
        ) from None
    defaults: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                defaults.update(_bindings(target, statement.value))
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            defaults.update(_bindings(statement.target, statement.value))
    return ParametersCell(cell, defaults)


def _bindings(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    """Names bound by one assignment, with the source of what each gets."""
    if isinstance(target, ast.Name):
        yield target.id, ast.unparse(value)
    elif isinstance(target, ast.Tuple | ast.List):
        same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values = (
            value.elts if same and isinstance(value, ast.Tuple | ast.List) else [value] * len(target.elts)
        )
        for element, part in zip(target.elts, values, strict=True):
            yield from _bindings(element, part)


def check_parameters(notebook: Notebook, values: Mapping[str, Any], redactor: Redactor) -> None:
    """Refuse values that the notebook does not take, that cannot be carried, or that are secret.

    Raises:
        ParameterError: no parameters cell, an unknown name, or a value that cannot be carried.
        SecretError: the name or the value looks like a secret.
    """
    cell = find_parameters(notebook) if values else None
    for name, value in values.items():
        if is_secret_name(name):
            raise SecretError(
                f"The parameter {name!r} is named like a secret, and parameters are written down; "
                f"put it into an environment variable and pass env_vars=[{name.upper()!r}] (--env {name.upper()})."
            )
        text = value if isinstance(value, str) else repr(value)
        what = describe_secret(text)
        holder = redactor.find(text)
        if what or holder:
            reason = f"holds the value of {holder}" if holder else f"looks like {what}"
            raise SecretError(
                f"The value of parameter {name!r} {reason}, and parameters are written down; "
                "pass it as an environment variable named in env_vars=[…] (--env NAME)."
            )
        if cell is None:
            raise ParameterError(
                f"{notebook.path.name} has no cell tagged 'parameters', so {name}={text} cannot be set; "
                "tag the cell that assigns its defaults."
            )
        if name not in cell.defaults:
            known = ", ".join(cell.defaults) or "nothing"
            raise ParameterError(
                f"{name!r} is not in the parameters cell of {notebook.path.name} (it has {known})."
                + did_you_mean(name, cell.defaults)
            )
        to_source(value, name)


def to_source(value: Any, name: str) -> str:
    """Return Python source that evaluates to exactly this value.

    Args:
        value: int, float (NaN and infinities too), complex, str, bytes, bool, None; list, tuple, dict, set
            and frozenset of such; range, numpy scalars, Path, datetime values, Decimal, Fraction.
        name: of the parameter, for the message.

    Raises:
        ParameterError: the value is of another type, which is named.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, range):
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if kind is complex:
        return f"complex({to_source(value.real, name)}, {to_source(value.imag, name)})"
    if kind is list:
        return "[" + ", ".join(to_source(item, name) for item in value) + "]"
    if kind is tuple:
        return "(" + "".join(to_source(item, name) + ", " for item in value) + ")"
    if kind is dict:
        pairs = (f"{to_source(key, name)}: {to_source(item, name)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if kind in (set, frozenset):
        # Sorted, because a set's own order varies with the process's hash seed.
        return f"{kind.__name__}([" + ", ".join(sorted(to_source(item, name) for item in value)) + "])"
    if isinstance(value, PurePath):
        return f"__import__('pathlib').{'Path' if isinstance(value, Path) else kind.__name__}({str(value)!r})"
    zone = getattr(value, "tzinfo", None)
    if kind in _DATETIMES and type(zone) in (type(None), datetime.timezone, zoneinfo.ZoneInfo):
        source = re.sub(r"\bdatetime\.", "__import__('datetime').", repr(value))
        return re.sub(r"\bzoneinfo\.", "__import__('zoneinfo').", source)
    if kind in (Decimal, Fraction):
        return f"__import__({kind.__module__!r}).{kind.__name__}({str(value)!r})"
    return _numpy_source(value, name)


def _numpy_source(value: Any, name: str) -> str:
    kind = type(value)
    if kind.__module__ == "numpy" and hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        if kind.__name__ in ("datetime64", "timedelta64"):
            unit = str(value.dtype).partition("[")[2].rstrip("]")
            count = None if str(value) == "NaT" else int(value.astype("int64"))
            return f"__import__('numpy').{kind.__name__}({'NaT' if count is None else count!r}, {unit!r})"
        if value.dtype.kind in "biufc" and value.dtype.name != "longdouble" and value.itemsize <= 16:
            # float32 → float64 → float32 is exact, and so is every integer.
            return f"__import__('numpy').{value.dtype.name.replace('bool', 'bool_')}({to_source(value.item(), name)})"
        if value.dtype.kind in "US":
            return f"__import__('numpy').{kind.__name__}({value.item()!r})"
    hint = "; pass .tolist() of it" if hasattr(value, "tolist") else "; build it in a cell from plain values"
    raise ParameterError(
        f"The parameter {name!r} holds a {kind.__module__}.{kind.__qualname__}, which cannot be carried exactly{hint}."
    )


def to_record(value: Any, name: str) -> Any:
    """Return the value as run.yaml holds it: itself where YAML keeps it, else {"python": source}."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is list:
        return [to_record(item, name) for item in value]
    return {"python": to_source(value, name)}


def inject(notebook: Notebook, values: Mapping[str, Any]) -> Notebook:
    """Return the notebook with a cell after the parameters cell that sets the values.

    Cells that papermill or an earlier promotion injected are replaced; their values are expected to
    be among `values` (see `injected_values`).
    """
    cells = [cell for cell in notebook.cells if INJECTED not in cell.tags]
    if not values:
        return notebook.with_cells(cells)
    source = "# Parameters\n" + "".join(
        f"{name} = {to_source(value, name)}\n" for name, value in values.items()
    )
    at = next((n for n, cell in enumerate(cells, start=1) if PARAMETERS in cell.tags), 0)
    cells.insert(at, Cell("injected-parameters", "code", source.rstrip("\n"), (INJECTED,)))
    return notebook.with_cells(cells)


def injected_values(notebook: Notebook) -> dict[str, Any]:
    """Return what an injected-parameters cell of the notebook sets (plain papermill's, or ours).

    Raises:
        ParameterError: the cell holds something other than values.
    """
    values: dict[str, Any] = {}
    for cell in notebook.code:
        if INJECTED not in cell.tags:
            continue
        try:
            for statement in ast.parse(cell.source).body:
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    values[statement.targets[0].id] = _evaluate(statement.value)
        except (SyntaxError, ValueError) as error:
            raise ParameterError(
                f"The injected parameters cell holds more than plain values ({error}); "
                "remove it and set the values with -p NAME=VALUE."
            ) from None
    return values


def _evaluate(node: ast.expr) -> Any:
    """A literal, `float('nan')` and the like included: what papermill writes."""
    if isinstance(node, ast.List):
        return [_evaluate(item) for item in node.elts]
    if isinstance(node, ast.Dict) and all(node.keys):
        return {
            _evaluate(k): _evaluate(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None
        }
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
        return float(ast.literal_eval(node.args[0]))
    return ast.literal_eval(node)


def expand_grid(grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every combination of a grid's values, the last name varying fastest.

    Raises:
        UsageError: a name has no values, or something that is not a collection of values.
    """
    columns: list[list[Any]] = []
    for name, values in grid.items():
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
            raise UsageError(
                f"grid[{name!r}] is {values!r}; give a list or range of values, for example range(5)."
            )
        columns.append([value.item() if _is_array_scalar(value) else value for value in values])
        if not columns[-1]:
            raise UsageError(f"grid[{name!r}] is empty; give at least one value.")
    if not columns:
        raise UsageError('grid={} has no names; give for example grid={"seed": range(5)}.')
    combinations = [dict(zip(grid, row, strict=True)) for row in itertools.product(*columns)]
    distinct = {json.dumps({n: to_source(v, n) for n, v in row.items()}) for row in combinations}
    if len(distinct) < len(combinations):
        raise UsageError(
            f"The grid over {', '.join(grid)} names the same combination twice; remove the duplicates."
        )
    return combinations


def _is_array_scalar(value: Any) -> bool:
    """Whether a value is a 64-bit element of an array, which a person means as a plain number."""
    return (
        type(value).__module__ == "numpy"
        and getattr(value, "itemsize", 0) == 8
        and type(value).__name__ in ("int64", "float64")
    )
