"""Parameters: what the notebook's parameters cell offers, and the cell that sets them for a run."""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlnb.errors import ParameterError, SecretError, UsageError, did_you_mean
from rlnb.jobs.capture.carrying import recorded_source, to_source
from rlnb.jobs.capture.notebook import INJECTED, PARAMETERS, Cell, Notebook
from rlnb.run.secrets import Redactor, describe_secret, is_secret_name


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


def inject(notebook: Notebook, values: Mapping[str, Any]) -> Notebook:
    """Return the notebook with a cell after the parameters cell that sets the values.

    Cells that papermill or an earlier promotion injected are replaced; their values are expected to
    be among `values` (see `injected_values`).
    """
    return _inject(notebook, {name: to_source(value, name) for name, value in values.items()})


def inject_recorded(notebook: Notebook, recorded: Mapping[str, Any]) -> Notebook:
    """Return the notebook with the values that run.yaml holds, as `to_record` wrote them."""
    return _inject(notebook, {name: recorded_source(value, name) for name, value in recorded.items()})


def _inject(notebook: Notebook, sources: Mapping[str, str]) -> Notebook:
    cells = [cell for cell in notebook.cells if INJECTED not in cell.tags]
    if not sources:
        return notebook.with_cells(cells)
    source = "# Parameters\n" + "\n".join(f"{name} = {text}" for name, text in sources.items())
    at = next((n for n, cell in enumerate(cells, start=1) if PARAMETERS in cell.tags), 0)
    cells.insert(at, Cell("injected-parameters", "code", source, (INJECTED,)))
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
    if not isinstance(grid, Mapping):
        raise UsageError(f'grid={grid!r:.80} is no mapping; give for example grid={{"seed": range(5)}}.')
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
