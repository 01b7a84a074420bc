"""Transitions as flat columns and back, for whoever stores them (Parquet is another room's business).

Columns: `obs.<component>` (or `obs`, 2-D, where components have no names), `next_obs.…`, `action` or
`action.a0`…, `prev_action…`, `t`, `terminated`, `truncated`, `reward`, `episode`, `policy` (object, str),
`info.<key>`, `signal.<name>`; each in the dtype it was recorded in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb.design.columns import Array, Columns, InfoColumns, MappingColumns
from rlnb.errors import DesignError

if TYPE_CHECKING:
    from rlnb.design.transitions import Transitions

_MATRICES = ("obs", "next_obs", "action", "prev_action")
_PLAIN = ("t", "terminated", "truncated", "reward", "episode", "policy")


def describe(batch: Transitions) -> dict[str, Any]:
    """Returns names and row shapes, which the columns alone do not say."""
    described: dict[str, Any] = {}
    for name in _MATRICES:
        value = getattr(batch, name)
        matrix = value.matrix if isinstance(value, Columns) else value
        names = list(value.names) if isinstance(value, Columns) else []
        described[name] = {"names": names, "shape": list(matrix.shape[1:])}
    return described


def columns_of(batch: Transitions) -> dict[str, Array]:
    """Returns the flat columns."""
    columns: dict[str, Array] = {}
    for name in _MATRICES:
        value = getattr(batch, name)
        matrix = value.matrix if isinstance(value, Columns) else value
        flat = matrix.reshape(len(matrix), math.prod(matrix.shape[1:]))
        if isinstance(value, Columns) and value.names:
            columns |= {f"{name}.{part}": flat[:, i] for i, part in enumerate(value.names)}
        else:
            columns[name] = matrix if matrix.ndim == 1 else flat
    columns |= {name: getattr(batch, name) for name in _PLAIN}
    for prefix, group in (("info", batch.info), ("signal", batch.signals)):
        stored = group.stored() if isinstance(group, InfoColumns) else group
        for key in stored.names:
            raw = stored.raw(key) if isinstance(stored, MappingColumns) else stored[key]
            columns[f"{prefix}.{key}"] = raw
    return columns


def from_columns(columns: Mapping[str, Array], meta: Mapping[str, Any] | None) -> Transitions:
    """Rebuilds a batch; `meta` is what `describe` returned."""
    from rlnb.design.transitions import Transitions

    for name in _PLAIN[:-1]:
        if name not in columns:
            raise _missing(name, columns)
    told = meta or {}
    obs, names = _gather(columns, told, "obs")
    episode, policy = columns["episode"], columns.get("policy")
    labels: dict[int, str] = {}
    if policy is not None and len(episode):
        numbers, first = np.unique(episode, return_index=True)
        labels = {int(k): str(policy[i]) for k, i in zip(numbers, first, strict=True) if policy[i]}
    return Transitions.from_arrays(
        obs,
        _gather(columns, told, "next_obs")[0],
        _gather(columns, told, "action")[0],
        names=names,
        prev_action=_gather(columns, told, "prev_action")[0],
        t=columns["t"],
        terminated=columns["terminated"],
        truncated=columns["truncated"],
        reward=columns["reward"],
        episode=episode,
        infos=_group(columns, "info."),
        signals=_group(columns, "signal."),
        labels=labels,
    )


def concat(parts: Sequence[Transitions]) -> Transitions:
    """Puts batches one after the other; see `Transitions.concat`."""
    if not parts:
        raise DesignError("concat needs at least one batch of transitions.")
    columns = [columns_of(part) for part in parts]
    for key in dict.fromkeys(key for own in columns for key in own if key.startswith("info.")):
        for own in columns:
            own.setdefault(key, np.full(len(own["t"]), np.nan))
    labels: dict[int, str] = {}
    offset = 0
    for part, own in zip(parts, columns, strict=True):
        odd = sorted(own.keys() ^ columns[0].keys())
        if odd:
            raise DesignError(f"These batches do not have the same columns; they differ in {', '.join(odd)}.")
        numbers = offset + np.arange(len(part.starts))
        for number, old in zip(numbers, part.episode[part.starts], strict=True):
            if int(old) in part.labels:
                labels[int(number)] = part.labels[int(old)]
        own["episode"] = np.repeat(numbers, np.diff([*part.starts, len(part)]))
        offset += len(numbers)
    whole = {name: np.concatenate([own[name] for own in columns]) for name in columns[0]}
    return replace(from_columns(whole, describe(parts[0])), labels=labels)


def _gather(
    columns: Mapping[str, Array], told: Mapping[str, Any], name: str
) -> tuple[Array, tuple[str, ...]]:
    """Returns a matrix and its components' names."""
    prefix = f"{name}."
    about = told.get(name, {})
    parts = [key for key in columns if key.startswith(prefix)]
    if parts:
        names = tuple(about.get("names") or (key[len(prefix) :] for key in parts))
        for part in names:
            if prefix + part not in columns:
                raise _missing(prefix + part, columns)
        matrix = np.stack([np.asarray(columns[prefix + part]) for part in names], axis=1)
    elif name in columns:
        matrix, names = np.asarray(columns[name]), ()
    else:
        raise _missing(name, columns)
    return (matrix.reshape(len(matrix), *about["shape"]) if "shape" in about else matrix), names


def _group(columns: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {key[len(prefix) :]: columns[key] for key in columns if key.startswith(prefix)}


def _missing(name: str, columns: Mapping[str, Array]) -> DesignError:
    return DesignError(f"A table of transitions needs the column {name!r}; it has {', '.join(columns)}.")
