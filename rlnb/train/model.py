"""SB3's model from an experiment, and the names of its parts."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import VecEnv

from rlnb.run.experiment import ExperimentSpec


def algorithm_class(spec: ExperimentSpec) -> Any:
    """Returns the algorithm's class.

    Raises:
        MissingExtra: it is one of sb3-contrib, which is not installed.
    """
    spec.algorithm.require()
    return getattr(importlib.import_module(spec.algorithm.module), spec.algorithm.name)


def build_model(spec: ExperimentSpec, env: VecEnv) -> BaseAlgorithm:
    """Builds the model; seeds Python's, NumPy's and torch's generators, the action space and the environments."""
    arguments = spec.live_hyperparameters(actions=action_count(env.action_space))
    model: BaseAlgorithm = algorithm_class(spec)(
        spec.live_policy(),
        env,
        seed=spec.seed,
        device=spec.device,
        verbose=0,
        tensorboard_log=None,
        **arguments,
    )
    return model


def build_bare_model(
    spec: ExperimentSpec, observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> BaseAlgorithm:
    """Builds the model without an environment, as SB3's own `load` does, to predict with or to set_env on."""
    arguments = spec.live_hyperparameters(actions=action_count(action_space))
    model: BaseAlgorithm = algorithm_class(spec)(
        spec.live_policy(), None, device=spec.device, verbose=0, _init_setup_model=False, **arguments
    )
    model.observation_space, model.action_space, model.n_envs = observation_space, action_space, spec.n_envs
    if getattr(model, "target_entropy", None) == "auto":
        # SB3 asks the environment for it, which is not there.
        model.target_entropy = -float(action_count(action_space))  # type: ignore[attr-defined]
    model._setup_model()
    model.seed = spec.seed
    return model


def action_count(space: gym.Space[Any]) -> int:
    """Number of action components of a Box, 0 of other spaces."""
    return int(space.shape[0]) if isinstance(space, gym.spaces.Box) and space.shape else 0


def set_quiet_logger(model: BaseAlgorithm, writer: KVWriter) -> None:
    """Gives the model a logger that writes nothing but hands what it is told to `writer`."""
    model.set_logger(Logger(folder=None, output_formats=[writer]))


def part(model: Any, dotted: str) -> Any:
    """Returns `model.a.b` for "a.b"."""
    for name in dotted.split("."):
        model = getattr(model, name)
    return model


def optimizers(model: BaseAlgorithm) -> Iterator[tuple[str, Any]]:
    """Yields (dotted name, optimizer) of everything that SB3 saves as state besides the policy."""
    for name in model._get_torch_save_params()[0]:
        if name != "policy" and part(model, name) is not None:
            yield name, part(model, name)


def loose_tensors(model: BaseAlgorithm) -> Iterator[tuple[str, Any]]:
    """Yields learned tensors outside the policy, such as SAC's log_ent_coef; constants are left out."""
    for name in model._get_torch_save_params()[1]:
        tensor = part(model, name)
        if tensor is not None and tensor.requires_grad:
            yield name, tensor
