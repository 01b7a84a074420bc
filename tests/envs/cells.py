"""Environments as users write them, and as they should not."""

from __future__ import annotations

import types
from typing import Any

import gymnasium as gym
import numpy as np

CELL = '''
import gymnasium as gym
import numpy as np

STEP = 0.25

class Walk(gym.Env):
    """A walk on a line with its own observation names, defined in a cell."""

    def __init__(self, goal=1.0):
        self.goal = goal
        self.observation_space = gym.spaces.Box(-10, 10, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = float(self.np_random.uniform(-0.1, 0.1))
        self.steps = 0
        return self._obs(), {}

    def step(self, action):
        self.x += STEP if action else -STEP
        self.steps += 1
        return self._obs(), -abs(self.goal - self.x), abs(self.x) >= self.goal, self.steps >= 20, {"x": self.x}

    def _obs(self):
        return np.array([self.x, self.steps], dtype=np.float64)

def make_walk(goal=2.0):
    return Walk(goal)
'''


def run_cell(source: str = CELL) -> dict[str, Any]:
    """Executes source as a notebook cell does: in a namespace called `__main__` that is no file."""
    module = types.ModuleType("__main__")
    exec(compile(source, "<cell>", "exec"), module.__dict__)  # noqa: S102 - it stands for IPython
    return module.__dict__


class Counter(gym.Env[Any, Any]):
    """An importable environment: counts to `length` and ends."""

    def __init__(self, length: int = 3) -> None:
        self.length = length
        self.observation_space = gym.spaces.Box(-100, 100, (1,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        done = self.count >= self.length
        return np.full(1, self.count, np.float32), 0.1 * self.count, done, done, {"count": self.count}


def make_counter(length: int = 5) -> Counter:
    """A function that makes an environment."""
    return Counter(length)


class OldReturns(Counter):
    """Derives from gymnasium.Env but returns what gym 0.21 returned."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0]

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated or truncated, info


class OldStep(Counter):
    """Resets as it should, but steps as gym 0.21 did."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated or truncated, info


class OldReset(Counter):
    """reset() without a seed."""

    def reset(self) -> Any:  # type: ignore[override]
        return np.zeros(1, np.float32)


class DuckTyped:
    """An environment of no library, old protocol."""

    def reset(self) -> Any:
        return 0

    def step(self, action: Any) -> Any:
        return 0, 0.0, True, {}


def old_gym_class() -> type:
    """A class as the old gym package would give it."""

    def reset(self: Any) -> Any:
        return 0

    base = type(
        "Env", (), {"__module__": "gym.core", "reset": reset, "step": lambda self, action: (0, 0.0, True, {})}
    )
    return type("OldCartPole", (base,), {"__module__": "somewhere"})
