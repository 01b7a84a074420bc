"""`rlnb.record`: rollouts as the batch that designs are previewed on, recorded once and read ever after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlnb.design.design import Design
from rlnb.design.transitions import Transitions
from rlnb.envs.rollouts import MAX_STEPS, Recording
from rlnb.envs.signals import Signal
from rlnb.errors import EnvError, UsageError
from rlnb.run.trajectories import read_about, read_transitions, write_transitions


def record(
    env: object,
    policy: object = "random",
    *,
    episodes: int = 10,
    seed: int = 0,
    signals: Mapping[str, Signal] | None = None,
    names: list[str] | tuple[str, ...] | None = None,
    to: str | Path | None = None,
    label: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    design: Design | None = None,
    deterministic: bool = True,
    max_steps: int = MAX_STEPS,
) -> Transitions:
    """Records whole episodes, or reads them when they have been recorded already.

    Args:
        env: gymnasium id, class or function.
        policy: "random", "idle" (does nothing), "sticky" (random actions that are held), a function of one
            observation, or an SB3 model.
        episodes: how many, >= 1. Episode i starts from `reset(seed=seed + i)`, so that policies can be
            compared from equal starts.
        seed: of the first episode and of random actions.
        signals: functions of the environment, by name; each gives one number per step.
        names: names of the observation's components; known ones are used where the environment has them.
        to: Parquet file. If it is there, it is read and nothing is recorded.
        label: name of the policy in the recording.
        env_kwargs: keyword arguments of the environment.
        design: what the policy sees; the recording itself holds raw observations.
        deterministic: whether a model acts by its mode instead of sampling.
        max_steps: an episode is cut off after so many steps.

    Returns:
        The transitions, episode after episode.

    Raises:
        EnvError: if the environment cannot be made, or `to` holds a recording made otherwise.
        DesignError: if the observations have no components, or `names` do not fit.
        UsageError: if the policy does not act.
    """
    if to is not None and (not isinstance(to, str | Path) or Path(to).is_dir()):
        raise UsageError(f"to={to!r:.80} names no file; give the name of one, such as 'demo.parquet'")
    recording = Recording(
        env, policy, episodes=episodes, seed=seed, signals=signals, names=names, env_kwargs=env_kwargs,
        label=label, design=design, deterministic=deterministic, max_steps=max_steps,
    )  # fmt: skip
    if to is not None and Path(to).exists():
        return _read(Path(to), recording.about)
    batch = recording.run().batch
    assert batch is not None  # nobody can have stopped it
    if to is not None:
        try:
            write_transitions(to, batch, about=recording.about)
        except OSError as error:
            raise UsageError(f"to={str(to)!r} cannot be written ({error}); give another place") from error
    return batch


def _read(path: Path, about: Mapping[str, Any]) -> Transitions:
    """Reads a recording, which has to be the one that would be made."""
    found = read_about(path)
    for key, wanted in about.items():
        if found and found.get(key) != wanted:
            raise EnvError(
                f"{path} holds a recording with {key}={found.get(key)!r}, not {key}={wanted!r}; "
                "delete the file to record again, or give another name"
            )
    return read_transitions(path)
