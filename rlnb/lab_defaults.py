"""What `lab.experiment()` fills in: settings that follow from the design and the spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.design.design import Design
from rlnb.envs.make import EnvFactory

#: of a first try; a person gives their own
TOTAL_TIMESTEPS = 100_000


def experiment_defaults(design: Design, env: EnvFactory, names: Sequence[str]) -> dict[str, Any]:
    """Returns `total_timesteps`, `policy`, and `gamma` where a potential-based shaping asks for one.

    Args:
        design: that will be trained.
        env: the environment.
        names: names of its observation's components.
    """
    seen = design.state.plan(env.spaces().observation, names).space
    found: dict[str, Any] = {"total_timesteps": TOTAL_TIMESTEPS, "policy": _policy(seen)}
    if design.reward.discount is not None:  # with several, the experiment says that they differ
        found["gamma"] = design.reward.discount
    return found


def _policy(space: gym.Space[Any]) -> str:
    if isinstance(space, gym.spaces.Dict):
        return "MultiInputPolicy"
    is_image = isinstance(space, gym.spaces.Box) and len(space.shape) == 3 and space.dtype == np.uint8
    return "CnnPolicy" if is_image else "MlpPolicy"
