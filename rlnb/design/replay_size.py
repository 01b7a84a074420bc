"""How much memory a replay buffer takes, before one is allocated.

An off-policy algorithm's buffer keeps, for each of N steps, the observation, the next one and the action in
their own dtypes, and reward, done and time-out as float32: N * (2 * observation + action + 12) bytes, as
allocated by Stable-Baselines3's ReplayBuffer and DictReplayBuffer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.wording import percent
from rlnb.errors import DesignError

WARNING_SHARE = 0.6
"""Share of the machine's memory from which a replay buffer is warned about; training needs the rest."""

_EXTRA = 3 * 4  # reward, done and time-out, float32 each


def replay_bytes(observation_space: Any, action_space: Any, buffer_size: int, n_envs: int = 1) -> int:
    """Returns the bytes of a replay buffer.

    Args:
        observation_space: what the agent sees: Box, Discrete, MultiDiscrete, MultiBinary or a Dict of those.
        action_space: Box, Discrete, MultiDiscrete or MultiBinary; float64 actions are kept as float32.
        buffer_size: number of steps, of all environments together.
        n_envs: number of environments; the size is rounded down to a multiple of it.

    Raises:
        DesignError: a space is of another kind, or a number is not positive.
    """
    for name, value in (("buffer_size", buffer_size), ("n_envs", n_envs)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise DesignError(f"{name}={value!r:.40} does not fit; give a whole number >= 1.")
    parts = observation_space.spaces.values() if _kind(observation_space) == "Dict" else [observation_space]
    observation: int = sum(_numbers(part) * np.dtype(part.dtype).itemsize for part in parts)
    dtype = np.dtype(action_space.dtype)
    action: int = _numbers(action_space) * (4 if dtype == np.float64 else dtype.itemsize)
    steps = max(int(buffer_size) // int(n_envs), 1) * int(n_envs)
    return steps * (2 * observation + action + _EXTRA)


def replay_finding(bytes_needed: int, ram_bytes: int) -> Finding:
    """Says how much of the memory a replay buffer takes ("state.replay"); warns from 60 %.

    Args:
        bytes_needed: from `replay_bytes`.
        ram_bytes: memory of the machine that trains.
    """
    share = bytes_needed / ram_bytes
    sentence = (
        f"The replay buffer takes {size(bytes_needed)}, {percent(share)} of {size(ram_bytes)} of memory."
    )
    why = "It is filled little by little, so that a buffer that does not fit ends the training hours later."
    if share < WARNING_SHARE:
        return Finding("state.replay", Severity.FINE, sentence, why, value=share)
    advice = (
        "Use a smaller buffer_size or smaller observations (uint8 images, fewer frames, a lower resolution)."
    )
    severity = Severity.PROBLEM if share >= 1 else Severity.WARNING
    return Finding("state.replay", severity, sentence, why, advice, value=share)


def size(count: float) -> str:
    """Returns bytes as people write them: "28.2 GB" (powers of 1,000)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _kind(space: Any) -> str:
    return type(space).__name__


def _numbers(space: Any) -> int:
    if _kind(space) not in ("Box", "Discrete", "MultiDiscrete", "MultiBinary"):
        raise DesignError(
            f"A replay buffer cannot keep the space {_kind(space)}; Box, Discrete, MultiDiscrete and MultiBinary "
            "(and, of observations, a Dict of those) it can. Flatten it with a wrapper."
        )
    return math.prod(int(side) for side in space.shape)
