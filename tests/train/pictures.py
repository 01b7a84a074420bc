"""An environment that shows pictures."""

from __future__ import annotations

import gymnasium as gym
import numpy as np


class Pictures(gym.Env):
    """Noise with a bright column; the action that names its half is paid."""

    observation_space = gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        self.column = int(self.np_random.integers(36))
        picture = self.np_random.integers(0, 100, (36, 36, 3), dtype=np.uint8)
        picture[:, self.column] = 255
        return picture

    def step(self, action):
        paid = float(action == self.column // 18)
        self.steps += 1
        return self.observe(), paid, False, self.steps >= 20, {}
