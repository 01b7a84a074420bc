"""Playing whole episodes: what `rlnb.record` and a lab's "record more" have in common.

What is recorded is what SB3's vector environments would show: observations in the space's dtype, the
environment's reward rounded to float32, `truncated` only where the step is not also terminal, and the last
observation of an episode as `next_obs` of its last row. So a design gives the same bytes on a recording as
in training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import gymnasium as gym
import numpy as np

from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.design.transitions import Transitions
from rlnb.envs.apply import DesignApplier
from rlnb.envs.frames import Camera, FrameBudget, make_drawn
from rlnb.envs.make import resolve_env
from rlnb.envs.observations import as_batch, as_rows
from rlnb.envs.policies import as_action, resolve_policy
from rlnb.envs.progress import Progress, Watch
from rlnb.envs.protocol import check_reset, check_step
from rlnb.envs.signals import KEY, Signal, check_signals, with_signals
from rlnb.errors import UsageError
from rlnb.run.frame_files import Frames

MAX_STEPS: Final = 100_000
"""Steps after which an episode without an end is cut off (recorded as truncated)."""


@dataclass(frozen=True)
class Rollouts:
    """What was recorded.

    Attributes:
        batch: the whole episodes, or None if it was stopped before the first had ended.
        frames: their frames (with a sentence where some are missing), or None where none were asked for.
        stopped: whether fewer episodes than asked for were recorded, because somebody stopped it.
        seconds: how long it took.
        about: environment, policy, number of episodes, seed and signals, for `EpisodeStore.add`.
    """

    batch: Transitions | None
    frames: Frames | None
    stopped: bool
    seconds: float
    about: dict[str, Any]


class Recording:
    """A recording that is to be made; everything given is checked here, before anything starts.

    Args: as `record_rollouts`.

    Attributes:
        about: what will be recorded, as plain data.
    """

    def __init__(
        self,
        env: object,
        policy: object = "random",
        *,
        episodes: int = 10,
        seed: int = 0,
        signals: Mapping[str, Signal] | None = None,
        names: Sequence[str] | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        label: str | None = None,
        design: Design | None = None,
        deterministic: bool = True,
        max_steps: int = MAX_STEPS,
        frames: FrameBudget | None = None,
    ) -> None:
        for what, value, low in (("episodes", episodes, 1), ("seed", seed, 0), ("max_steps", max_steps, 1)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
                raise UsageError(f"{what}={value!r:.80} does not fit; give a whole number >= {low}")
        if design is not None and not isinstance(design, Design):
            raise UsageError(
                f"design={design!r:.80} is no Design; read a file with rlnb.Design.from_yaml(path)"
            )
        if label is not None and not isinstance(label, str):
            raise UsageError(f"label={label!r:.80} is no text; give a name for the policy, such as 'expert'")
        if frames is not None and not isinstance(frames, FrameBudget):
            raise UsageError(f"frames={frames!r:.80} is no budget; give FrameBudget(megabytes=8)")
        self._signals = check_signals({} if signals is None else signals)
        self._episodes, self._seed, self._max_steps = int(episodes), int(seed), int(max_steps)
        self._budget, self._design = frames, design
        self._factory = resolve_env(env, env_kwargs)
        spaces = self._factory.spaces()
        self._actor = resolve_policy(
            policy, spaces.action, seed=self._seed, deterministic=deterministic, label=label, env_id=spaces.id
        )
        self._given_names = names
        self._spaces = spaces
        self.about: dict[str, Any] = {
            "env": self._factory.spec, "policy": self._actor.label, "episodes": self._episodes,
            "seed": self._seed, "signals": sorted(self._signals),
        }  # fmt: skip

    def run(
        self,
        progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Rollouts:
        """Plays the episodes; see `record_rollouts`."""
        start = time.monotonic()
        names = component_names(self._spaces.observation, self._spaces.id, self._given_names)
        label = self._factory.label
        env, reason = (self._factory(), "") if self._budget is None else make_drawn(self._factory)
        camera = None if self._budget is None else Camera(self._budget, label, reason)
        stage = _Stage(with_signals(env, self._signals), names, self._design, label, bool(self._signals))
        watch = Watch(self._episodes, start, progress, should_stop or (lambda: False))
        played: list[Transitions] = []
        try:
            while len(played) < self._episodes and not watch.stopped:
                rows = self._episode(stage, camera, watch, len(played))
                if rows is None:
                    break
                played.append(stage.batch(rows, self._actor.label))
        finally:
            stage.env.close()
        return Rollouts(
            Transitions.concat(played) if played else None,
            None if camera is None else camera.frames(),
            len(played) < self._episodes,
            time.monotonic() - start,
            {**self.about, "episodes": len(played)},
        )

    def _episode(
        self, stage: _Stage, camera: Camera | None, watch: Watch, number: int
    ) -> list[tuple[Any, ...]] | None:
        """Plays one episode and returns its rows, or None if it was stopped."""
        actor, space = self._actor, stage.env.action_space
        actor.begin()
        raw, seen = stage.reset(self._seed + number)
        if camera is not None:
            camera.begin(stage.env, number)
        watch.begin(number + 1)
        rows: list[tuple[Any, ...]] = []
        while not rows or not (rows[-1][4] or rows[-1][5]):
            if watch.asks_to_stop():
                if camera is not None:
                    camera.drop(number)
                return None
            action = as_action(actor.act(seen), space, actor.label)
            result = stage.env.step(action)
            check_step(result, stage.label)
            obs, reward, terminated, truncated, info = result
            cut = bool(truncated) or len(rows) + 1 >= self._max_steps
            ends = bool(terminated), cut and not terminated
            after = stage.raw(obs)
            with np.errstate(over="ignore"):  # as a vector environment passes it on: 1e300 is infinite there
                paid = np.float32(reward)
            rows.append((raw, after, action, paid, *ends, dict(info)))
            if camera is not None:
                camera.after_step(stage.env, len(rows), last=any(ends))
            if not any(ends):
                seen = stage.show(obs)
            raw = after
            watch.stepped(float(rows[-1][3]), ended=any(ends))
        return rows


class _Stage:
    """One environment, and what the policy sees of it."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        names: tuple[str, ...],
        design: Design | None,
        label: str,
        signals: bool,
    ) -> None:
        self.env, self.label = env, label
        self._names, self._signals = names, signals
        self._space = env.observation_space
        self._seen = None if design is None else DesignApplier(design, self._space, names, 1)

    def reset(self, seed: int) -> tuple[Any, Any]:
        """Begins an episode; returns the raw row and what the policy sees."""
        obs, _ = check_reset(self.env.reset(seed=seed), self.label)
        return self.raw(obs), obs if self._seen is None else self._seen.reset(as_batch(obs))[0]

    def raw(self, obs: Any) -> Any:
        return as_rows(self._space, as_batch(obs))[0]

    def show(self, obs: Any) -> Any:
        return obs if self._seen is None else self._seen.observe(as_batch(obs))[0]

    def batch(self, rows: list[tuple[Any, ...]], policy: str) -> Transitions:
        obs, after, action, reward, terminated, truncated, infos = zip(*rows, strict=True)
        return Transitions.from_arrays(
            np.stack(obs), np.stack(after), np.stack(action), reward=np.asarray(reward, dtype=np.float64),
            terminated=np.asarray(terminated), truncated=np.asarray(truncated),
            t=np.arange(len(rows), dtype=np.int64), names=self._names, infos=list(infos),
            signals=[info[KEY] for info in infos] if self._signals else None, labels={0: policy},
        )  # fmt: skip


