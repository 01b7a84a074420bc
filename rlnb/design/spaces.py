"""Observation spaces as rows of numbers: names, bounds and values of their flattened components.

Works for Box, Discrete, MultiDiscrete, MultiBinary and a Dict of those. A Box with more than 1,024 numbers
(an image) has no named components. Gymnasium is imported only when a space is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.errors import DesignError

#: components beyond this many are an image, not a list of quantities
MAX_NAMED = 1024


def space_names(space: Any) -> tuple[str, ...]:
    """Returns `obs0`, `obs1`, …, for a Dict `key` or `key_0`, `key_1`, …; () for an image.

    Raises:
        DesignError: the space is of another kind.
    """
    parts = _parts(space)
    count = sum(width(part) for part in parts.values())
    if not count:
        raise DesignError(
            f"The observation space {space} has no components, so there is nothing to learn from."
        )
    if count > MAX_NAMED:
        return ()
    if list(parts) == [""]:
        return tuple(f"obs{i}" for i in range(width(space)))
    found: list[str] = []
    for key, part in parts.items():
        stem = "".join(letter if letter.isalnum() else "_" for letter in str(key))
        wide = width(part)
        found += [stem] if wide == 1 else [f"{stem}_{i}" for i in range(wide)]
    return tuple(found)


def space_bounds(space: Any) -> tuple[Array, Array]:
    """Returns low and high of each component, float64 (d,)."""
    lows, highs = zip(*(_bounds(part) for part in _parts(space).values()), strict=True)
    return np.concatenate(lows), np.concatenate(highs)


def flatten_batch(space: Any, observations: Any) -> Array:
    """Returns a batch of observations as (n, d), in its own dtype; a Dict's parts in their common dtype.

    Args:
        observations: (n, ...), or for a Dict space a mapping of such arrays.
    """
    if isinstance(observations, Mapping):
        parts = [np.asarray(observations[key]) for key in _parts(space)]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    values = np.asarray(observations)
    return values.reshape(len(values), -1)


def width(space: Any) -> int:
    """Returns the number of components of a Box, Discrete, MultiDiscrete or MultiBinary space."""
    return int(np.prod(space.shape)) if space.shape else 1


def _parts(space: Any) -> dict[str, Any]:
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        parts = dict(space.spaces.items())
    else:
        parts = {"": space}
    for key, part in parts.items():
        if not isinstance(part, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
            where = f" (its entry {key!r})" if key else ""
            fixed = isinstance(part, spaces.Tuple | spaces.Dict)
            remedy = (
                "The wrapper gymnasium.wrappers.FlattenObservation makes one Box of it"
                if fixed
                else "It has no fixed size: make arrays of one size with gymnasium.wrappers.TransformObservation"
            )
            raise DesignError(
                f"The observation space {type(part).__name__}{where} has no components a design could name; "
                f"Box, Discrete, MultiDiscrete, MultiBinary and a Dict of those have. {remedy}."
            )
    return parts


def _bounds(space: Any) -> tuple[Array, Array]:
    from gymnasium import spaces

    count = width(space)
    if isinstance(space, spaces.Box):
        low, high = space.low, space.high
    elif isinstance(space, spaces.Discrete):
        low, high = space.start, space.start + space.n - 1
    elif isinstance(space, spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    else:
        low, high = np.zeros(count), np.ones(count)
    return np.array(low, dtype=np.float64).reshape(count), np.array(high, dtype=np.float64).reshape(count)
