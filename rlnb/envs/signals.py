"""Signals: numbers read from inside an environment at every step, for rewards to use.

    signals = {"foot_force": lambda env: env.unwrapped.data.cfrc_ext[4, 2]}

A signal is read right after each step, in the process that holds the environment, and travels in `info`,
so that a reward term sees it at training time exactly as a recording stored it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import gymnasium as gym

from rlnb.design.term import check_name
from rlnb.errors import EnvError, UsageError

KEY: Final = "rlnb.signals"
"""The key of `info` under which a step's signals stand."""

Signal = Callable[["gym.Env[Any, Any]"], float]


def check_signals(given: Any) -> dict[str, Signal]:
    """Returns the signals as functions by name.

    Raises:
        UsageError: it is no mapping, or holds something that is no function.
        DesignError: a name cannot stand in an expression.
    """
    if not isinstance(given, Mapping):
        raise UsageError(
            f"signals={given!r:.80} is no mapping; write e.g. signals={{'force': lambda env: env.unwrapped.force}}"
        )
    for name, function in given.items():
        check_name(name)
        if not callable(function):
            raise UsageError(
                f"signals[{name!r}]={function!r:.80} is no function; give one that takes the environment and returns a number"
            )
    return dict(given)


class SignalEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Adds `info["rlnb.signals"] = {name: float}` to every step.

    Args:
        env: the environment to read from.
        signals: functions of the environment, by name; each returns one number and must not change anything.
    """

    def __init__(self, env: gym.Env[Any, Any], signals: Mapping[str, Signal]) -> None:
        super().__init__(env)
        self.signals = dict(signals)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps and reads the signals.

        Raises:
            EnvError: if a signal fails or is no number, naming it.
        """
        obs, reward, terminated, truncated, info = self.env.step(action)
        info[KEY] = {name: self._read(name, signal) for name, signal in self.signals.items()}
        return obs, reward, terminated, truncated, info

    def _read(self, name: str, signal: Signal) -> float:
        try:
            value = signal(self.env)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise EnvError(f"the signal {name!r} failed: {type(error).__name__}: {error}") from error
        try:
            return float(value)
        except (TypeError, ValueError):
            raise EnvError(f"the signal {name!r} gave {value!r:.80}; it has to give one number") from None


def with_signals(env: gym.Env[Any, Any], signals: Mapping[str, Signal] | None) -> gym.Env[Any, Any]:
    """Returns the environment with its signals, or as it is when there are none."""
    return SignalEnv(env, signals) if signals else env
