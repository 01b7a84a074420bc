"""Recorded rollouts of real environments, without the recording floor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.design.checks.finding import Finding
from rlnb.design.transitions import Transitions


def roll(
    env: gym.Env[Any, Any],
    act: Callable[[Any], Any] | None,
    label: str,
    episodes: int,
    names: tuple[str, ...],
):
    """Returns whole episodes; `act` None draws random actions."""
    rows: dict[str, list[Any]] = {
        key: [] for key in ("obs", "next", "action", "reward", "done", "cut", "t", "episode")
    }
    env.action_space.seed(0)
    for episode in range(episodes):
        obs, _ = env.reset(seed=episode)
        t, over = 0, False
        while not over:
            action = env.action_space.sample() if act is None else act(obs)
            after, reward, done, cut, _ = env.step(action)
            values = (obs, after, action, reward, done, cut and not done, t, episode)
            for key, value in zip(rows, values, strict=True):
                rows[key].append(value)
            obs, t, over = after, t + 1, done or cut
    return Transitions.from_arrays(
        np.array(rows["obs"]),
        np.array(rows["next"]),
        np.array(rows["action"]),
        reward=np.array(rows["reward"], dtype=float),
        terminated=np.array(rows["done"]),
        truncated=np.array(rows["cut"]),
        t=np.array(rows["t"]),
        episode=np.array(rows["episode"]),
        names=names,
        labels=dict.fromkeys(range(episodes), label),
    )


def mountain_car() -> Transitions:
    env = gym.make("MountainCar-v0")
    names = ("x", "v")
    pump = roll(env, lambda obs: 2 if obs[1] >= 0 else 0, "pump", 4, names)
    return Transitions.concat([roll(env, None, "random", 4, names), pump])


def cart_pole() -> Transitions:
    env = gym.make("CartPole-v1", max_episode_steps=200)
    names = ("x", "vx", "angle", "spin")
    balance = roll(env, lambda o: int(o[2] + 0.5 * o[3] + 0.05 * o[0] + 0.1 * o[1] > 0), "balance", 4, names)
    return Transitions.concat([roll(env, None, "random", 20, names), balance])


def lunar_lander() -> Transitions:
    from gymnasium.envs.box2d.lunar_lander import heuristic

    env = gym.make("LunarLander-v3")
    names = ("x", "y", "vx", "vy", "angle", "spin", "left", "right")
    land = roll(env, lambda obs: heuristic(env.unwrapped, obs), "land", 3, names)
    return Transitions.concat([roll(env, None, "random", 6, names), land])


class Grid(gym.Env[Any, Any]):
    """A corridor of seven cells. Entering cell 2 from the left pays 1; reaching cell 6 ends it and pays 3."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Box(0.0, 6.0, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None):
        super().reset(seed=seed)
        self._cell, self._t = 0, 0
        return self._seen(), {}

    def step(self, action: Any):
        before, self._t = self._cell, self._t + 1
        self._cell = max(before + (1 if action else -1), 0)
        reward = 3.0 if self._cell == 6 else 1.0 if (before, self._cell) == (1, 2) else 0.0
        return self._seen(), reward, self._cell == 6, self._t >= 50, {}

    def _seen(self):
        return np.array([self._cell], dtype=np.float32)


def grid() -> Transitions:
    env = Grid()
    return Transitions.concat(
        [roll(env, None, "random", 6, ("cell",)), roll(env, lambda _: 1, "demo", 2, ("cell",))]
    )


def by_code(findings: list[Finding]) -> dict[str, Finding]:
    found = {finding.code: finding for finding in findings}
    assert len(found) == len(findings)
    return found
