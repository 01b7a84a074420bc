"""The vector environment that training steps: environments, design, normalisation, and their state."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecNormalize

from rlnb.design.design import Design
from rlnb.envs.apply import DesignApplier
from rlnb.envs.signals import Signal, with_signals
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.fields import Workers
from rlnb.train.designvec import DesignVecEnv
from rlnb.train.envstate import StateKind
from rlnb.train.stateful import StatefulFactory

MakeEnv = Callable[[], gym.Env[Any, Any]]

_WORKER_SEED = 1_000_003
"""Distance between a run's seed and its workers' global seeds, so that no worker repeats the trainer's draws."""


class MonitoredFactory:
    """Makes one environment with its signals and SB3's Monitor; can travel to a worker."""

    def __init__(self, make_env: MakeEnv, signals: Mapping[str, Signal] | None) -> None:
        self.make_env, self.signals = make_env, dict(signals or {})

    def __call__(self) -> gym.Env[Any, Any]:
        return Monitor(with_signals(self.make_env(), self.signals))


@dataclass
class TrainingEnv:
    """The layers of the vector environment.

    Attributes:
        base: SB3's DummyVecEnv or SubprocVecEnv.
        design: applies the design; None for one that changes nothing, which then costs nothing either.
        normalize: VecNormalize, or None.
    """

    base: VecEnv
    design: DesignVecEnv | None
    normalize: VecNormalize | None

    @property
    def outer(self) -> VecEnv:
        """What the model steps."""
        return self.normalize or self.design or self.base

    def capture(self) -> tuple[dict[str, Any], list[Any]]:
        """Returns the vector level's state, and one state per environment."""
        state: dict[str, Any] = {"design": None if self.design is None else self.design.state_dict()}
        if isinstance(self.base, DummyVecEnv):
            state["buffers"] = {
                "obs": [[key, value.copy()] for key, value in self.base.buf_obs.items()],
                "rewards": self.base.buf_rews.copy(),
                "dones": self.base.buf_dones.copy(),
            }
        state["seeds"] = list(self.base._seeds)
        if self.normalize is not None:
            state["normalize"] = capture_normalize(self.normalize)
        return state, list(self.base.env_method("rlnb_capture"))

    def restore(self, state: Mapping[str, Any], envs: list[Any] | None) -> None:
        """Puts back what `capture` returned; without `envs` the environments keep the episodes they began."""
        if envs is not None:
            for index, one in enumerate(envs):
                self.base.env_method("rlnb_restore", one, indices=[index])
            if self.design is not None and state["design"] is not None:
                self.design.load_state_dict(state["design"])
            self.base._seeds = list(state["seeds"])
            if isinstance(self.base, DummyVecEnv) and "buffers" in state:
                for key, value in state["buffers"]["obs"]:
                    self.base.buf_obs[key][...] = value
                self.base.buf_rews[...] = state["buffers"]["rewards"]
                self.base.buf_dones[...] = state["buffers"]["dones"]
        if self.normalize is not None and "normalize" in state:
            restore_normalize(self.normalize, state["normalize"], running=envs is not None)

    def initial_crcs(self) -> dict[str, list[int]]:
        """CRC32 of each environment's state; to be asked right after the first reset."""
        return {"states": [int(one) for one in self.base.env_method("rlnb_crc")]}

    def close(self) -> None:
        """Ends the environments and their workers."""
        self.outer.close()


def make_training_env(
    spec: ExperimentSpec,
    *,
    make_env: MakeEnv,
    design: Design,
    signals: Mapping[str, Signal] | None,
    kind: StateKind,
) -> TrainingEnv:
    """Builds the vector environment of an experiment."""
    one = MonitoredFactory(make_env, signals)
    factories: list[Callable[[], gym.Env[Any, Any]]] = [
        StatefulFactory(one, kind, seed=spec.seed + _WORKER_SEED * (index + 1))
        for index in range(spec.n_envs)
    ]
    base: VecEnv
    if spec.workers is Workers.SUBPROCESS:
        if spec.start_method == "forkserver":
            # Each worker would import torch and SB3 by itself (seconds each); the fork server does it once.
            multiprocessing.get_context("forkserver").set_forkserver_preload(["__main__", __name__])
        base = SubprocVecEnv(factories, start_method=spec.start_method)
    else:
        base = DummyVecEnv(factories)
    designed = None
    if not (design.reward.is_identity and design.state.is_identity):
        applier = DesignApplier(design, base.observation_space, spec.names or (), spec.n_envs)
        designed = DesignVecEnv(base, applier, total=spec.total_timesteps)
    normalize = None if spec.normalize is None else VecNormalize(designed or base, **spec.normalize)
    return TrainingEnv(base, designed, normalize)


def capture_normalize(env: VecNormalize) -> dict[str, Any]:
    """Returns VecNormalize's statistics and running values, which its own pickle leaves out in part."""
    state: dict[str, Any] = {
        "ret_rms": _moments(env.ret_rms),
        "returns": env.returns.copy(),
        "old_reward": np.array(env.old_reward),
        "training": env.training,
    }
    if env.norm_obs:
        rms: Any = env.obs_rms
        state["obs_rms"] = (
            {k: _moments(v) for k, v in rms.items()} if isinstance(rms, dict) else _moments(rms)
        )
    old: Any = getattr(env, "old_obs", None)
    if old is not None:
        state["old_obs"] = (
            {key: np.array(value) for key, value in old.items()} if isinstance(old, dict) else np.array(old)
        )
    return state


def restore_normalize(env: VecNormalize, state: Mapping[str, Any], *, running: bool = True) -> None:
    """Puts back what `capture_normalize` returned.

    Args:
        env: the wrapper.
        state: the state.
        running: also what belongs to the running episodes; False where they begin anew.
    """
    _set_moments(env.ret_rms, state["ret_rms"])
    if "obs_rms" in state and env.norm_obs:
        rms: Any = env.obs_rms
        if isinstance(rms, dict):
            for key, one in rms.items():
                _set_moments(one, state["obs_rms"][key])
        else:
            _set_moments(rms, state["obs_rms"])
    if running:
        env.returns = np.array(state["returns"])
        env.old_reward = np.array(state["old_reward"])
        env.training = bool(state["training"])
        if "old_obs" in state:
            env.old_obs = state["old_obs"]


def _moments(rms: RunningMeanStd) -> dict[str, Any]:
    return {"mean": np.array(rms.mean), "var": np.array(rms.var), "count": rms.count}


def _set_moments(rms: RunningMeanStd, state: Mapping[str, Any]) -> None:
    # A statistic over scalars is a NumPy scalar, not an array, and the two round differently in places.
    rms.mean = np.array(state["mean"]) if state["mean"].ndim else state["mean"][()]
    rms.var = np.array(state["var"]) if state["var"].ndim else state["var"][()]
    rms.count = state["count"]
