"""What no agent here can act in or see, said exactly, with what to do about it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

_ACTIONS = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)


def unsupported_action(space: gym.Space[Any]) -> str | None:
    """Returns why actions of a space cannot be recorded or trained, or None if they can.

    Supported: Box, Discrete, MultiDiscrete and MultiBinary.
    """
    if isinstance(space, _ACTIONS):
        return None
    return (
        f"actions of {space!s:.80} are unsupported, only Box, Discrete, MultiDiscrete and MultiBinary are; "
        "wrap the environment with gymnasium.wrappers.TransformAction, which makes them of one of these"
    )


def untrainable_action(space: gym.Space[Any]) -> str | None:
    """Returns what SB3 does not act in though it can be recorded, or None."""
    found = unsupported_action(space)
    if found is not None:
        return found
    if isinstance(space, gym.spaces.MultiDiscrete | gym.spaces.MultiBinary) and len(space.shape) > 1:
        return (
            f"SB3 takes {type(space).__name__} actions in one dimension, and these are of shape {space.shape}; "
            "flatten them with gymnasium.wrappers.TransformAction"
        )
    start = _start(space)
    if start is None:
        return None
    shift = f"{'-' if start < 0 else '+'} {abs(start)}" if isinstance(start, int) else f"+ {start}"
    return (
        f"SB3 counts actions from 0, and {space} counts from {start}; shift them with gymnasium.wrappers."
        f"TransformAction(env, lambda action: action {shift}, gymnasium.spaces.{_from_zero(space)})"
    )


def untrainable_observation(space: gym.Space[Any], part: str = "") -> str | None:
    """Returns what SB3 does not take for an observation, or None."""
    if isinstance(space, gym.spaces.Dict):
        found = (untrainable_observation(inner, f"part {key!r} of the ") for key, inner in space.items())
        return next((sentence for sentence in found if sentence is not None), None)
    if isinstance(space, gym.spaces.MultiDiscrete) and len(space.shape) > 1:
        return (
            f"SB3 takes MultiDiscrete in one dimension, and the {part}observation is of shape {space.shape}; "
            "give a Box of the same numbers"
        )
    start = _start(space)
    if start is None:
        return None
    shift = f"state=rlnb.Scale(offset={-start})" if isinstance(start, int) and not part else "a Box of them"
    return (
        f"SB3 counts discrete observations from 0, and the {part}observation {space} counts from {start}; "
        f"give {shift}"
    )


def _start(space: gym.Space[Any]) -> Any:
    """Returns where a discrete space starts if that is not 0, else None."""
    start = np.asarray(getattr(space, "start", 0))
    if not start.any():
        return None
    return int(start) if not start.ndim else start.tolist()


def _from_zero(space: Any) -> str:
    if isinstance(space, gym.spaces.Discrete):
        return f"Discrete({int(space.n)})"
    return f"MultiDiscrete({space.nvec.tolist()})"
