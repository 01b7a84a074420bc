"""Applying a design at vector-env level, with the very functions that preview a batch.

`DesignApplier` knows SB3's conventions and nothing of SB3: an environment that is done has been reset
already, its last observation stands in `infos[i]["terminal_observation"]`, and `TimeLimit.truncated` says
that it was cut off without being terminal. The trainer's VecEnv wrapper, recordings and previews use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import gymnasium as gym
import numpy as np

from rlnb.design.columns import Array
from rlnb.design.design import Design
from rlnb.design.reward import RewardResult
from rlnb.design.transitions import Transitions
from rlnb.envs.episodes import EpisodeSums
from rlnb.envs.observations import as_batch, as_rows, stack
from rlnb.envs.signals import KEY as SIGNALS
from rlnb.errors import DesignError, EnvError

TERMINAL: Final = "terminal_observation"
RAW_TERMINAL: Final = "rlnb.raw_terminal_observation"
"""Key of `info` that keeps an episode's last raw observation where the agent sees another."""


class DesignApplier:
    """Turns what `n_envs` environments give into what the agent sees and is paid.

    Args:
        design: reward and state specs; Python terms bound.
        space: the environments' observation space.
        names: names of its components, () for images.
        n_envs: number of environments, >= 1.

    Attributes:
        observation_space: what the agent sees.
        batch: the transitions of the last step, (n_envs,) rows; None before the first and for a design that
            pays the environment's own reward.

    Raises:
        DesignError: if the design does not fit the space.
    """

    def __init__(self, design: Design, space: gym.Space[Any], names: Sequence[str], n_envs: int) -> None:
        self.design = design
        self.observation_space: gym.Space[Any] = design.state.space(space, names)
        self.batch: Transitions | None = None
        self._space = space
        self._names = tuple(names)
        self._n = n_envs
        self._pays_env = design.reward.is_identity
        self._shows_raw = design.state.is_identity
        self._context = design.state.initial_state(n_envs, space, names)
        self._sums = EpisodeSums(n_envs)
        self._rows: Array | None = None  # raw observations before the next step
        self._previous: Array | None = None  # the last step's actions
        self._t = np.zeros(n_envs, dtype=np.int64)
        self._episode = np.arange(n_envs, dtype=np.int64)

    @property
    def learning(self) -> bool:
        """Whether running statistics take in what they see; False for evaluation."""
        return self._context.learning

    @learning.setter
    def learning(self, value: bool) -> None:
        self._context.learning = value

    def reset(self, raw_obs: Any) -> Any:
        """Begins an episode in every environment and returns what the agent sees.

        Args:
            raw_obs: (n_envs, ...) from the vector environment's reset.
        """
        self._rows = None if self._pays_env else as_rows(self._space, raw_obs)
        self._previous = None
        self._t = np.zeros(self._n, dtype=np.int64)
        self._episode = np.arange(self._n, dtype=np.int64)
        self._sums.reset()
        return self._show(raw_obs, starts=np.ones(self._n, dtype=bool))

    def observe(self, raw_obs: Any) -> Any:
        """Returns what the agent sees of a step that ends no episode, without paying it."""
        return self._show(raw_obs, starts=np.zeros(self._n, dtype=bool))

    def step(
        self,
        raw_obs: Any,
        actions: Array,
        env_rewards: Array,
        dones: Array,
        infos: Sequence[dict[str, Any]],
        *,
        progress: float = 0.0,
    ) -> tuple[Any, Array, Sequence[dict[str, Any]]]:
        """Applies the design to one step.

        Args:
            raw_obs: (n_envs, ...); where an environment is done, the first of its next episode.
            actions: (n_envs, ...) as they were handed to the environments.
            env_rewards: (n_envs,) of the environments.
            dones: bool (n_envs,).
            infos: one dict per environment. Where an environment is done, `terminal_observation` becomes
                what the agent sees and `rlnb.episode` is added: return, return_env, length, and per term its
                weighted sum (`terms`) and its plain one (`values`).
            progress: fraction of training that is done, 0 to 1.

        Returns:
            (obs, rewards float32 (n_envs,), infos).

        Raises:
            DesignError: if a Python term fails, or the reward is NaN or infinite, naming the term.
            EnvError: if `reset` has not been called.
        """
        rewards = np.asarray(env_rewards, dtype=np.float32)
        (ended,) = np.asarray(dones).nonzero()
        if self._pays_env:
            self._sums.add_environment(rewards)
        else:
            rewards = self._pay(raw_obs, actions, rewards, ended, infos, progress)
        self._t = self._t + 1
        if len(ended):
            self._finish(ended, infos)
        return self._show(raw_obs, starts=np.asarray(dones, dtype=bool)), rewards, infos

    def state_dict(self) -> dict[str, Any]:
        """Returns everything that later steps depend on, as arrays, numbers and dicts."""
        state: dict[str, Any] = {
            "t": self._t.copy(),
            "episode": self._episode.copy(),
            "sums": self._sums.state_dict(),
            "context": self._context.state_dict(),
            "reward": self.design.reward.state_dict(),
        }
        if self._rows is not None:
            state["rows"] = self._rows.copy()
        if self._previous is not None:
            state["previous"] = self._previous.copy()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from what `state_dict` returned.

        Raises:
            EnvError: if it is of another number of environments.
            DesignError: if it is of another design.
        """
        if len(state["t"]) != self._n:
            raise EnvError(
                f"the saved state is of {len(state['t'])} environments, and there are {self._n}; "
                f"resume with n_envs={len(state['t'])}"
            )
        self._t = np.array(state["t"], dtype=np.int64)
        self._episode = np.array(state["episode"], dtype=np.int64)
        self._rows = np.array(state["rows"]) if "rows" in state else None
        self._previous = np.array(state["previous"]) if "previous" in state else None
        self._sums.load_state_dict(state["sums"])
        self._context.load_state_dict(state["context"])
        self.design.reward.load_state_dict(state["reward"])

    def _pay(
        self,
        raw_obs: Any,
        actions: Array,
        env_rewards: Array,
        ended: Array,
        infos: Sequence[dict[str, Any]],
        progress: float,
    ) -> Array:
        if self._rows is None:
            raise EnvError("step() came before reset(); reset the environments first")
        rows = as_rows(self._space, raw_obs)
        reached, truncated, terminated = rows, np.zeros(self._n, dtype=bool), np.zeros(self._n, dtype=bool)
        if len(ended):
            reached = rows.copy()
            for index in ended:
                reached[index] = self._last_row(infos[index])
                truncated[index] = infos[index].get("TimeLimit.truncated", False)
            terminated[ended] = ~truncated[ended]
        actions = np.asarray(actions)
        self.batch = Transitions.from_arrays(
            self._rows,
            reached,
            actions,
            reward=env_rewards.astype(np.float64),
            terminated=terminated,
            truncated=truncated,
            t=self._t,
            names=self._names,
            prev_action=np.zeros_like(actions) if self._previous is None else self._previous,
            episode=self._episode,
            infos=infos,
            signals=[info.get(SIGNALS, {}) for info in infos] if SIGNALS in infos[0] else None,
        )
        result = self.design.reward.evaluate(self.batch, progress=progress)
        if not np.isfinite(result.total).all():
            raise _not_finite(result, self.batch)
        self._sums.add(env_rewards, result)
        self._rows = rows
        self._previous = actions.copy()
        self._previous[ended] = 0
        return result.total

    def _last_row(self, info: Mapping[str, Any]) -> Array:
        return np.asarray(as_rows(self._space, as_batch(info[TERMINAL]))[0])

    def _finish(self, ended: Array, infos: Sequence[dict[str, Any]]) -> None:
        """Writes down the episodes that have ended and shows their last observations to the agent."""
        for index in ended:
            infos[index]["rlnb.episode"] = self._sums.take(int(index), length=int(self._t[index]))
        self._t[ended] = 0
        self._episode[ended] += self._n
        if self._shows_raw:
            return
        rows = as_rows(self._space, stack([infos[index][TERMINAL] for index in ended]))
        seen = self.design.state.transform(rows, self._context, envs=ended, peek=True)
        for place, index in enumerate(ended):
            infos[index][RAW_TERMINAL] = infos[index][TERMINAL]
            infos[index][TERMINAL] = seen[place]

    def _show(self, raw_obs: Any, *, starts: Array) -> Any:
        if self._shows_raw:
            if isinstance(self._space, gym.spaces.Box):
                return as_rows(self._space, raw_obs)
            return raw_obs
        return self.design.state.transform(as_rows(self._space, raw_obs), self._context, starts=starts)


def _not_finite(result: RewardResult, batch: Transitions) -> DesignError:
    """One reward of NaN makes every weight NaN at the next update, so training stops before it."""
    row = int(np.flatnonzero(~np.isfinite(result.total))[0])
    paying = {f"term {name!r}": values for name, values in result.terms.items() if result.weight(name) != 0.0}
    # a group may fail where each of its terms is fine, by its expression
    paying |= {
        f"group {name!r}": values for name, values in result.groups.items() if result.group_weights[name]
    }
    guilty = [name for name, values in paying.items() if not np.isfinite(values[row])]
    blame = f"the {guilty[0]} gave {paying[guilty[0]][row]}" if guilty else "no term alone did"
    return DesignError(
        f"the reward is {result.total[row]} at step {batch.t[row]} of episode {batch.episode[row]}: {blame}; "
        "guard it with where(…) or clip"
    )
