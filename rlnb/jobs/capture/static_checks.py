"""What can be said of a notebook without running it: undefined names, `input()`, syntax."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlnb.errors import did_you_mean
from rlnb.jobs.capture.notebook import Cell, Notebook
from rlnb.jobs.capture.python_source import parse_cell
from rlnb.run.findings import Finding, Level

#: Names that a kernel defines by itself.
_KERNEL = frozenset({*dir(builtins), "get_ipython", "display", "In", "Out", "exit", "quit", "open", "__name__", "__doc__", "__builtins__"})  # fmt: skip
_HISTORY = re.compile(r"_{1,3}|_i{0,3}|_i?\d+|_dh|_ih|_oh")
#: Calls that may define names which no reader of the source can know.
_OPAQUE_CALLS = frozenset(
    {"exec", "globals", "run_line_magic", "run_cell_magic", "setattr", "run_cell", "push", "ex"}
)
#: Magics that define no names of their own; the others are taken to define anything.
_PLAIN_MAGICS = re.compile(
    "matplotlib|config|(re)?load_ext|autoreload|timeit?|pip|conda|cd|pwd|ls|env|set_env|whos?|xmode|precision|system"
    "|sx|html|javascript|latex|markdown|svg|writefile|bash|sh|script|capture|prun|memit"
)


@dataclass
class _Names:
    """What has been defined so far, and the names whose use waits for a call."""

    defined: set[str] = field(default_factory=set)
    deferred: list[tuple[str, Cell]] = field(default_factory=list)
    opaque: bool = False


@dataclass
class _Statement:
    """Names of one top-level statement: bound by it, read while it runs, read later when called."""

    binds: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)


def check_names(notebook: Notebook, *, target: str | None = None) -> list[Finding]:
    """Find names that cells use and no cell before them defines.

    Module-level code is read in order; what functions use must be defined by some cell the job
    runs. A name such as `lr` that a deleted cell defined lives on in the kernel but not in a job.

    Args:
        notebook: frozen.
        target: the cell that trains; cells after it give warnings, because their errors lose nothing.
    """
    names = _Names()
    findings: list[Finding] = []
    cells = [cell for cell in notebook.code if cell.in_job]
    everything = _all_bound(cells)
    level = Level.ERROR
    for cell in cells:
        tree = parse_cell(cell.source)
        for statement in tree.body if tree else []:
            found = _analyse(statement)
            known = names.defined | _KERNEL
            lenient = found.binds if hasattr(statement, "body") else set()
            for name in sorted(found.reads - known - lenient):
                if not names.opaque and not _HISTORY.fullmatch(name) and not _guarded(statement, name):
                    findings.append(_undefined(notebook, cell, name, level, everything))
                    names.defined.add(name)  # said once
            names.deferred += [(name, cell) for name in sorted(found.later - known)]
            names.defined |= found.binds
            names.opaque = names.opaque or _is_opaque(statement)
        if cell.id == target:
            findings += _late_names(notebook, names, everything, level)
            names.deferred.clear()
            level = Level.WARNING
    return findings + _late_names(notebook, names, everything, level)


def _late_names(notebook: Notebook, names: _Names, everything: set[str], level: Level) -> list[Finding]:
    """Findings for names that only functions use, once all cells they may rely on are read."""
    findings = []
    for name, cell in names.deferred:
        if name not in names.defined | _KERNEL and not names.opaque and not _HISTORY.fullmatch(name):
            findings.append(_undefined(notebook, cell, name, level, everything))
            names.defined.add(name)
    return findings


def _undefined(notebook: Notebook, cell: Cell, name: str, level: Level, everything: set[str]) -> Finding:
    number = notebook.number(cell.id)
    if name in everything:
        remedy = "a later cell defines it; move that cell up."
    else:
        remedy = f"no cell defines it; it may live in this kernel only. Define it in a cell.{did_you_mean(name, everything)}"
    return Finding(level, "undefined_name", f"Cell {number} uses `{name}`, but {remedy}")


def _all_bound(cells: Sequence[Cell]) -> set[str]:
    bound: set[str] = set()
    for cell in cells:
        tree = parse_cell(cell.source)
        for statement in tree.body if tree else []:
            bound |= _analyse(statement).binds
    return bound


def _analyse(statement: ast.stmt) -> _Statement:
    result = _Statement()
    module = ast.Module([statement], [])
    try:
        table = symtable.symtable(ast.unparse(module), "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return result  # top-level await and its like: the kernel runs them, symtable does not know them
    for symbol in table.get_symbols():
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
            result.binds.add(symbol.get_name())
        if symbol.is_referenced():
            result.reads.add(symbol.get_name())
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        result.reads.add(statement.target.id)
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        result.reads.discard(statement.name)
        result.reads |= {
            n.id for d in statement.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)
        }
    for child in table.get_children():
        _descend(child, result, later=False)
    result.binds -= {"*"}
    return result


def _descend(table: symtable.SymbolTable, result: _Statement, *, later: bool) -> None:
    """Adds the global names of a nested scope; a function's are needed when it is called."""
    runs_now = table.get_type() == "class" or table.get_name() in (
        "listcomp",
        "setcomp",
        "dictcomp",
        "genexpr",
    )
    later = later or not runs_now
    for symbol in table.get_symbols():
        if symbol.is_global():
            if symbol.is_referenced():
                (result.later if later else result.reads).add(symbol.get_name())
            if symbol.is_assigned() and symbol.is_declared_global():
                result.binds.add(symbol.get_name())
    for child in table.get_children():
        _descend(child, result, later=later)


