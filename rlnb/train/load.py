"""A trained model from a run folder, as SB3 knows it; nothing of the run is executed."""

from __future__ import annotations

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from rlnb.errors import ExperimentError
from rlnb.run.checkpoints import find_checkpoint
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.layout import RunLayout
from rlnb.run.record import read_record
from rlnb.train.model import build_bare_model
from rlnb.train.snapshot import read_snapshot, restore_networks
from rlnb.train.space_data import space_from_dict
from rlnb.train.stateful import global_rngs, restore_global_rngs
from rlnb.train.vecenv import restore_normalize


def load_model(
    layout: RunLayout, which: str | int = "best", *, spec: ExperimentSpec | None = None
) -> BaseAlgorithm:
    """Returns a plain SB3 model with a checkpoint's weights, optimizers and step count.

    It predicts at once; for further training give it an environment with `set_env`. Its replay buffer is empty.
    The global generators are left as they were.

    Args:
        layout: the run folder.
        which: "best", "latest", "final", or a checkpoint's step.
        spec: the experiment with live objects, where its policy is made of classes from the notebook.

    Raises:
        CheckpointError: there is no such checkpoint, or it is damaged.
        ExperimentError: the policy is made of classes that exist only in the notebook.
    """
    checkpoint = find_checkpoint(layout, which)
    saved = read_snapshot(checkpoint, envs=False)
    spec = spec or _recorded(layout)
    spaces = saved.state["spaces"]
    observation, action = space_from_dict(spaces["observation"]), space_from_dict(spaces["action"])
    rngs = global_rngs()
    try:
        model = build_bare_model(spec, observation, action)
    finally:
        restore_global_rngs(rngs)
    restore_networks(model, saved.tensors)
    for name, value in saved.state["numbers"].items():
        setattr(model, name, value)
    model.policy.set_training_mode(False)
    return model


def load_normalize(layout: RunLayout, venv: VecEnv, which: str | int = "best") -> VecNormalize | None:
    """Returns `venv` wrapped in the run's VecNormalize, frozen, or None when the run had none.

    Args:
        layout: the run folder.
        venv: a vector environment that shows what the run's design shows.
        which: as in `load_model`; take the same.
    """
    spec = _recorded(layout)
    saved = read_snapshot(find_checkpoint(layout, which), envs=False)
    if spec.normalize is None:
        return None
    wrapped = VecNormalize(venv, **{**spec.normalize, "training": False, "norm_reward": False})
    restore_normalize(wrapped, saved.state["vector"]["normalize"], running=False)
    return wrapped


def load_weights(layout: RunLayout, which: str | int = "best") -> dict[str, torch.Tensor]:
    """Returns a checkpoint's policy as a state_dict."""
    weights: dict[str, torch.Tensor] = read_snapshot(find_checkpoint(layout, which), envs=False).tensors[
        "policy"
    ]
    return weights


def _recorded(layout: RunLayout) -> ExperimentSpec:
    record = read_record(layout)
    if record.experiment is None:
        raise ExperimentError(f"{layout.id} has not resolved its experiment yet; wait until it trains.")
    return ExperimentSpec.from_dict(record.experiment)
