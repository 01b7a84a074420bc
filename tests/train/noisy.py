"""An environment that draws from the global generators of its process, as many own environments do."""

from __future__ import annotations

import random

import gymnasium as gym
import numpy as np


class Noisy(gym.Env):
    """Walks on a line; the noise is not the environment's own."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = random.random(), 0
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        self.place += (0.1 if action else -0.1) + np.random.normal() * 0.05
        return self.observe(), -abs(self.place), abs(self.place) > 2, self.steps >= 30, {}

    def observe(self):
        return np.array([self.place, self.np_random.random()], dtype=np.float32)
