"""The Trainer for SB3: hooks into `learn()` instead of a second loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import KVWriter
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from rlnb.design.design import Design
from rlnb.envs.signals import Signal
from rlnb.run.experiment import ExperimentSpec
from rlnb.train.callback_state import as_callbacks, stateless_reasons
from rlnb.train.envstate import StateKind
from rlnb.train.hashing import crc32
from rlnb.train.model import build_model, set_quiet_logger
from rlnb.train.probe import ProbeResult, probe_env
from rlnb.train.replay import ReplayLog
from rlnb.train.seam import AtEpisode, AtSafePoint, AtValues, EpisodeEnd
from rlnb.train.snapshot import Restorable, Snapshot, capture, restore
from rlnb.train.vecenv import MakeEnv, MonitoredFactory, TrainingEnv, make_training_env


class LeaveTraining(BaseException):
    """Leaves `learn()` at a safe point; SB3 has no way to be told so there.

    A BaseException, so that no `except Exception` of a callback swallows it.
    """


class SafePoints(BaseCallback):
    """Tells the trainer of safe points and finished episodes.

    SAC comes to a safe point at every step, so both hooks cost microseconds.
    """

    def __init__(self, at_safe_point: Callable[[], None], at_episode: AtEpisode) -> None:
        super().__init__()
        self._at_safe_point, self._at_episode = at_safe_point, at_episode

    def _on_rollout_start(self) -> None:
        self._at_safe_point()

    def _on_step(self) -> bool:
        dones = self.locals["dones"]
        if dones.any():
            for index in np.flatnonzero(dones):
                self._at_episode(
                    _episode_end(int(index), self.locals["infos"][index], self.model.num_timesteps)
                )
        return True


class Dumps(KVWriter):
    """Passes on whatever SB3's logger dumps, at once."""

    def __init__(self) -> None:
        self.at_values: AtValues | None = None

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        if self.at_values is not None:
            self.at_values(step, key_values)

    def close(self) -> None:
        """Nothing is open."""


