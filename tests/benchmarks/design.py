"""What a designed reward costs at training time: eight terms, a Python one among them, eight environments."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.design.reward import RewardSpec, Shaping, Term
from rlnb.design.transitions import Transitions
from rlnb.envs.apply import DesignApplier
from rlnb.train.designvec import DesignVecEnv
from tests.benchmarks.harness import figure

N_ENVS = 8
STEPS = 2000
ENDS_ONE_IN = 200  # steps until an episode ends, on average; LunarLander's last 100 to 1,000


def smoothness(batch: Transitions) -> Any:
    return -1.0 * (batch.action != batch.prev_action)


TERMS = [
    Term("env", "reward"),
    Shaping("approach", "-sqrt(x**2 + y**2)", gamma=0.999),
    Term("speed", "-sqrt(vx**2 + vy**2) * (y < 0.5)", weight=0.3),
    Term("upright", "-abs(angle)", weight=0.5, clip=(-1.0, 0.0)),
    Term("spin", "-abs(angle_rate)", weight="lin_0.1"),
    Term("soft_landing", "where(left_contact + right_contact > 0, exp(-abs(next_vy)), 0)", weight=2.0),
    Term("fuel", "-(action == 2) - 0.1 * (action != 0)", weight=0.3),
    Term("smoothness", smoothness, weight=0.05),
]


class Replayed(VecEnv):
    """Hands out steps that were made up beforehand: what is measured is the design and not the physics."""

    def __init__(self, *, seed: int) -> None:
        space = gym.spaces.Box(-10.0, 10.0, (8,), np.float32)
        super().__init__(N_ENVS, space, gym.spaces.Discrete(4))
        rng = np.random.default_rng(seed)
        self._obs = rng.normal(size=(STEPS, N_ENVS, 8)).astype(np.float32)
        self._obs[..., 6:] = self._obs[..., 6:] > 0.5  # the legs' contacts
        self._rewards = rng.normal(size=(STEPS, N_ENVS)).astype(np.float32)
        self._dones = rng.random((STEPS, N_ENVS)) < 1 / ENDS_ONE_IN
        self.actions = rng.integers(4, size=(STEPS, N_ENVS))
        self._at = 0

    def reset(self) -> Any:
        self._at = 0
        return self._obs[-1]

    def step_async(self, actions: Any) -> None:
        pass

    def step_wait(self) -> Any:
        at, self._at = self._at, self._at + 1
        infos: list[dict[str, Any]] = [{} for _ in range(N_ENVS)]
        for index in np.flatnonzero(self._dones[at]):
            infos[index] = {
                "terminal_observation": self._obs[at - 1, index],
                "TimeLimit.truncated": False,
                "episode": {"r": 1.0, "l": 100, "t": 0.0},
            }
        return self._obs[at], self._rewards[at], self._dones[at], infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * N_ENVS

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * N_ENVS


def microseconds(venv: VecEnv, actions: Any) -> float:
    """Returns the median microseconds of a vector step."""
    venv.reset()
    taken = np.empty(STEPS)
    for at in range(STEPS):
        begun = time.perf_counter()
        venv.step(actions[at])
        taken[at] = time.perf_counter() - begun
    return float(np.median(taken)) * 1e6


@figure("overhead_design", "us", "<= 150")
def overhead_design() -> list[float]:
    """The designed step less the identity's, which has no wrapper; pairs in turn, as the machine drifts."""
    plain = Replayed(seed=0)
    names = component_names(plain.observation_space, "LunarLander-v3")
    applier = DesignApplier(Design(reward=RewardSpec(TERMS)), plain.observation_space, names, N_ENVS)
    designed = DesignVecEnv(Replayed(seed=0), applier, total=STEPS * N_ENVS)
    microseconds(plain, plain.actions), microseconds(designed, plain.actions)
    return [microseconds(designed, plain.actions) - microseconds(plain, plain.actions) for _ in range(9)]
