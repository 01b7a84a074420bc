"""Asking a term what it would pay for transitions that were not recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlnb.design.columns import Array, Columns, MatrixColumns
from rlnb.design.measure import clipped, measure
from rlnb.design.shaping import Shaping
from rlnb.design.term import Term
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError


def may_be_asked(part: Term | Shaping) -> bool:
    """A term with memory would remember the question."""
    return isinstance(part, Shaping) or not hasattr(part.function, "state_dict")


def value_of(part: Term | Shaping, batch: Transitions) -> Array:
    """Returns a part's value on a batch, clipped, before its weight, float64 (n,).

    NaN where a Python term refuses such a batch: a question must not end a check.
    """
    try:
        return clipped(part, measure([part], batch)[part.name])
    except DesignError:
        return np.full(len(batch), np.nan)


def with_states(batch: Transitions, obs: Array, next_obs: Array) -> Transitions:
    """Returns the same rows between other states.

    Args:
        obs: (n, ...) in the stored shape; `next_obs` likewise.
    """
    names = batch.obs.names
    return replace(
        batch, obs=MatrixColumns("obs", obs, names), next_obs=MatrixColumns("next_obs", next_obs, names)
    )


def with_components(states: Columns, other: Array, components: Sequence[str] | None) -> Array:
    """Returns states in which some components (None: all) are those of `other`.

    Args:
        states: n rows.
        other: (n, ...) in the stored shape, or one row for all.
    """
    found = np.array(states.matrix)
    if components is None:
        found[...] = other
        return found
    flat = found.reshape(len(found), -1)
    rows = np.broadcast_to(other, found.shape).reshape(len(found), -1)
    places = [states.names.index(name) for name in components]
    flat[:, places] = rows[:, places]
    return flat.reshape(found.shape)


def shared_components(part: Term, batch: Transitions) -> tuple[str, ...]:
    """Returns the components that a term's expression uses of s and of s' alike."""
    used: dict[str, set[str]] = {"obs": set(), "next_obs": set()}
    for name in part.names:
        place = batch.namespace.place(name)
        if place is not None and place[0] in used and place[1] is not None:
            used[place[0]].add(place[1])
    return tuple(name for name in batch.obs.names if name in used["obs"] & used["next_obs"])