def _guarded(statement: ast.stmt, name: str) -> bool:
    """Whether the use of a name is expected to fail, or the statement tells whether it exists."""
    for node in ast.walk(statement):
        if isinstance(node, ast.ExceptHandler):
            caught = (
                {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else {"NameError"}
            )
            if caught & {"NameError", "Exception", "BaseException"}:
                return True
        if isinstance(node, ast.Delete):
            return True
    return False


def _is_opaque(statement: ast.stmt) -> bool:
    """Whether a statement may define names that cannot be read off its source."""
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.Call):
            function = node.func
            called = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            if called in _OPAQUE_CALLS and not _is_plain_magic(node, called):
                return True
    return False


def _is_plain_magic(call: ast.Call, called: str) -> bool:
    return (
        called in ("run_line_magic", "run_cell_magic")
        and bool(call.args)
        and isinstance(call.args[0], ast.Constant)
        and _PLAIN_MAGICS.fullmatch(str(call.args[0].value)) is not None
    )


def check_input(notebook: Notebook) -> list[Finding]:
    """Find calls of `input()` and `getpass()` in cells that a job runs: nobody is there to answer.

    Names that an import gives to them count, too; an `input` that the notebook defines itself does not.
    """
    findings = []
    asking = {"input": "input"}
    for cell in notebook.code:
        tree = parse_cell(cell.source) if cell.in_job else None
        nodes = list(ast.walk(tree)) if tree else []
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module in ("getpass", "builtins"):
                asking |= {
                    alias.asname or alias.name: alias.name
                    for alias in node.names
                    if alias.name in ("input", "getpass")
                }
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
                isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            ):
                asking.pop(node.id if isinstance(node, ast.Name) else node.name, None)
        for node in nodes:
            name = _called(node, asking)
            if name:
                findings.append(Finding(Level.ERROR, "input", f"Cell {notebook.number(cell.id)} calls `{name}()`, which nobody can answer in a job; make it a parameter, or tag the cell 'notebook-only'."))  # fmt: skip
                break
    return findings


def check_syntax(notebook: Notebook) -> list[Finding]:
    """Find cells that are not valid Python (cells of another language's magic excepted)."""
    findings = []
    for cell in notebook.code:
        if cell.in_job and not cell.source.lstrip().startswith("%%") and parse_cell(cell.source) is None:
            findings.append(Finding(Level.ERROR, "syntax", f"Cell {notebook.number(cell.id)} is not valid Python; correct it, or tag it 'notebook-only'."))  # fmt: skip
    return findings


def _called(node: ast.AST, asking: Mapping[str, str]) -> str:
    """Which of the functions that ask a person a node calls; "" for another node."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name):
        return asking.get(node.func.id, "")
    if isinstance(node.func, ast.Attribute):
        whose = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        if node.func.attr == "getpass" or (node.func.attr == "input" and whose == "builtins"):
            return node.func.attr
    return ""
