"""Designs in words: what one says, and what changed from one to another.

Everything is read off the fields of the dataclasses, so that a new operation or a new field of a term is
described without a line here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from difflib import SequenceMatcher
from typing import Any

from rlnb.design.design import Design
from rlnb.design.operations.elementwise import Select
from rlnb.design.operations.operation import Operation

#: a list longer than this is shortened in a sentence
SHOWN = 4
#: fields that together say what a term is computed from
_SOURCES = ("expression", "python", "potential")


def describe(design: Design) -> list[str]:
    """Returns a design as short sentences: one a term, group and operation, in their order.

    Example: `landing: exp(-abs(vy)), weight 2, clipped to [0, 1]`.
    """
    reward, lines = design.reward, []
    for field, value in _values(reward).items():
        if _named(value):
            lines += [f"{_title(field, part.name)}: {_phrase(part)}" for part in value]
        elif value not in (None, ()):
            lines.append(f"{field}: {_text(value)}")
    lines += [
        f"state {place}: {describe_operation(step)}" for place, step in enumerate(design.state.ops, start=1)
    ]
    return lines if design.state.ops else [*lines, "state: the environment's own observation"]


def design_diff(before: Design, after: Design) -> list[str]:
    """Returns in words how `after` differs from `before`; [] exactly when both are written alike.

    Examples: `landing: weight 1 -> 2`, `fuel added: -power, weight 0.1`, `order: env, spin -> spin, env`.
    """
    lines: list[str] = []
    old, new = _values(before.reward), _values(after.reward)
    for field in new:
        if _named(old[field]) or _named(new[field]):
            lines += _named_diff(field, old[field] or (), new[field] or ())
        elif not _same(old[field], new[field]):
            lines.append(f"{field}: {_change(old[field], new[field])}")
    return lines + _state_diff(before.state.ops, after.state.ops)


def describe_operation(step: Operation) -> str:
    """Returns an operation in words, e.g. `select x, y` or `clip of x: low -1, high 1`."""
    values = _values(step)
    names = values.pop("names", ())
    given = [f"{name} {_text(value)}" for name, value in values.items() if value is not None]
    if names:
        names = f"{'' if isinstance(step, Select) else ' of'} {', '.join(map(_text, names))}"
    elif names is None:
        names = " of all"
    return f"{step.kind}{names or ''}{': ' if given else ''}{', '.join(given)}"


def describe_source(part: Any) -> str:
    """Returns what a term or group is computed from, e.g. `-abs(vy)` or `landing(batch)`."""
    values = _values(part)
    if values.get("python") is not None:
        return f"{values['python']}(batch)"
    if values.get("potential") is not None:
        return f"shaping by the potential {_text(values['potential'])}"
    return _text(values.get("expression"))


def _named_diff(field: str, before: Sequence[Any], after: Sequence[Any]) -> list[str]:
    """Differences of parts that have a name, as a reward's terms and groups have."""
    old, new = ({part.name: part for part in parts} for parts in (before, after))
    lines = [f"{_title(field, name)} removed" for name in old if name not in new]
    for name, part in new.items():
        if name not in old:
            lines.append(f"{_title(field, name)} added: {_phrase(part)}")
        else:
            lines += [f"{_title(field, name)}: {text}" for text in _part_diff(old[name], part)]
    stayed, stays = [name for name in old if name in new], [name for name in new if name in old]
    if stayed != stays:
        order = "order" if field == "terms" else f"order of {field}"
        lines.append(f"{order}: {', '.join(stayed)} -> {', '.join(stays)}")
    return lines


def _part_diff(before: Any, after: Any) -> list[str]:
    if type(before) is not type(after):
        return [f"{_phrase(before)} -> {_phrase(after)}"]
    old, new = _values(before), _values(after)
    lines = []
    if any(not _same(old.get(name), new.get(name)) for name in _SOURCES):
        lines.append(f"{describe_source(before)} -> {describe_source(after)}")
    for name in new:
        if name in _SOURCES or _same(old[name], new[name]):
            continue
        if name == "enabled":
            lines.append("switched on" if new[name] else "switched off")
        else:
            lines.append(f"{name} {_change(old[name], new[name])}")
    return lines


def _state_diff(before: Sequence[Operation], after: Sequence[Operation]) -> list[str]:
    """Differences of operations, which have no names: by their places in the new (or else old) order."""
    old, new = ([repr(step) for step in steps] for steps in (before, after))
    if old != new and sorted(old) == sorted(new):
        kinds = [", ".join(step.kind for step in steps) for steps in (before, after)]
        if kinds[0] != kinds[1]:
            return [f"state order: {kinds[0]} -> {kinds[1]}"]
    lines = []
    for tag, i, i_end, j, j_end in SequenceMatcher(
        a=[s.kind for s in before], b=[s.kind for s in after], autojunk=False
    ).get_opcodes():
        if tag == "equal":
            for place in range(i_end - i):
                lines += _operation_diff(j + place + 1, before[i + place], after[j + place])
            continue
        lines += [
            f"state {place + 1} removed: {describe_operation(before[place])}" for place in range(i, i_end)
        ]
        lines += [f"state {place + 1} added: {describe_operation(after[place])}" for place in range(j, j_end)]
    return lines


def _operation_diff(place: int, before: Operation, after: Operation) -> list[str]:
    old, new = _values(before), _values(after)
    changes = [f"{name} {_change(old[name], new[name])}" for name in new if not _same(old[name], new[name])]
    return [f"state {place}: {after.kind}: {text}" for text in changes]


def _phrase(part: Any) -> str:
    """What a term or group is, without its name."""
    values = _values(part)
    said = [describe_source(part)] if any(values.get(name) is not None for name in _SOURCES) else []
    for name, value in values.items():
        if name in ("name", "enabled", *_SOURCES) or value is None:
            continue
        said.append(f"clipped to {_text(value)}" if name == "clip" else f"{name} {_text(value)}")
    if not values.get("enabled", True):
        said.append("off")
    return ", ".join(said)


def _title(field: str, name: str) -> str:
    return name if field == "terms" else f"{field.removesuffix('s')} {name}"


def _values(part: Any) -> dict[str, Any]:
    """The fields that make a value what it is; functions and compiled expressions do not."""
    return {item.name: getattr(part, item.name) for item in fields(part) if item.init and item.compare}


def _named(value: Any) -> bool:
    return isinstance(value, tuple) and any(is_dataclass(part) and hasattr(part, "name") for part in value)


def _same(before: Any, after: Any) -> bool:
    return repr(before) == repr(after)  # unlike ==, it tells 0.0 from -0.0, as the design file does


def _change(before: Any, after: Any) -> str:
    """`a -> b`; of two long lists only the places that differ."""
    if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after) > SHOWN:
        places = [place for place in range(len(after)) if not _same(before[place], after[place])]
        shown = [f"[{place}] {_text(before[place])} -> {_text(after[place])}" for place in places[:SHOWN]]
        return ", ".join(shown) + (f" and {len(places) - SHOWN} more" if len(places) > SHOWN else "")
    return f"{_text(before)} -> {_text(after)}"


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, str):
        return " ".join(value.split())  # a sentence is one line, whatever an expression is
    if isinstance(value, Iterable):
        items = [_text(item) for item in value]
        more = f", … ({len(items)})" if len(items) > SHOWN else ""
        return f"[{', '.join(items[:SHOWN])}{more}]"
    return str(value)
