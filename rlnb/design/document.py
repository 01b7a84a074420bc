"""Reward and state designs as plain dicts, as they stand in design files and in run.yaml.

    reward:
      terms:
        - {name: env, expression: reward, weight: 1.0}
        - {name: landing, python: soft_landing, weight: lin_1, clip: [-1.0, 1.0]}
        - {name: towards, potential: "-hypot(x, y)", gamma: 0.99, weight: 1.0}
        - {name: fuel, expression: "-(action > 0)", group: cost}
      groups:
        - {name: cost, weight: 0.3}
      combine: env + landing * towards + cost    # left out: the weighted sum
    state:
      - select: [x, y, vx, vy]
      - derive: {name: speed, expression: "hypot(vx, vy)"}
      - stack: {frames: 3, names: [speed]}

A key that is not known is an error that names the nearest right one: a misspelt `wieght` must never
silently be a weight of 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from rlnb.design.groups import TermGroup
from rlnb.design.operations.elementwise import OPERATIONS, Select
from rlnb.design.operations.operation import Operation
from rlnb.design.reward import RewardSpec
from rlnb.design.shaping import Shaping
from rlnb.design.state import StateSpec
from rlnb.design.term import Term
from rlnb.errors import DesignError, ExpressionError, did_you_mean

_TERM = ("name", "expression", "python", "weight", "clip", "enabled", "group")
_SHAPING = ("name", "potential", "gamma", "weight", "enabled", "group")
_GROUP = ("name", "weight", "combine", "enabled")


def check_keys(given: object, known: Collection[str], where: str) -> dict[str, Any]:
    """Returns a mapping whose keys are all known.

    Raises:
        DesignError: it is no mapping, or has an unknown key; the nearest known one is named.
    """
    if not isinstance(given, Mapping):
        raise DesignError(
            f"{where} is {given!r:.60}; it must have keys such as {', '.join(list(known)[:3])}."
        )
    for key in given:
        if key not in known:
            raise DesignError(
                f"{where} has the unknown key {key!r}.{did_you_mean(str(key), known)} Known: {', '.join(known)}."
            )
    return dict(given)


def reward_to_dict(reward: RewardSpec) -> dict[str, Any]:
    """Returns a reward as plain values."""
    written: dict[str, Any] = {"terms": [_part_to_dict(part) for part in reward.terms]}
    if reward.groups:  # left out otherwise: designs without groups keep their fingerprint
        written["groups"] = [_written(group, _GROUP) for group in reward.groups]
    if reward.combine is not None:
        written["combine"] = reward.combine
    return written


def reward_from_dict(given: object, where: str = "reward") -> RewardSpec:
    """Reads a reward; Python terms are bound to the functions marked in this process.

    Raises:
        DesignError: with the place and the nearest right key.
    """
    values = check_keys(given, ("terms", "groups", "combine"), where)
    parts = values.get("terms")
    if not isinstance(parts, list | tuple):
        raise DesignError(f"{where}.terms is {parts!r:.60}; it must be a list of terms.")
    terms = [_part_from_dict(part, f"{where}.terms[{place}]") for place, part in enumerate(parts)]
    listed = values.get("groups", [])
    if not isinstance(listed, list | tuple):
        raise DesignError(f"{where}.groups is {listed!r:.60}; it must be a list of groups.")
    groups = [_group_from_dict(group, f"{where}.groups[{place}]") for place, group in enumerate(listed)]
    reward: RewardSpec = _made(
        RewardSpec, where, {"terms": terms, "combine": values.get("combine"), "groups": groups}
    )
    return reward.bind()


def state_to_list(state: StateSpec) -> list[dict[str, Any]]:
    """Returns a state as plain values, one operation a row."""
    rows: list[dict[str, Any]] = []
    for operation in state.ops:
        if isinstance(operation, Select):
            rows.append({operation.kind: list(operation.names)})
            continue
        row: dict[str, Any] = {}
        for name in _fields(type(operation)):
            value = getattr(operation, name)
            if value is not None:
                row[name] = list(value) if isinstance(value, tuple) else value
        rows.append({operation.kind: row})
    return rows


def state_from_list(given: object, where: str = "state") -> StateSpec:
    """Reads a state.

    Raises:
        DesignError: with the place and the nearest right key.
    """
    if not isinstance(given, list | tuple):
        raise DesignError(
            f"{where} is {given!r:.60}; it must be a list of operations ({', '.join(OPERATIONS)})."
        )
    return StateSpec(ops=[_operation_from_dict(row, f"{where}[{place}]") for place, row in enumerate(given)])


def _part_to_dict(part: Term | Shaping) -> dict[str, Any]:
    keys = _TERM if isinstance(part, Term) else _SHAPING
    written = _written(part, keys)
    if part.clip is not None:
        written["clip"] = list(part.clip)
    return written


def _written(value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Returns the keys that say something: neither None nor `enabled: true`."""
    written = {key: getattr(value, key) for key in keys if getattr(value, key) is not None}
    if value.enabled:
        del written["enabled"]
    return written


def _group_from_dict(given: object, where: str) -> TermGroup:
    values = check_keys(given, _GROUP, where)
    if "name" not in values:
        raise DesignError(f"{where} has no name; every group needs one.")
    return _made(TermGroup, where, values)  # type: ignore[no-any-return]


def _part_from_dict(given: object, where: str) -> Term | Shaping:
    shaping = isinstance(given, Mapping) and "potential" in given
    values = check_keys(given, _SHAPING if shaping else tuple(dict.fromkeys((*_TERM, *_SHAPING))), where)
    if "gamma" in values and not shaping:
        raise DesignError(f"{where} has a gamma but no potential; shaping needs both.")
    for key, kind in (("expression", str), ("python", str), ("potential", str), ("enabled", bool)):
        if key in values and not isinstance(values[key], kind):
            wanted = "true or false" if kind is bool else "a text"
            raise DesignError(f"{where}.{key} is {values[key]!r:.60}; it must be {wanted}.")
    if "name" not in values:
        raise DesignError(f"{where} has no name; every term needs one.")
    return _made(Shaping if shaping else Term, where, values)  # type: ignore[no-any-return]


def _operation_from_dict(given: object, where: str) -> Operation:
    values = check_keys(given, tuple(OPERATIONS), where)
    if len(values) != 1:
        raise DesignError(f"{where} has {len(values)} operations ({', '.join(values)}); write one a row.")
    ((kind, body),) = values.items()
    operation = OPERATIONS[kind]
    where = f"{where}.{kind}"
    if operation is Select:
        body = body if isinstance(body, Mapping) else {"names": body}
    return _made(operation, where, check_keys({} if body is None else body, _fields(operation), where))  # type: ignore[no-any-return]


def _fields(operation: type[Operation]) -> tuple[str, ...]:
    return tuple(item.name for item in fields(operation) if item.init)  # type: ignore[arg-type]


def _made(kind: Any, where: str, values: dict[str, Any]) -> Any:
    """Makes a value, and puts the place in front of what it complains about."""
    missing = [item.name for item in fields(kind) if item.init and _needed(item) and item.name not in values]
    if missing:
        raise DesignError(f"{where} lacks {', '.join(missing)}.")
    try:
        return kind(**values)
    except ExpressionError as error:
        raise ExpressionError(f"{where}: {error}", error.position) from None
    except DesignError as error:
        raise DesignError(f"{where}: {error}") from None


def _needed(item: Any) -> bool:
    from dataclasses import MISSING

    return item.default is MISSING and item.default_factory is MISSING
