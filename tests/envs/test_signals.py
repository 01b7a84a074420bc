"""Signals are read after every step and travel in `info`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cells import Counter

from rlnb.envs.signals import KEY, SignalEnv, with_signals
from rlnb.errors import EnvError

ACTION = np.zeros(2, np.float32)


def test_a_signal_is_what_the_environment_holds_after_the_step() -> None:
    env = SignalEnv(Counter(), {"double": lambda env: 2 * env.unwrapped.count})
    env.reset(seed=0)
    for expected in (2.0, 4.0):
        info = env.step(ACTION)[4]
        assert info[KEY] == {"double": expected}
        assert type(info[KEY]["double"]) is float


def test_no_signals_wrap_nothing() -> None:
    env = Counter()
    assert with_signals(env, {}) is env
    assert with_signals(env, None) is env


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        (lambda env: env.unwrapped.nothing, r"the signal 'force' failed: AttributeError: .*nothing"),
        (lambda env: "strong", r"the signal 'force' gave 'strong'; it has to give one number"),
        (lambda env: np.zeros(2), r"the signal 'force' gave array\(.*; it has to give one number"),
    ],
)
def test_a_bad_signal_is_named(signal: Any, message: str) -> None:
    env = SignalEnv(Counter(), {"force": signal})
    env.reset(seed=0)
    with pytest.raises(EnvError, match=message):
        env.step(ACTION)
