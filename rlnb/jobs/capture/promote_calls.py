"""The `promote()` calls of a notebook, read off its source: what the command line can choose from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from rlnb.errors import CaptureError, UsageError, did_you_mean
from rlnb.jobs.capture.notebook import Notebook
from rlnb.jobs.capture.python_source import parse_cell


@dataclass(frozen=True)
class PromoteCall:
    """One `promote()` call in the source.

    Attributes:
        cell: id of its cell.
        call: 1 for the first in the cell.
        names: what its experiment is called: the variable and, where the source says it, the name.
        label: the experiment's name, where the source says it.
        straight: whether it is executed exactly once, so that it is the `call`-th when the cell runs.
    """

    cell: str
    call: int
    names: tuple[str, ...]
    label: str | None
    straight: bool


def find_promotes(notebook: Notebook) -> list[PromoteCall]:
    """List the `promote(…)` and `rlnb.promote(…)` calls of the cells that a job runs, in order."""
    labels: dict[str, str] = {}
    calls = []
    for cell in notebook.code:
        tree = parse_cell(cell.source) if cell.in_job else None
        count = 0
        straight = True
        for node, once in _in_order(tree, once=True) if tree else ():
            if isinstance(node, ast.Assign) and (label := _label(node.value, labels)):
                labels |= {target.id: label for target in node.targets if isinstance(target, ast.Name)}
            if isinstance(node, ast.Call) and _is_promote(node.func):
                count += 1
                straight = straight and once
                variable, name = _names(node, labels)
                names = tuple(dict.fromkeys(filter(None, (variable, name))))
                calls.append(PromoteCall(cell.id, count, names, name, straight))
    return calls


def _in_order(tree: ast.AST, *, once: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Nodes depth first, in source order (`ast.walk` goes breadth first), and whether each runs once."""
    branching = (
        ast.For,
        ast.While,
        ast.If,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.Lambda,
        ast.comprehension,
    )
    for child in ast.iter_child_nodes(tree):
        inside = (
            once and not isinstance(child, branching) and not isinstance(tree, ast.ListComp | ast.DictComp)
        )
        yield child, inside
        yield from _in_order(child, once=inside)


def _is_promote(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "promote"
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "promote"
        and isinstance(function.value, ast.Name)
    )


def _label(value: ast.expr, labels: dict[str, str]) -> str | None:
    """The literal name in `Experiment("name", …)`, or that of the variable it is made from."""
    if isinstance(value, ast.Name):
        return labels.get(value.id)
    if not isinstance(value, ast.Call):
        return None
    function = value.func
    if (function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")) != "Experiment":
        return None
    candidates = [*value.args[:1], *(k.value for k in value.keywords if k.arg == "name")]
    texts = [c.value for c in candidates if isinstance(c, ast.Constant) and isinstance(c.value, str)]
    return texts[0] if texts else None


def _names(call: ast.Call, labels: dict[str, str]) -> tuple[str | None, str | None]:
    """The variable that holds a call's experiment, and the experiment's name; each where it is known."""
    first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "exp"), None)
    if first is None:
        return None, None
    return (first.id if isinstance(first, ast.Name) else None), _label(first, labels)


def choose_target(notebook: Notebook, experiment: str | None) -> PromoteCall | None:
    """Choose the call that trains when there is no kernel to say it.

    Args:
        notebook: frozen.
        experiment: the name of the experiment, or of its variable; None takes the only call.

    Returns:
        The call, or None when the source does not tell (a call in a loop or function, an experiment
        without a literal name): then the job takes the first call whose experiment has that name.

    Raises:
        CaptureError: the notebook has no `promote()` call.
        UsageError: there are several and none, or no single one, is named.
    """
    calls = find_promotes(notebook)
    if not calls:
        raise CaptureError(f"{notebook.path.name} has no promote() call; add a cell: job = rlnb.promote(exp)")
    names = list(dict.fromkeys(name for call in calls for name in call.names))
    if experiment is None:
        if len(calls) == 1:
            return calls[0] if calls[0].straight else None
        raise UsageError(
            f"{notebook.path.name} has {len(calls)} promote() calls; say which with --experiment NAME "
            f"({', '.join(names) or 'their experiments have no names in the source'})."
        )
    fitting = [call for call in calls if experiment in call.names]
    if len(fitting) == 1:
        return fitting[0] if fitting[0].straight else None
    if fitting:
        raise UsageError(
            f"{len(fitting)} promote() calls of {notebook.path.name} are for {experiment!r}; give them names of their own."
        )
    if any(not call.names for call in calls):
        return None
    raise UsageError(
        f"No promote() call of {notebook.path.name} is for an experiment {experiment!r} (it has "
        f"{', '.join(names)}).{did_you_mean(experiment, names)}"
    )
