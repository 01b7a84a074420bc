"""Recording rollouts, as the batch that designs are previewed on.

What is recorded is what SB3's vector environments would show: observations in the space's dtype, the
environment's reward rounded to float32, `truncated` only where the step is not also terminal, and the last
observation of an episode as `next_obs` of its last row. So a design gives the same bytes on a recording as
in training.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.design.transitions import Transitions
from rlnb.envs.apply import DesignApplier
from rlnb.envs.make import EnvFactory, resolve_env
from rlnb.envs.observations import as_batch, as_rows
from rlnb.envs.policies import Act, as_action, resolve_policy
from rlnb.envs.protocol import check_reset, check_step
from rlnb.envs.signals import KEY, Signal, check_signals, with_signals
from rlnb.errors import EnvError, UsageError
from rlnb.run.trajectories import read_about, read_transitions, write_transitions

MAX_STEPS = 100_000
"""Steps after which an episode without an end is cut off (recorded as truncated)."""


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
        policy: "random", a function of one observation, or an SB3 model.
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
    _check_number("episodes", episodes, 1)
    _check_number("seed", seed, 0)
    _check_number("max_steps", max_steps, 1)
    episodes, seed = int(episodes), int(seed)  # NumPy's would not be JSON
    if design is not None and not isinstance(design, Design):
        raise UsageError(f"design={design!r:.80} is no Design; read a file with rlnb.Design.from_yaml(path)")
    if label is not None and not isinstance(label, str):
        raise UsageError(f"label={label!r:.80} is no text; give a name for the policy, such as 'expert'")
    if to is not None and (not isinstance(to, str | Path) or Path(to).is_dir()):
        raise UsageError(f"to={to!r:.80} names no file; give the name of one, such as 'demo.parquet'")
    if signals is not None:
        check_signals(signals)
    factory = resolve_env(env, env_kwargs)
    spaces = factory.spaces()
    act, name = resolve_policy(policy, spaces.action, seed=seed, deterministic=deterministic, label=label)
    about = {
        "env": factory.spec, "policy": name, "episodes": episodes, "seed": seed, "signals": sorted(signals or {}),
    }  # fmt: skip
    if to is not None and Path(to).exists():
        return _read(Path(to), about)
    components = component_names(spaces.observation, spaces.id, names)
    recorder = _Recorder(factory, components, signals, design, max_steps)
    try:
        batch = Transitions.concat([recorder.episode(act, name, seed + index) for index in range(episodes)])
    finally:
        recorder.close()
    if to is not None:
        try:
            write_transitions(to, batch, about=about)
        except OSError as error:
            raise UsageError(f"to={str(to)!r} cannot be written ({error}); give another place") from error
    return batch


def _check_number(name: str, value: object, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise UsageError(f"{name}={value!r:.80} does not fit; give a whole number >= {low}")


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


class _Recorder:
    """One environment and the rows of the episode that runs in it."""

    def __init__(
        self,
        factory: EnvFactory,
        names: tuple[str, ...],
        signals: Mapping[str, Signal] | None,
        design: Design | None,
        max_steps: int,
    ) -> None:
        self._label = factory.label
        self._names = names
        self._has_signals = bool(signals)
        self._max_steps = max_steps
        self._env = with_signals(factory(), signals)
        self._space = self._env.observation_space
        self._seen = None if design is None else DesignApplier(design, self._space, names, 1)

    def close(self) -> None:
        self._env.close()

    def episode(self, act: Act, label: str, seed: int) -> Transitions:
        """Plays one episode and returns its rows."""
        obs, _ = check_reset(self._env.reset(seed=seed), self._label)
        raw = self._raw(obs)
        seen = obs if self._seen is None else self._seen.reset(as_batch(obs))[0]
        space = self._env.action_space
        rows: list[tuple[Any, ...]] = []
        while not rows or not (rows[-1][4] or rows[-1][5]):
            action = as_action(act(seen), space, label)
            result = self._env.step(action)
            check_step(result, self._label)
            obs, reward, terminated, truncated, info = result
            ends = bool(terminated), (bool(truncated) or len(rows) + 1 >= self._max_steps) and not terminated
            after = self._raw(obs)
            rows.append((raw, after, action, np.float32(reward), *ends, dict(info)))
            if not any(ends):
                seen = obs if self._seen is None else self._seen.observe(as_batch(obs))[0]
            raw = after
        return self._batch(rows, label)

    def _raw(self, obs: Any) -> Any:
        return as_rows(self._space, as_batch(obs))[0]

    def _batch(self, rows: list[tuple[Any, ...]], label: str) -> Transitions:
        obs, after, action, reward, terminated, truncated, infos = zip(*rows, strict=True)
        n = len(rows)
        return Transitions.from_arrays(
            np.stack(obs), np.stack(after), np.stack(action), reward=np.asarray(reward, dtype=np.float64),
            terminated=np.asarray(terminated), truncated=np.asarray(truncated), t=np.arange(n, dtype=np.int64),
            names=self._names, infos=list(infos), signals=[info[KEY] for info in infos] if self._has_signals else None,
            labels={0: label},
        )  # fmt: skip