class SB3Trainer:
    """Trains one experiment with SB3.

    Args:
        spec: the experiment.
        make_env: makes one environment.
        design: reward and state, Python terms bound.
        callbacks: the user's SB3 callbacks or functions.
        signals: functions of the environment, by name.
        probe: what `probe_env` found, when it was asked before.

    Attributes:
        initial: CRC32 of each environment's first observation and state.
        replay: what has been written of the replay buffer.
    """

    model: BaseAlgorithm
    env: TrainingEnv

    def __init__(
        self,
        spec: ExperimentSpec,
        *,
        make_env: MakeEnv,
        design: Design,
        callbacks: Sequence[Any] = (),
        signals: Mapping[str, Signal] | None = None,
        probe: ProbeResult | None = None,
    ) -> None:
        self.spec, self.make_env, self.design, self.signals = spec, make_env, design, signals
        self.callbacks = as_callbacks(callbacks)
        self.probe = probe
        self._dumps = Dumps()
        self.initial: dict[str, list[int]] = {}
        self.replay: ReplayLog | None = None
        self.restored: Mapping[str, Any] | None = None
        self._pending: Restorable | None = None
        self._ended = False

    @property
    def step(self) -> int:
        return self.model.num_timesteps

    def setup(self) -> None:
        if self.probe is None:
            self.probe = probe_env(MonitoredFactory(self.make_env, self.signals))
        self.env = make_training_env(
            self.spec, make_env=self.make_env, design=self.design, signals=self.signals, kind=self.probe.kind
        )
        self.model = build_model(self.spec, self.env.outer)
        set_quiet_logger(self.model, self._dumps)
        if getattr(self.model, "replay_buffer", None) is not None:
            self.replay = ReplayLog()

    def inexact_reasons(self) -> list[str]:
        """Says what of this experiment cannot be captured."""
        assert self.probe is not None
        reasons = stateless_reasons(self.callbacks) + stateful_terms(self.design)
        if self.probe.kind is StateKind.NONE:
            reasons.append(f"the environment's state cannot be captured ({self.probe.reason})")
        if self.probe.outside:
            reasons.append(f"the environment changes {', '.join(self.probe.outside)} outside itself")
        return reasons

    def step_until_safe(self, at_safe_point: AtSafePoint, at_episode: AtEpisode, at_values: AtValues) -> bool:
        first, model, schedule = True, self.model, log_interval(self.model)
        self._dumps.at_values = at_values

        def arrive() -> None:
            nonlocal first
            if first:
                first = False
                self._note_initial()
                if self._pending is not None:
                    self._put_back(self._pending)
                    self._pending = None
            elif isinstance(model, OnPolicyAlgorithm) and _iteration(model) % schedule == 0:
                model.dump_logs(_iteration(model))
            if not at_safe_point():
                raise LeaveTraining

        safe_points = SafePoints(arrive, at_episode)
        callback = CallbackList([safe_points, *self.callbacks]) if self.callbacks else safe_points
        try:
            # SB3 dumps before it updates, and counts iterations from where `learn()` began; so that a row holds the
            # update of its own iteration, and that a resumed run has the same rows, on-policy dumps are made above.
            own = None if isinstance(model, OnPolicyAlgorithm) else schedule
            model.learn(self.spec.total_timesteps, callback=callback, log_interval=own)  # type: ignore[arg-type]
        except LeaveTraining:
            callback.on_training_end()
            return False
        self._ended = True
        # A callback that returns False ends SB3's learn() too; the steps then say so.
        return self.step >= self.spec.total_timesteps

    def tell_rest(self) -> None:
        """Has what was logged since the last row told, at the end of training."""
        model: Any = self.model
        model.dump_logs(*([_iteration(model)] if isinstance(model, OnPolicyAlgorithm) else []))

    def snapshot(self, extra: dict[str, Any] | None = None) -> Snapshot:
        return capture(
            self.model,
            self.env,
            callbacks=self.callbacks,
            replay=self.replay,
            extra=extra,
            at_end=self._ended,
        )

    def restore(self, saved: Restorable) -> None:
        self._pending = saved

    def restore_ended(self, saved: Restorable) -> None:
        """Puts back a snapshot of a training that has nothing left to do, without a `learn()`."""
        self.model._setup_learn(self.spec.total_timesteps, None)
        self._note_initial()
        self._put_back(saved)
        self._ended = True

    def close(self) -> None:
        """Ends the environments and their workers."""
        if hasattr(self, "env"):
            self.env.close()

    def _put_back(self, saved: Restorable) -> None:
        assert self.probe is not None
        kept = (
            saved
            if self._same_envs(saved)
            else Restorable(saved.state, saved.tensors, None, saved.read_chunk)
        )
        self.restored = restore(self.model, self.env, kept, callbacks=self.callbacks, replay=self.replay)

    def _same_envs(self, saved: Restorable) -> bool:
        return (
            saved.envs is not None
            and len(saved.envs) == self.spec.n_envs
            and all(one["env"] is not None for one in saved.envs)
            and self.probe is not None
            and saved.state["extra"].get("env_state") == self.probe.kind.value
        )

    def _note_initial(self) -> None:
        observation: Any = self.model._last_obs
        self.initial = {
            "observations": [crc32(_row(observation, index)) for index in range(self.spec.n_envs)],
            **self.env.initial_crcs(),
        }


def log_interval(model: BaseAlgorithm) -> int:
    """How often SB3 itself logs: iterations on-policy (A2C: 100, others: 1), episodes off-policy (4)."""
    return int(inspect.signature(type(model).learn).parameters["log_interval"].default)


def _iteration(model: OnPolicyAlgorithm) -> int:
    """Iterations done, over all attempts."""
    return int(model.num_timesteps // (model.n_steps * model.n_envs))


def _row(observation: Any, index: int) -> Any:
    if isinstance(observation, dict):
        return {key: value[index] for key, value in observation.items()}
    return observation[index]


def _episode_end(index: int, info: Mapping[str, Any], step: int) -> EpisodeEnd:
    success = info.get("is_success")
    sums = info.get("rlnb.episode")
    if sums is None:  # the design changes nothing: SB3's Monitor has counted
        episode = info["episode"]
        sums = {
            "return": episode["r"],
            "return_env": episode["r"],
            "length": episode["l"],
            "terms": {},
            "values": {},
        }
    return EpisodeEnd(
        step, index, sums["return"], sums["return_env"], int(sums["length"]),
        None if success is None else float(success), sums["terms"], sums["values"],
    )  # fmt: skip


def stateful_terms(design: Design) -> list[str]:
    """Names reward terms that are objects with attributes and cannot give and take their state."""
    reasons = []
    for term in design.reward.terms:
        function = getattr(term, "function", None)
        own = getattr(function, "__dict__", {}) if function is not None else {}
        plain = type(function).__name__ in ("function", "builtin_function_or_method", "RewardTerm")
        if function is not None and not plain and own and not hasattr(function, "state_dict"):
            reasons.append(f"the reward term {term.name} has no state_dict")
    return reasons
