"""Secrets that are written out in a cell or a file, recognised by the name they are given.

`Redactor` knows the values of the environment's secrets. A value that stands in the source only
(`WANDB_API_KEY = "…"`, `os.environ["X_TOKEN"] = "…"`, `password: …`) is known by its name alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rlnb.jobs.capture.python_source import parse_cell
from rlnb.run.secrets import SHORTEST, is_secret_name

#: Names of variables that hold secrets and hardly anything else (`sort_key` and `pad_token` are none).
_VARIABLE = re.compile(
    r"(?:API|ACCESS|SECRET|PRIVATE|AUTH|SIGNING|ENCRYPTION)_?KEY$|(?:API|AUTH|ACCESS|HF|GIT\w*|BOT|BEARER|REFRESH)_?TOKEN$"
    r"|SECRET$|PASSWORD|PASSWD|PASSPHRASE",
    re.IGNORECASE,
)
#: How a blank to be filled in looks.
_PLACEHOLDER = re.compile(
    r"[<{$*%\[].*|.*(?:\.\.\.|…|xxx|your|example|change.?me).*|(.)\1*", re.IGNORECASE | re.DOTALL
)
#: A line of YAML, TOML, JSON or an ini file.
_SETTING = re.compile(
    r"""(?:^|[\s{,"'-])([A-Za-z_][\w-]*)["']?[ \t]*[:=][ \t]*["']?([^\s"',}]+)""", re.MULTILINE
)
_SETTINGS_FILES = frozenset({".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".properties"})
#: Files larger than this are data and not settings.
_LARGEST = 1_000_000


def find_in_cell(source: str) -> str | None:
    """Return the name of a secret that a cell's (or module's) source writes out, or None."""
    tree = parse_cell(source)
    for name, value, certain in _given(tree) if tree is not None else ():
        named = is_secret_name(name) if certain else _VARIABLE.search(name) is not None
        if named and _is_value(value):
            return name
    return None


def find_in_file(path: Path) -> str | None:
    """Return the name of a secret that a bundled module or settings file writes out, or None."""
    if path.suffix not in {".py", *_SETTINGS_FILES} or path.stat().st_size > _LARGEST:
        return None
    text = path.read_text("utf-8", errors="replace")
    if path.suffix == ".py":
        return find_in_cell(text)
    for name, value in _SETTING.findall(text):
        if _VARIABLE.search(name.replace("-", "_")) and _is_value(value):
            return str(name)
    return None


def _is_value(text: str) -> bool:
    return len(text) >= SHORTEST and not re.search(r"\s", text) and not _PLACEHOLDER.fullmatch(text)


def _given(tree: ast.AST) -> Iterator[tuple[str, str, bool]]:
    """(name, text given to it, whether the name is an environment variable's)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _assigned(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _assigned(node.target, node.value)
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield from _text(node.arg, node.value, certain=False)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield from _text(key.value, value, certain=False)
        elif isinstance(node, ast.Call):
            yield from _set_by_call(node)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str, bool]]:
    if isinstance(target, ast.Name | ast.Attribute):
        yield from _text(target.id if isinstance(target, ast.Name) else target.attr, value, certain=False)
    elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        yield from _text(str(target.slice.value), value, certain=_is_environ(target.value))
    elif (
        isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    ):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from _assigned(one, part)


def _text(name: str, value: ast.expr, *, certain: bool) -> Iterator[tuple[str, str, bool]]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield name, value.value, certain


def _set_by_call(call: ast.Call) -> Iterator[tuple[str, str, bool]]:
    """`os.environ.setdefault("X_TOKEN", "…")`, `os.putenv(…)` and `%env X_TOKEN=…`."""
    function = call.func
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if not isinstance(function, ast.Attribute) or len(texts) != 2:
        return
    if function.attr == "putenv" or (function.attr == "setdefault" and _is_environ(function.value)):
        yield texts[0], texts[1], True
    elif function.attr == "run_line_magic" and texts[0] in ("env", "set_env"):
        name, _, value = texts[1].replace("=", " ", 1).strip().partition(" ")
        yield name, value.strip(), True


def _is_environ(node: ast.expr) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) == "environ"
