"""Whether an algorithm and a policy fit an environment's spaces; said before anything is trained."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.design.design import Design
from rlnb.design.reward import Shaping
from rlnb.envs.make import Spaces
from rlnb.errors import ExperimentError
from rlnb.run.algorithms import ALGORITHMS
from rlnb.run.experiment import ExperimentSpec


def check_spaces(spec: ExperimentSpec, spaces: Spaces, design: Design) -> None:
    """Raises ExperimentError if the algorithm or policy cannot take the environment's spaces.

    Args:
        spec: the experiment.
        spaces: of its environment.
        design: its design; what the agent sees may be other than what the environment gives.
    """
    _check_action(spec, spaces.action)
    seen = spaces.observation
    if not design.state.is_identity:
        seen = design.state.space(seen, list(spec.names or ()))
    _check_policy(spec, seen)
    _check_normalize(spec, seen)
    _check_shaping(spec, design)


def _check_shaping(spec: ExperimentSpec, design: Design) -> None:
    gamma = spec.hyperparameters["gamma"]
    for part in design.reward.enabled:
        if isinstance(part, Shaping) and part.gamma != gamma:
            raise ExperimentError(
                f"the shaping {part.name!r} has gamma={part.gamma}, and the agent is trained with gamma={gamma}; "
                "only equal ones leave the optimal policy as it is, so give both the same"
            )


def _check_action(spec: ExperimentSpec, space: gym.Space[Any]) -> None:
    row = spec.algorithm
    continuous = isinstance(space, gym.spaces.Box)
    if continuous and not row.continuous:
        fits = [other.name for other in ALGORITHMS.values() if other.continuous]
        raise ExperimentError(
            f"{row.name} needs a discrete action space, and {spec.env.value} has {space}; use {', '.join(fits)}"
        )
    if not continuous and not row.discrete:
        fits = [other.name for other in ALGORITHMS.values() if other.discrete]
        raise ExperimentError(
            f"{row.name} needs a continuous (Box) action space, and {spec.env.value} has {space}; use {', '.join(fits)}"
        )
    if row.off_policy and not continuous and not isinstance(space, gym.spaces.Discrete):
        raise ExperimentError(
            f"{row.name} needs one discrete action, and {spec.env.value} has {space}; use PPO or A2C"
        )
    if isinstance(space, gym.spaces.Box) and not np.all(np.isfinite(space.low) & np.isfinite(space.high)):
        raise ExperimentError(
            f"{spec.env.value} has unbounded actions ({space}), which SB3 does not take; give the Box finite bounds"
        )
    if spec.hyperparameters.get("use_sde") and not continuous:
        raise ExperimentError(
            f"use_sde=True needs a continuous action space, and {spec.env.value} has {space}"
        )


def _check_normalize(spec: ExperimentSpec, space: gym.Space[Any]) -> None:
    """VecNormalize takes numbers only; of a Dict, the parts that `norm_obs_keys` names."""
    if spec.normalize is None or not spec.normalize["norm_obs"]:
        return
    keys = spec.normalize["norm_obs_keys"]
    if not isinstance(space, gym.spaces.Dict):
        if keys is not None:
            raise ExperimentError(
                f"normalize.norm_obs_keys={keys} names parts of a Dict, and the agent sees {space}; leave it out"
            )
        if not isinstance(space, gym.spaces.Box):
            raise ExperimentError(
                f"normalize cannot take observations of {space}; write normalize={{'norm_obs': False}}"
            )
        return
    boxes = [key for key, part in space.spaces.items() if isinstance(part, gym.spaces.Box)]
    for key in space.spaces if keys is None else keys:
        if key not in boxes:
            what = f"of {space.spaces[key]}" if key in space.spaces else "not there"
            raise ExperimentError(
                f"normalize cannot take the observation's part {key!r}, which is {what}; "
                f"write normalize={{'norm_obs_keys': {boxes}}}"
            )


def _check_policy(spec: ExperimentSpec, space: gym.Space[Any]) -> None:
    if not isinstance(spec.policy, str):
        return
    is_dict = isinstance(space, gym.spaces.Dict)
    if is_dict != (spec.policy == "MultiInputPolicy"):
        wanted = "MultiInputPolicy" if is_dict else "MlpPolicy"
        raise ExperimentError(
            f"policy={spec.policy!r} does not take {spec.env.value}'s observations ({type(space).__name__}); "
            f"use policy={wanted!r}"
        )
    is_image = isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
    if spec.policy == "CnnPolicy" and not is_image:
        raise ExperimentError(
            f"policy='CnnPolicy' needs images (uint8, three dimensions), and the agent sees {space}; "
            "use policy='MlpPolicy'"
        )
