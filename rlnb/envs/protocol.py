"""Recognising what is not a gymnasium environment, and naming the adapter that makes it one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import gymnasium as gym
import numpy as np

from rlnb.errors import EnvError

_FIX: Final = "or let reset() return (obs, info) and step() return (obs, reward, terminated, truncated, info)"
V21: Final = "shimmy.GymV21CompatibilityV0(env=…)"
V26: Final = "shimmy.GymV26CompatibilityV0(env=…)"


def refuse_foreign(candidate: Any, label: str) -> None:
    """Raises EnvError if a class or instance is of another library's or an older protocol.

    Only looks, calls nothing, so that it is safe on classes whose constructors are slow.

    Args:
        candidate: a class or an instance.
        label: the environment's name, for the message.
    """
    kind = candidate if isinstance(candidate, type) else type(candidate)
    if issubclass(kind, gym.vector.VectorEnv):
        raise EnvError(f"{label} is a vector environment; give the single environment and n_envs=…")
    if issubclass(kind, gym.Env):
        if not _takes_seed(kind.reset):
            _old(label, "reset() takes no seed", V21)
        return
    roots = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if "gym" in roots:
        adapter = V26 if hasattr(kind, "reset") and _takes_seed(kind.reset) else V21
        _old(label, "it is an environment of the old gym package", adapter)
    if "pettingzoo" in roots or hasattr(candidate, "possible_agents"):
        raise EnvError(
            f"{label} has several agents (PettingZoo); make one gymnasium environment of it, for instance by "
            "fixing the other agents' policies in a wrapper class"
        )
    if "dm_env" in roots or (hasattr(kind, "observation_spec") and hasattr(kind, "action_spec")):
        raise EnvError(
            f"{label} follows dm_env, not gymnasium; wrap it with shimmy.DmControlCompatibilityV0(env=…) "
            "(pip install 'shimmy[dm-control]')"
        )
    if hasattr(kind, "reset") and hasattr(kind, "step"):
        if not _takes_seed(kind.reset):
            _old(label, "reset() takes no seed and its class is not a gymnasium.Env", V21)
        raise EnvError(
            f"{label} has reset() and step() but is no gymnasium.Env; derive its class from gymnasium.Env"
        )
    if not isinstance(candidate, type):
        raise EnvError(f"{label} gave {type(candidate).__name__}, not a gymnasium.Env; return an environment")


def check_reset(result: Any, label: str) -> tuple[Any, dict[str, Any]]:
    """Returns `(obs, info)` of a reset, or raises EnvError if it is of the old protocol."""
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping)):
        _old(label, "reset() returns only an observation", V21)
    return result[0], dict(result[1])


def check_step(result: Any, label: str) -> None:
    """Raises EnvError if a step's result is not gymnasium's five values, with a number and a mapping among them."""
    length = len(result) if isinstance(result, tuple) else 0
    if length == 4:
        _old(label, "step() returns 4 values (obs, reward, done, info)", V21)
    if length != 5:
        raise EnvError(
            f"{label}: step() returns {f'{length} values' if length else type(result).__name__}, "
            "not (obs, reward, terminated, truncated, info)"
        )
    reward = result[1]
    if not isinstance(reward, float | int | np.number | np.bool_) and getattr(reward, "shape", None) != ():
        raise EnvError(f"{label}: step() returns the reward {reward!r:.60}; it has to be one number")
    if not isinstance(result[4], Mapping):
        raise EnvError(
            f"{label}: step() returns the info {result[4]!r:.60}; it has to be a dict, {{}} if empty"
        )


def _old(label: str, found: str, adapter: str) -> NoReturn:
    extra = "gym-v26" if adapter == V26 else "gym-v21"
    raise EnvError(
        f"{label} follows the old reset/step protocol: {found}; wrap it with {adapter} "
        f"(pip install 'shimmy[{extra}]'), {_FIX}"
    )


def _takes_seed(reset: Any) -> bool:
    try:
        parameters = inspect.signature(reset).parameters.values()
    except (TypeError, ValueError):
        return True  # built in C: only calling it will tell
    return any(one.name == "seed" or one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
