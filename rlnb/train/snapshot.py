"""Everything a run's future depends on, taken at a safe point and put back at the first one of a later attempt.

A snapshot is taken in `on_rollout_start` (the last `train()` is complete, on-policy buffers are empty) or
after training has ended. It is put back inside the first `on_rollout_start` of a fresh `learn()`, because
whatever runs before that draws random numbers and resets environments. SB3's own `save()` and `load()` lack
the environments, the generators and the running values, so that no algorithm ends with the same weights.
"""

from __future__ import annotations

import copy
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from rlnb.errors import CheckpointError
from rlnb.run.checkpoints import Checkpoint
from rlnb.train.callback_state import capture_callbacks, restore_callbacks
from rlnb.train.codec import decode_tensors, decode_tree, encode_tensors, encode_tree
from rlnb.train.layers import restore_space_rng, space_rng
from rlnb.train.model import loose_tensors, optimizers
from rlnb.train.moving import (
    capture_logger,
    capture_noise,
    capture_sde,
    cloned,
    live_lstm,
    plain_lstm,
    restore_logger,
    restore_noise,
    restore_sde,
)
from rlnb.train.replay import ReplayLog, ReplayPart, restore_replay
from rlnb.train.space_data import space_to_dict
from rlnb.train.stateful import global_rngs, restore_global_rngs
from rlnb.train.vecenv import TrainingEnv

STATE, TENSORS, ENVS = "state.npz", "tensors.pt", "envs.npz.z"
"""Files of a checkpoint."""

_NUMBERS = (
    "num_timesteps", "_n_updates", "_episode_num", "_current_progress_remaining", "exploration_rate", "_n_calls",
)  # fmt: skip
_STATE_KEYS = {
    "numbers", "values", "episodes", "successes", "logger", "noise", "vector", "callbacks", "action_space", "at_end",
    "spaces", "extra", "rngs",
}  # fmt: skip
_TENSOR_KEYS = {"policy", "optimizers", "loose", "sde"}
_VALUES = ("_last_obs", "_last_episode_starts", "_last_original_obs")


@dataclass
class Snapshot:
    """Copies only: training may go on while a snapshot is written.

    Attributes:
        step: environment steps done.
        state: tree of everything but tensors, environments and replay rows.
        tensors: nested dicts of tensors.
        envs: one tree per environment.
        replay: the replay buffer's new rows, or None without a buffer.
        at_end: whether training has ended; SB3 has then not begun the next rollout.
    """

    step: int
    state: dict[str, Any]
    tensors: dict[str, Any]
    envs: list[Any]
    replay: ReplayPart | None
    at_end: bool = False


@dataclass
class Restorable:
    """A checkpoint read back.

    Attributes:
        state, tensors, envs: as in `Snapshot`; envs is None where environments are to begin anew.
        read_chunk: returns a replay chunk's bytes by name; raises CheckpointError for one that is not listed.
    """

    state: dict[str, Any]
    tensors: dict[str, Any]
    envs: list[Any] | None
    read_chunk: Callable[[str], bytes]


