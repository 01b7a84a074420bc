"""Who acts while a recording is made: nobody in particular, a function, or a trained model."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import gymnasium as gym
import numpy as np

from rlnb.envs.unsupported import unsupported_action
from rlnb.errors import UsageError, did_you_mean

Act = Callable[[Any], Any]

BUILT_IN: Final = ("random", "idle", "sticky")
"""Names of the policies that need no code."""

HOLD: Final = 40
"""Longest run of one action of "sticky"; how long one is held is drawn evenly from 1 to this."""

#: environment (id without version) → the action that its documentation calls doing nothing, where that is not 0
_NO_OPERATION: Final = {"MountainCar": 1, "Acrobot": 1}


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Actor:
    """A policy, ready to act.

    Attributes:
        act: returns the action for one observation.
        label: the policy's name in recordings.
        begin: called before the first observation of every episode.
    """

    act: Act
    label: str
    begin: Callable[[], None] = _nothing


def resolve_policy(
    policy: object,
    space: gym.Space[Any],
    *,
    seed: int,
    deterministic: bool,
    label: str | None,
    env_id: str | None = None,
) -> Actor:
    """Returns what acts, and the policy's label.

    Args:
        policy: "random" (uniform over the action space), "idle" (does nothing), "sticky" (a random action
            that is held for a random time, which gets further than "random"), a function of one observation, an
            SB3 model, or what `load_policy` returns.
        space: the action space; random actions come from generators of their own.
        seed: of those.
        deterministic: whether a model acts by its mode instead of sampling.
        label: the name to record, instead of the policy's own.
        env_id: gymnasium id, whose action for doing nothing may be known.

    Raises:
        UsageError: if it is none of these.
    """
    unfit = unsupported_action(space)
    if unfit is not None:
        raise UsageError(unfit)
    if isinstance(policy, str):
        if policy not in BUILT_IN:
            raise UsageError(
                f"policy={policy!r} is unknown.{did_you_mean(policy, BUILT_IN)} Give "
                f"{', '.join(map(repr, BUILT_IN))}, a function of one observation, or an SB3 model"
            )
        if policy == "idle":
            still = idle_action(space, env_id)
            return Actor(lambda _: still, label or policy)
        space.seed(seed)
        if policy == "random":
            return Actor(lambda _: space.sample(), label or policy)
        sticky = _Sticky(space, seed)
        return Actor(sticky, label or policy, sticky.begin)
    predict = getattr(policy, "predict", None)
    if callable(predict):
        model = _Model(predict, deterministic, getattr(policy, "begin_episode", None))
        return Actor(model, label or str(getattr(policy, "label", type(policy).__name__)), model.begin)
    if callable(policy):
        name = str(getattr(policy, "__name__", type(policy).__name__))
        return Actor(cast(Act, policy), label or name)
    raise UsageError(
        f"policy={policy!r:.80} cannot act; give {', '.join(map(repr, BUILT_IN))}, a function of one "
        "observation, or an SB3 model"
    )


def idle_action(space: gym.Space[Any], env_id: str | None = None) -> Any:
    """Returns the action that does nothing, as far as it is known: zero, within the bounds of a Box.

    For a Discrete space without a documented action for it this is the first one, which may well do something
    (CartPole pushes to the left).

    Raises:
        UsageError: the space is of a kind that has no such action.
    """
    if isinstance(space, gym.spaces.Box):
        return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
    if isinstance(space, gym.spaces.Discrete):
        base = re.sub(r"-v\d+$", "", (env_id or "").split("/")[-1].split(":")[-1])
        return np.int64(space.start + min(_NO_OPERATION.get(base, 0), int(space.n) - 1))
    if isinstance(space, gym.spaces.MultiDiscrete):
        return np.array(space.start, dtype=space.dtype)
    if isinstance(space, gym.spaces.MultiBinary):
        return np.zeros(space.shape, dtype=space.dtype)
    raise UsageError(f"policy='idle' does not know what doing nothing is in {space}; give a function")


class _Sticky:
    """Holds a random action for a random time.

    Random actions that change at every step cancel each other out; held ones reach further (Dabney, Ostrovski
    and Barreto, "Temporally-Extended ε-Greedy Exploration", 2021).
    """

    def __init__(self, space: gym.Space[Any], seed: int) -> None:
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._left = 0
        self._action: Any = None

    def begin(self) -> None:
        self._left = 0

    def __call__(self, _: Any) -> Any:
        if self._left == 0:
            self._action = self._space.sample()
            self._left = int(self._rng.integers(1, HOLD, endpoint=True))
        self._left -= 1
        return self._action


class _Model:
    """Asks a model's `predict`, and hands a recurrent one its memory back until the episode ends."""

    def __init__(self, predict: Callable[..., Any], deterministic: bool, begin: Any) -> None:
        self._predict = predict
        self._deterministic = deterministic
        self._begin = begin if callable(begin) else _nothing
        try:
            self._remembers = "state" in inspect.signature(predict).parameters
        except (TypeError, ValueError):
            self._remembers = False
        self._state: Any = None

    def begin(self) -> None:
        self._state = None
        self._begin()

    def __call__(self, obs: Any) -> Any:
        memory = {"state": self._state} if self._remembers else {}
        action, self._state = self._predict(obs, deterministic=self._deterministic, **memory)
        return action


def as_action(action: Any, space: gym.Space[Any], label: str) -> Any:
    """Returns an action in the space's dtype and shape, as a vector environment would hand it over.

    Raises:
        UsageError: if it does not fit the space.
    """
    try:
        return _fitted(action, space, label)
    except (TypeError, ValueError, OverflowError):
        raise _misfit(action, space, label) from None


def _fitted(action: Any, space: gym.Space[Any], label: str) -> Any:
    if isinstance(space, gym.spaces.Box):
        fitted = (
            np.asarray(action, dtype=space.dtype).reshape(space.shape)
            if np.size(action) == _size(space)
            else None
        )
        if fitted is not None and not np.isnan(fitted).any():
            return fitted
    elif isinstance(space, gym.spaces.Discrete):
        if np.size(action) == 1:
            given = np.asarray(action).reshape(())
            if given == int(given) and space.contains(int(given)):  # 0.7 would be played as 0
                return np.int64(given)
    elif space.contains(action):
        return np.asarray(action, dtype=space.dtype)
    raise _misfit(action, space, label)


def _misfit(action: Any, space: gym.Space[Any], label: str) -> UsageError:
    return UsageError(f"the policy {label} gave the action {action!r:.80}, which does not fit {space}")


def _size(space: gym.spaces.Box) -> int:
    return int(np.prod(space.shape))