def record_rollouts(
    env: object,
    policy: object = "random",
    *,
    episodes: int = 10,
    seed: int = 0,
    signals: Mapping[str, Signal] | None = None,
    names: Sequence[str] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    label: str | None = None,
    design: Design | None = None,
    deterministic: bool = True,
    max_steps: int = MAX_STEPS,
    frames: FrameBudget | None = None,
    progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Rollouts:
    """Plays whole episodes, perhaps with pictures.

    Args:
        env: gymnasium id, class or function.
        policy: "random", "idle", "sticky", a function of one observation, or a model.
        episodes: how many, >= 1. Episode i starts from `reset(seed=seed + i)`.
        seed: of the first episode and of random actions.
        signals, names, env_kwargs, label, design, deterministic, max_steps: as in `rlnb.record`.
        frames: room for pictures; None takes none. They change nothing of what is recorded.
        progress: called after every episode, and every 0.2 s within long ones, from this thread.
        should_stop: asked before every step; True ends the recording with the episodes that are whole.

    Raises:
        UsageError: (its kinds) as `rlnb.record`.
    """
    recording = Recording(
        env, policy, episodes=episodes, seed=seed, signals=signals, names=names, env_kwargs=env_kwargs,
        label=label, design=design, deterministic=deterministic, max_steps=max_steps, frames=frames,
    )  # fmt: skip
    return recording.run(progress, should_stop)
