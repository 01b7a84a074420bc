"""A goal environment, for hindsight replay."""

from __future__ import annotations

import gymnasium as gym
import numpy as np


class Goal(gym.Env):
    """A point that is to come near a place."""

    def __init__(self):
        box = gym.spaces.Box(-5, 5, (2,), np.float32)
        self.observation_space = gym.spaces.Dict(observation=box, achieved_goal=box, desired_goal=box)
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = np.zeros(2, np.float32), 0
        self.goal = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.observe(), {}

    def observe(self):
        return {
            "observation": self.place.copy(),
            "achieved_goal": self.place.copy(),
            "desired_goal": self.goal.copy(),
        }

    def compute_reward(self, achieved, desired, info):
        return -(np.linalg.norm(np.asarray(achieved) - desired, axis=-1) > 0.3).astype(np.float32)

    def step(self, action):
        self.place = np.clip(self.place + 0.2 * action, -5, 5).astype(np.float32)
        self.steps += 1
        reward = float(self.compute_reward(self.place, self.goal, {}))
        return (
            self.observe(),
            reward,
            False,
            self.steps >= 15,
            {"is_success": reward == 0, "at": self.place.copy()},
        )
