"""Starting from another run: policy, critic, optimizer and replay buffer, by choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlnb import settings
from rlnb.errors import CheckpointError
from rlnb.run.checkpoints import checkpoints, find_checkpoint
from rlnb.run.layout import RunLayout
from rlnb.run.plans import InitFrom, Part
from rlnb.train.model import loose_tensors, optimizers
from rlnb.train.replay import restore_replay
from rlnb.train.sb3 import SB3Trainer
from rlnb.train.snapshot import load_optimizer, read_snapshot

_CRITIC = ("value_net", "critic", "vf_features_extractor", "q_net", "quantile_net")
"""Parts of parameter names that belong to what estimates values; a DQN's policy is its q_net alone."""


def start_from(trainer: SB3Trainer, source: InitFrom, *, staged: RunLayout | None = None) -> str:
    """Takes over parts of another run's checkpoint; draws no random number.

    Args:
        trainer: a trainer that is set up.
        source: what the experiment says.
        staged: where `promote()` has put a copy of that checkpoint (`RunLayout.init`); a name may mean
            another run by now, so the copy counts when it is there.

    Returns:
        One sentence that says what was done.

    Raises:
        RunNotFound: there is no such run on this machine.
        CheckpointError: it has no such checkpoint, or its parts do not fit.
    """
    if staged is not None and checkpoints(staged):
        checkpoint = find_checkpoint(staged, "latest")
    else:
        checkpoint = find_checkpoint(find_run(source.run), source.step)
    saved = read_snapshot(checkpoint, envs=False)
    model = trainer.model
    _take_networks(model, saved.tensors["policy"], source)
    if Part.OPTIMIZER in source.parts:
        for name, optimizer in optimizers(model):
            if name in saved.tensors["optimizers"]:
                load_optimizer(optimizer, saved.tensors["optimizers"][name])
        for name, tensor in loose_tensors(model):
            if name in saved.tensors["loose"]:
                tensor.data.copy_(saved.tensors["loose"][name])
    if Part.REPLAY in source.parts:
        buffer = getattr(model, "replay_buffer", None)
        if buffer is None or "replay" not in saved.state:
            raise CheckpointError(
                f"init_from={source.run!r} is to bring its replay buffer, but one of the two runs has none; "
                "leave 'replay' out of init_from.parts."
            )
        restore_replay(buffer, saved.state["replay"], saved.read_chunk)
    taken = ", ".join(part.value for part in source.parts)
    return f"Training starts with {taken} of {source.run} at step {checkpoint.step:,}."


def find_run(run: str) -> RunLayout:
    """Returns the folder of a run: a path, a run of this machine by id or name, or one that was pulled.

    Raises:
        RunNotFound: it is none of these.
    """
    for folder in (Path(run), settings.runs_dir() / run, settings.cache_dir() / run):
        if folder.is_dir():
            return RunLayout(folder)
    from rlnb.run.index import Index

    return RunLayout(Index().get(run).folder)


def _take_networks(model: Any, saved: dict[str, Any], source: InitFrom) -> None:
    own = model.policy.state_dict()
    chosen = {}
    only_critic = all(_is_critic(name) for name in own)
    for name, tensor in saved.items():
        wanted = Part.CRITIC if _is_critic(name) and not only_critic else Part.POLICY
        if wanted not in source.parts and not (only_critic and Part.CRITIC in source.parts):
            continue
        if name not in own or own[name].shape != tensor.shape:
            there = tuple(own[name].shape) if name in own else "nothing"
            raise CheckpointError(
                f"init_from={source.run!r} has {name} of shape {tuple(tensor.shape)}, this experiment has {there}; "
                "use the same policy, policy_kwargs and spaces."
            )
        chosen[name] = tensor
    model.policy.load_state_dict({**own, **chosen})


def _is_critic(name: str) -> bool:
    return any(word in name for word in _CRITIC)
