"""Whether an algorithm and a policy fit an environment's spaces; said before anything is trained."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.design.design import Design
from rlnb.design.operations.image_layout import ImageLayout
from rlnb.design.reward import Shaping
from rlnb.envs.make import Spaces
from rlnb.envs.unsupported import untrainable_action, untrainable_observation
from rlnb.errors import ExperimentError
from rlnb.run.algorithms import ALGORITHMS
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.references import KEY

#: pixels that the three convolutions of SB3's NatureCNN leave something of: 8/4, 4/2, 3/1
_LEAST_SIDE = 36


def check_spaces(spec: ExperimentSpec, spaces: Spaces, design: Design) -> None:
    """Raises ExperimentError if the algorithm or policy cannot take the environment's spaces.

    Args:
        spec: the experiment.
        spaces: of its environment.
        design: its design; what the agent sees may be other than what the environment gives.
    """
    _check_action(spec, spaces.action)
    seen = spaces.observation
    layout = None
    if not design.state.is_identity:
        names = list(spec.names or ())
        seen, layout = design.state.space(seen, names), design.state.plan(seen, names).layout
    if isinstance(spec.policy, str):
        unfit = untrainable_observation(seen)
        if unfit is not None:
            raise ExperimentError(unfit)
    _check_policy(spec, seen)
    if layout is not None and spec.policy == "CnnPolicy":
        _check_layout(layout)
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
    unfit = untrainable_action(space)
    if unfit is not None:
        raise ExperimentError(f"{spec.env.value}: {unfit}")
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
    if isinstance(space, gym.spaces.Dict):
        parts = [part for part in space.values() if _is_bytes(part)]
    else:
        parts = [space] if spec.policy == "CnnPolicy" else []
    if spec.policy == "CnnPolicy":
        _check_picture(spec, space)
    if _reads_pictures(spec):
        for part in parts:
            _check_pixels(part)


def _check_picture(spec: ExperimentSpec, space: gym.Space[Any]) -> None:
    """CnnPolicy takes pictures of bytes, which it scales by itself; others only if it is told not to."""
    if _is_bytes(space):
        return
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 2:
        raise ExperimentError(
            f"policy='CnnPolicy' needs pictures with channels, and the agent sees {space}; add the state operation "
            "rlnb.Grayscale(), which gives them one"
        )
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 3:
        raise ExperimentError(
            f"policy='CnnPolicy' needs images (uint8, three dimensions), and the agent sees {space}; "
            "use policy='MlpPolicy'"
        )
    scaled_elsewhere = not spec.hyperparameters["policy_kwargs"]["normalize_images"]
    if not scaled_elsewhere:
        raise ExperimentError(
            f"policy='CnnPolicy' needs images of bytes (uint8, 0 to 255), which SB3 scales to [0, 1] by itself, and the "
            f"agent sees {space}; leave to_unit out of the state"
        )
    if space.dtype != np.uint8 and int(np.argmin(space.shape)) != 0:
        # SB3 transposes pictures of bytes only, and its convolutions read the first dimension as channels
        raise ExperimentError(
            f"policy='CnnPolicy' with normalize_images=False needs the channels first, and the agent sees {space}; "
            "leave to_unit and normalize_images out, or transpose with gymnasium.wrappers.TransformObservation"
        )


def _check_pixels(space: gym.Space[Any]) -> None:
    shape = space.shape or ()
    sides = shape[1:] if int(np.argmin(shape)) == 0 else shape[:2]
    if min(sides) < _LEAST_SIDE:
        raise ExperimentError(
            f"SB3's convolutions (NatureCNN) need pictures of at least {_LEAST_SIDE}x{_LEAST_SIDE}, and the agent sees "
            f"{sides[0]}x{sides[1]}; resize to more pixels, use policy='MlpPolicy', or give "
            "policy_kwargs={'features_extractor_class': …}"
        )


def _check_layout(layout: ImageLayout) -> None:
    read_first = int(np.argmin(layout.shape)) == 0
    if layout.channels is not None and read_first != layout.first:
        raise ExperimentError(
            f"SB3 takes the smallest dimension for the channels, and the agent sees a {layout}; stack fewer frames, "
            "or resize to more pixels than channels"
        )


def _is_bytes(space: gym.Space[Any]) -> bool:
    box = isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
    return bool(box and (space.low == 0).all() and (space.high == 255).all())  # type: ignore[attr-defined]


def _reads_pictures(spec: ExperimentSpec) -> bool:
    """Whether SB3's own convolutions read the pictures."""
    extractor = spec.hyperparameters["policy_kwargs"].get("features_extractor_class")
    name = str(extractor[KEY] if isinstance(extractor, dict) else extractor)
    return name.endswith((":NatureCNN", ":CombinedExtractor"))
