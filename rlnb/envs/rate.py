"""How fast an environment runs in its own time, for playing episodes back."""

from __future__ import annotations

import math
from typing import Any, Final

import gymnasium as gym
from gymnasium import error as gym_error

from rlnb.envs.make import EnvFactory

USUAL: Final = 30.0
"""Steps per second where an environment does not say."""


def steps_per_second(factory: EnvFactory) -> float:
    """Returns the rate that an environment names in its class's `metadata["render_fps"]`.

    Nothing is made: a class that has been imported already is looked at.
    """
    target: Any = factory.target
    try:
        if target is None:
            spec = factory.registered or gym.spec(factory.value)
            target = spec.entry_point
            if isinstance(target, str):
                target = gym.envs.registration.load_env_creator(target)
        rate = (getattr(target, "metadata", None) or {}).get("render_fps")
        value = float(rate) if rate is not None else USUAL
    except (gym_error.Error, ImportError, AttributeError, TypeError, ValueError):
        return USUAL
    return value if math.isfinite(value) and value > 0 else USUAL
