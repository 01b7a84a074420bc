"""The design inside SB3: a thin VecEnvWrapper around `rlnb.envs.apply.DesignApplier`."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from rlnb.envs.apply import DesignApplier


class DesignVecEnv(VecEnvWrapper):
    """Shows the agent what the design shows, and pays it what the design pays.

    Where the design pays, `info["episode"]["r"]` (SB3's ep_rew_mean) becomes the designed return; the
    environment's own stands in `info["rlnb.episode"]["return_env"]`.

    Args:
        venv: the vector environment with the environments' own observations and rewards.
        applier: the design, bound to the space and the number of environments.
        total: environment steps of the whole training, for weights that are schedules.
    """

    def __init__(self, venv: VecEnv, applier: DesignApplier, *, total: int) -> None:
        super().__init__(venv, observation_space=applier.observation_space)
        self.applier = applier
        self.total = total
        self.steps = 0
        self._pays = not applier.design.reward.is_identity
        self._actions: Any = None

    def reset(self) -> Any:
        return self.applier.reset(self.venv.reset())

    def step_async(self, actions: Any) -> None:
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        infos: Any
        raw, rewards, dones, infos = self.venv.step_wait()
        progress = min(1.0, self.steps / self.total)
        self.steps += self.num_envs
        obs, rewards, infos = self.applier.step(raw, self._actions, rewards, dones, infos, progress=progress)
        if self._pays:
            for index in dones.nonzero()[0]:
                episode = infos[index].get("episode")
                if episode is not None:
                    episode["r"] = round(infos[index]["rlnb.episode"]["return"], 6)
        return obs, rewards, dones, infos

    def state_dict(self) -> dict[str, Any]:
        """The design's running state, for a checkpoint."""
        return {"steps": self.steps, "applier": self.applier.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from what `state_dict` returned."""
        self.steps = int(state["steps"])
        self.applier.load_state_dict(state["applier"])
