"""The user's callbacks in a checkpoint: SB3's counters always, their own state through `state_dict()`.

SB3's own callbacks have no `state_dict`; what they count and remember is plain, and is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback

_BASE = {"model", "n_calls", "num_timesteps", "verbose", "locals", "globals", "parent"}


def as_callbacks(given: Sequence[BaseCallback | Callable[..., Any]]) -> list[BaseCallback]:
    """Returns callback objects; plain functions are wrapped as SB3 wraps them."""
    return [one if isinstance(one, BaseCallback) else ConvertCallback(one) for one in given]


def flat(callbacks: Sequence[BaseCallback]) -> list[BaseCallback]:
    """Returns all callbacks, those inside lists and event callbacks included, in a fixed order."""
    found: list[BaseCallback] = []
    for one in callbacks:
        found.append(one)
        if isinstance(one, CallbackList):
            found += flat(one.callbacks)
        for name in ("callback", "callback_on_new_best"):
            inner = vars(one).get(name)
            if isinstance(inner, BaseCallback):
                found += flat([inner])
    return found


def stateless_reasons(callbacks: Sequence[BaseCallback]) -> list[str]:
    """Names the callbacks that have attributes of their own and no way to give and take them."""
    reasons = []
    for one in flat(callbacks):
        if _has_state_dict(one) or _is_sb3(one):
            continue
        if set(vars(one)) - _BASE:
            reasons.append(f"{type(one).__name__} has no state_dict")
    return reasons


def capture_callbacks(callbacks: Sequence[BaseCallback]) -> list[dict[str, Any]]:
    """Returns one dict per callback."""
    return [
        {
            "type": type(one).__name__,
            "n_calls": one.n_calls,
            "num_timesteps": one.num_timesteps,
            "own": _own(one),
            "plain": _plain(one) if _is_sb3(one) else {},
        }
        for one in flat(callbacks)
    ]


def restore_callbacks(callbacks: Sequence[BaseCallback], states: Sequence[dict[str, Any]]) -> None:
    """Puts back what `capture_callbacks` returned; callbacks that a fork added or dropped are passed over."""
    for one, state in zip(flat(callbacks), states, strict=False):
        if type(one).__name__ != state["type"]:
            continue
        one.n_calls, one.num_timesteps = state["n_calls"], state["num_timesteps"]
        if state["own"] is not None and _has_state_dict(one):
            restorable: Any = one
            restorable.load_state_dict(state["own"])
        vars(one).update(state["plain"])


def _own(one: Any) -> Any:
    return one.state_dict() if _has_state_dict(one) else None


def _has_state_dict(one: Any) -> bool:
    return callable(getattr(one, "state_dict", None)) and callable(getattr(one, "load_state_dict", None))


def _is_sb3(one: BaseCallback) -> bool:
    return type(one).__module__.partition(".")[0] in ("stable_baselines3", "sb3_contrib")


def _plain(one: BaseCallback) -> dict[str, Any]:
    return {name: value for name, value in vars(one).items() if name not in _BASE and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(inner) for inner in value)
    return value is None or isinstance(value, (bool, int, float, str, np.generic))
