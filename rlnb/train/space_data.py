"""Gymnasium spaces as trees of plain values and arrays."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.errors import CheckpointError


def space_to_dict(space: gym.Space[Any]) -> dict[str, Any]:
    """Returns a space as a tree for `rlnb.train.codec`.

    Raises:
        TypeError: SB3 knows no such space.
    """
    if isinstance(space, gym.spaces.Box):
        return {"kind": "Box", "low": space.low.copy(), "high": space.high.copy(), "dtype": str(space.dtype)}
    if isinstance(space, gym.spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, gym.spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": space.nvec.copy(), "start": space.start.copy()}
    if isinstance(space, gym.spaces.MultiBinary):
        shape = space.n if isinstance(space.n, int) else [int(one) for one in space.n]
        return {"kind": "MultiBinary", "n": shape}
    if isinstance(space, gym.spaces.Dict):
        return {"kind": "Dict", "parts": [[key, space_to_dict(part)] for key, part in space.spaces.items()]}
    raise TypeError(f"{space} is no space that SB3 trains with")


def space_from_dict(data: dict[str, Any]) -> gym.Space[Any]:
    """Returns the space that `space_to_dict` wrote.

    Raises:
        CheckpointError: it is of an unknown kind.
    """
    match data["kind"]:
        case "Box":
            return gym.spaces.Box(data["low"], data["high"], dtype=np.dtype(data["dtype"]).type)
        case "Discrete":
            return gym.spaces.Discrete(data["n"], start=data["start"])
        case "MultiDiscrete":
            return gym.spaces.MultiDiscrete(data["nvec"], start=data["start"])
        case "MultiBinary":
            return gym.spaces.MultiBinary(data["n"])
        case "Dict":
            return gym.spaces.Dict({key: space_from_dict(part) for key, part in data["parts"]})
    raise CheckpointError(f"The checkpoint has a space of the unknown kind {data['kind']!r}; upgrade rlnb.")
