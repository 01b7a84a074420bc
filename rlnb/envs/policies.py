"""Who acts while a recording is made: nobody in particular, a function, or a trained model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import gymnasium as gym
import numpy as np

from rlnb.errors import UsageError, did_you_mean

Act = Callable[[Any], Any]


def resolve_policy(
    policy: object, space: gym.Space[Any], *, seed: int, deterministic: bool, label: str | None
) -> tuple[Act, str]:
    """Returns a function from one observation to one action, and the policy's label.

    Args:
        policy: "random" (uniform over the action space), a function of one observation, or an SB3 model.
        space: the action space; random actions come from a generator of their own.
        seed: of that generator.
        deterministic: whether a model acts by its mode instead of sampling.
        label: the name to record, instead of the policy's own.

    Raises:
        UsageError: if it is none of these.
    """
    if isinstance(policy, str):
        if policy != "random":
            raise UsageError(
                f"policy={policy!r} is unknown.{did_you_mean(policy, ['random'])} "
                "Give 'random', a function of one observation, or an SB3 model"
            )
        space.seed(seed)
        return lambda _: space.sample(), label or "random"
    predict = getattr(policy, "predict", None)
    if callable(predict):
        return lambda obs: predict(obs, deterministic=deterministic)[0], label or type(policy).__name__
    if callable(policy):
        return cast(Act, policy), label or str(getattr(policy, "__name__", type(policy).__name__))
    raise UsageError(
        f"policy={policy!r:.80} cannot act; give 'random', a function of one observation, or an SB3 model"
    )


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
        if np.size(action) == 1 and space.contains(int(np.asarray(action).reshape(()))):
            return np.int64(np.asarray(action).reshape(()))
    elif space.contains(action):
        return action
    raise _misfit(action, space, label)


def _misfit(action: Any, space: gym.Space[Any], label: str) -> UsageError:
    return UsageError(f"the policy {label} gave the action {action!r:.80}, which does not fit {space}")


def _size(space: gym.spaces.Box) -> int:
    return int(np.prod(space.shape))
