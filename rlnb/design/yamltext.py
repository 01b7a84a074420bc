"""YAML that a person can read and that loses nothing.

Differences from PyYAML's defaults, all in favour of hand-written design files: `1e-3` is a number, only
`true` and `false` are booleans (a component may be called `on` or `y`), dates are texts, a key that stands
twice is an error, and anchors are refused (they are how a small file grows huge).
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from rlnb.errors import DesignError

#: characters of a design file; a real one has a few thousand
MAX_TEXT = 1_000_000

_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float"))
_RESOLVERS = [
    (_NULL, re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    (_BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    (_INT, re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789")),
    (
        _FLOAT,
        re.compile(
            r"^(?:[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+0123456789."),
    ),
]


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's way)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.constructor.ConstructorError(
                None,
                None,
                "anchors and aliases (& and *) are not allowed here; quote the text",
                event.start_mark,
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands here twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _construct_int(loader: Any, node: Any) -> int:
    return int(loader.construct_scalar(node))


def _construct_float(loader: Any, node: Any) -> float:
    text = str(loader.construct_scalar(node)).lower()
    special = {".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}
    return special[text] if text in special else float(text)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _represent_list(dumper: Any, values: Any) -> Any:
    leaves = all(not isinstance(value, dict | list | tuple) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=leaves)


for _tag, _pattern, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(_tag, _pattern, _first)
    # the dumper keeps PyYAML's own resolvers too, so that other readers see texts where we wrote texts
    _Dumper.add_implicit_resolver(_tag, _pattern, _first)
_Loader.add_constructor(_INT, _construct_int)
_Loader.add_constructor(_FLOAT, _construct_float)
_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(tuple, _represent_list)


def read_yaml(text: str, where: str) -> Any:
    """Reads one YAML document.

    Args:
        where: what it is, for messages: a file's name.

    Raises:
        DesignError: it is not YAML, or too large, with line and column.
    """
    if len(text) > MAX_TEXT:
        raise DesignError(f"{where} has {len(text)} characters; a design has at most {MAX_TEXT}.")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise DesignError(f"{where} cannot be read{place}: {error.problem}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DesignError(f"{where} cannot be read as YAML: {error}.") from None


def write_yaml(value: Any) -> str:
    """Writes plain values (dict, list, str, numbers, bool, None) so that `read_yaml` gives them back."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=math.inf)
