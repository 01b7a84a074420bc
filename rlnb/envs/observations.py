"""Observations as SB3's vector environments hold them: batches in the space's own dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.design.columns import Array
from rlnb.design.spaces import flatten_batch


def as_rows(space: gym.Space[Any], observations: Any) -> Array:
    """Returns a batch of raw observations as rows, cast to the dtype that the space declares.

    `DummyVecEnv` casts while it copies, `SubprocVecEnv` and `terminal_observation` do not; designs have to
    see the same bytes from all three.

    Args:
        space: of one observation.
        observations: (n, ...), or for a Dict space a mapping of such arrays, which become (n, d).
    """
    if isinstance(space, gym.spaces.Dict):
        cast = {key: np.asarray(observations[key], dtype=part.dtype) for key, part in space.spaces.items()}
        return flatten_batch(space, cast)
    return np.asarray(observations, dtype=space.dtype)


def as_batch(observation: Any) -> Any:
    """Returns one observation as a batch of one."""
    if isinstance(observation, Mapping):
        return {key: np.asarray(value)[None] for key, value in observation.items()}
    return np.asarray(observation)[None]


def stack(observations: Sequence[Any]) -> Any:
    """Returns several observations as a batch."""
    if isinstance(observations[0], Mapping):
        return {key: np.stack([one[key] for one in observations]) for key in observations[0]}
    return np.stack(observations)