def capture(
    model: BaseAlgorithm,
    env: TrainingEnv,
    *,
    callbacks: Sequence[BaseCallback] = (),
    replay: ReplayLog | None = None,
    extra: Mapping[str, Any] | None = None,
    at_end: bool = False,
) -> Snapshot:
    """Takes a snapshot; only reads.

    Args:
        model: at a safe point.
        env: what it steps.
        callbacks: the user's.
        replay: what has been written of the replay buffer so far.
        extra: the caller's own values, kept under "extra".
        at_end: whether training has ended.
    """
    vector, envs = env.capture()
    state: dict[str, Any] = {
        "numbers": {name: getattr(model, name) for name in _NUMBERS if hasattr(model, name)},
        "values": {name: copy.deepcopy(getattr(model, name)) for name in _VALUES},
        "episodes": [dict(one) for one in model.ep_info_buffer or ()],
        "successes": list(model.ep_success_buffer or ()),
        "logger": capture_logger(model),
        "noise": capture_noise(model.action_noise),
        "vector": vector,
        "callbacks": capture_callbacks(callbacks),
        "action_space": space_rng(model.action_space),
        "at_end": at_end,
        "spaces": {
            "observation": space_to_dict(model.observation_space),
            "action": space_to_dict(model.action_space),
        },
        "extra": dict(extra or {}),
    }
    tensors: dict[str, Any] = {
        "policy": cloned(model.policy.state_dict()),
        "optimizers": {name: cloned(one.state_dict()) for name, one in optimizers(model)},
        "loose": {name: one.detach().clone() for name, one in loose_tensors(model)},
        "sde": capture_sde(model),
    }
    if getattr(model, "_last_lstm_states", None) is not None:
        tensors["lstm"] = cloned(plain_lstm(model._last_lstm_states))  # type: ignore[attr-defined]
    buffer = getattr(model, "replay_buffer", None)
    rows = None
    if replay is not None and buffer is not None:
        rows = replay.capture(buffer, steps=model.num_timesteps // model.n_envs)
    state["rngs"] = global_rngs()
    return Snapshot(model.num_timesteps, state, tensors, envs, rows, at_end)


def restore(
    model: BaseAlgorithm,
    env: TrainingEnv,
    saved: Restorable,
    *,
    callbacks: Sequence[BaseCallback] = (),
    replay: ReplayLog | None = None,
) -> Mapping[str, Any]:
    """Puts a snapshot back, inside the first `on_rollout_start`; hyperparameters stay the model's own.

    Returns:
        The caller's own values that were given to `capture`.

    Raises:
        CheckpointError: it does not fit the experiment.
    """
    state = saved.state
    restore_networks(model, saved.tensors)
    for name, value in state["numbers"].items():
        setattr(model, name, value)
    model._num_timesteps_at_start = model.num_timesteps
    model.ep_info_buffer = deque((dict(one) for one in state["episodes"]), maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(state["successes"], maxlen=model._stats_window_size)
    restore_logger(model, state["logger"])
    env.restore(state["vector"], saved.envs)
    if saved.envs is not None:
        for name, value in state["values"].items():
            setattr(model, name, value)
        restore_noise(model.action_noise, state["noise"])
        restore_sde(model, saved.tensors["sde"])
        if "lstm" in saved.tensors:
            model._last_lstm_states = live_lstm(model._last_lstm_states, saved.tensors["lstm"])  # type: ignore[attr-defined]
    buffer = getattr(model, "replay_buffer", None)
    if buffer is not None and "replay" in state:
        same = restore_replay(buffer, state["replay"], saved.read_chunk)
        if same and replay is not None:
            replay.resume(state["replay"])
    restore_callbacks(callbacks, state["callbacks"])
    restore_space_rng(model.action_space, state["action_space"])
    restore_global_rngs(state["rngs"])
    if state["at_end"] and model.use_sde:
        # The end of training has no next rollout; SB3 draws its exploration noise before on_rollout_start.
        explorer: Any = getattr(model, "actor", model.policy)
        explorer.reset_noise(model.n_envs)
    extra: Mapping[str, Any] = state["extra"]
    return extra


def restore_networks(model: BaseAlgorithm, tensors: Mapping[str, Any]) -> None:
    """Puts back the policy, its optimizers and loose tensors.

    Raises:
        CheckpointError: the networks are of another shape.
    """
    try:
        model.policy.load_state_dict(tensors["policy"])
    except RuntimeError as error:
        what = str(error).splitlines()[-1].strip()
        raise CheckpointError(
            f"The checkpoint's networks do not fit this experiment ({what}); keep policy, policy_kwargs and the spaces."
        ) from None
    for name, optimizer in optimizers(model):
        if name in tensors["optimizers"]:
            load_optimizer(optimizer, tensors["optimizers"][name])
    for name, tensor in loose_tensors(model):
        if name in tensors["loose"]:
            tensor.data.copy_(tensors["loose"][name])


def load_optimizer(optimizer: Any, state: Mapping[str, Any]) -> None:
    """Loads an optimizer's moments but keeps its own settings: a fork may have changed them."""
    own = [{k: v for k, v in group.items() if k not in ("params", "lr")} for group in optimizer.param_groups]
    optimizer.load_state_dict(copy.deepcopy(dict(state)))
    for group, settings in zip(optimizer.param_groups, own, strict=True):
        group.update(settings)


def to_payload(snapshot: Snapshot, *, replay: Mapping[str, Any] | None) -> dict[str, bytes]:
    """Returns a snapshot as files.

    Args:
        snapshot: the snapshot.
        replay: what `ReplayLog.commit` returned for its rows.
    """
    state = snapshot.state if replay is None else {**snapshot.state, "replay": dict(replay)}
    return {
        STATE: encode_tree(state),
        TENSORS: encode_tensors(snapshot.tensors),
        # A MuJoCo state is 0.7 MB, most of it zeros.
        ENVS: zlib.compress(encode_tree(snapshot.envs), 1),
    }


def read_snapshot(checkpoint: Checkpoint, *, envs: bool = True) -> Restorable:
    """Reads a checkpoint's files; nothing in them is executed here.

    Args:
        checkpoint: one whose files are whole.
        envs: read the environments' states, too.

    Raises:
        CheckpointError: they are not what a checkpoint consists of.
    """

    def read(name: str) -> bytes:
        return checkpoint.path(name).read_bytes()

    state, tensors = decode_tree(read(STATE)), decode_tensors(read(TENSORS))
    for name, tree, keys in ((STATE, state, _STATE_KEYS), (TENSORS, tensors, _TENSOR_KEYS)):
        missing = sorted(keys - set(tree)) if isinstance(tree, dict) else sorted(keys)
        if missing:
            raise CheckpointError(f"A checkpoint's {name} lacks {', '.join(missing)}; choose another one.")
    return Restorable(state, tensors, decode_tree(_inflated(read(ENVS))) if envs else None, read)


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise CheckpointError(
            f"A checkpoint's environments cannot be read ({error}); choose another one."
        ) from None
