"""Sums over the episode that runs in each environment: returns, and what each reward term gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.reward import RewardResult


class EpisodeSums:
    """Float64 sums per environment, of fixed order, so that a resumed run logs the same numbers.

    Args:
        n_envs: number of environments.
    """

    def __init__(self, n_envs: int) -> None:
        self._n = n_envs
        self._names: tuple[str, ...] = ()
        self._weighted: Array = np.zeros((0, n_envs))
        self._plain: Array = np.zeros((0, n_envs))
        self.reset()

    def reset(self) -> None:
        """Forgets all episodes that run."""
        self._paid = np.zeros(self._n)
        self._env = np.zeros(self._n)
        self._weighted = np.zeros((len(self._names), self._n))
        self._plain = np.zeros((len(self._names), self._n))

    def add_environment(self, rewards: Array) -> None:
        """Takes in a step that is paid the environment's own reward, (n_envs,)."""
        self._paid += rewards
        self._env += rewards

    def add(self, env_rewards: Array, result: RewardResult) -> None:
        """Takes in a step that a design has paid."""
        names = tuple(result.terms)
        if names != self._names:
            self._names = names
            self._weighted, self._plain = np.zeros((len(names), self._n)), np.zeros((len(names), self._n))
        values = np.array(list(result.terms.values())) if names else self._plain
        weights = np.array([result.weight(name) for name in names])
        with np.errstate(all="ignore"):  # a NaN is found and named elsewhere
            self._paid += result.total
            self._env += env_rewards
            self._plain += values
            self._weighted += values * weights[:, None]

    def take(self, index: int, *, length: int) -> dict[str, Any]:
        """Returns one environment's sums and begins its next episode.

        Returns:
            `return` (paid), `return_env` (the environment's own), `length` in steps, `terms` (weighted sum by
            term) and `values` (sum before the weight, which says something for weight 0 too).
        """
        sums = {
            "return": float(self._paid[index]),
            "return_env": float(self._env[index]),
            "length": length,
            "terms": {
                name: float(total) for name, total in zip(self._names, self._weighted[:, index], strict=True)
            },
            "values": {
                name: float(total) for name, total in zip(self._names, self._plain[:, index], strict=True)
            },
        }
        self._paid[index] = self._env[index] = 0.0
        self._weighted[:, index] = self._plain[:, index] = 0.0
        return sums

    def state_dict(self) -> dict[str, Any]:
        """The running sums, for a checkpoint."""
        return {
            "names": list(self._names),
            "paid": self._paid.copy(),
            "env": self._env.copy(),
            "weighted": self._weighted.copy(),
            "plain": self._plain.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues the sums."""
        self._names = tuple(state["names"])
        self._paid, self._env = np.array(state["paid"]), np.array(state["env"])
        self._weighted, self._plain = np.array(state["weighted"]), np.array(state["plain"])
