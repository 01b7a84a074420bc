"""A checkpoint's policy on raw observations: it sees what the run's design and VecNormalize showed it, frozen."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from rlnb.design.design import Design
from rlnb.design.state import StateContext, StateSpec
from rlnb.envs.observations import as_batch, as_rows
from rlnb.errors import EnvError
from rlnb.run.checkpoints import find_checkpoint
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.layout import RunLayout
from rlnb.train.load import load_model
from rlnb.train.snapshot import read_snapshot
from rlnb.train.vecenv import restore_normalize

_STATISTICS = ("mean", "variance", "count")


class TrainedActor:
    """Acts as a run's policy did, one raw observation at a time.

    Args:
        layout: the run folder.
        which: "best", "latest", "final", or a checkpoint's step.
        spec: the run's experiment.
        space: the environment's own observation space.
        label: the policy's name in recordings.

    Attributes:
        label: as given.
        model: SB3's model.

    Raises:
        CheckpointError: there is no such checkpoint, or it is damaged.
        ExperimentError: the policy is made of classes that exist only in the notebook.
        DesignError: the run's state design does not fit the space.
        EnvError: the run was trained on observations of another shape.
    """

    def __init__(
        self, layout: RunLayout, which: str | int, *, spec: ExperimentSpec, space: gym.Space[Any], label: str
    ) -> None:
        self.label = label
        checkpoint = find_checkpoint(layout, which)
        vector = read_snapshot(checkpoint, envs=False).state["vector"]
        self.model = load_model(layout, checkpoint.step if isinstance(which, int) else which, spec=spec)
        self._space = space
        self._first = True
        self._memory: Any = None
        # The reward's Python terms may live in the notebook of the run; what it saw needs the state only.
        self._state: StateSpec = Design.from_dict({"state": spec.design.get("state") or []}).state
        names = spec.names or ()
        shown = self._state.space(space, names)
        self._context = _frozen(self._state, space, names, vector["design"])
        _check_shape(shown, self.model.observation_space, label)
        self._normalize = None if spec.normalize is None else _normalizer(spec, shown, vector["normalize"])

    def __repr__(self) -> str:
        return f"TrainedActor({self.label!r}: {type(self.model).__name__}, step {self.model.num_timesteps:,})"

    def begin_episode(self) -> None:
        """Forgets the running episode; call it before the first observation of each."""
        self._first, self._memory = True, None

    def seen(self, obs: Any) -> Any:
        """Returns what the networks see of the next raw observation, as a batch of one."""
        batch = as_batch(obs)
        if not self._state.is_identity:
            starts = np.array([self._first])
            batch = self._state.transform(as_rows(self._space, batch), self._context, starts=starts)
        elif isinstance(self._space, gym.spaces.Dict):
            batch = {key: value.astype(self._space[key].dtype) for key, value in batch.items()}
        else:
            batch = as_rows(self._space, batch)
        self._first = False
        return batch if self._normalize is None else self._normalize.normalize_obs(batch)

    def predict(self, obs: Any, deterministic: bool = True) -> tuple[Any, None]:
        """Returns the action for the next raw observation of an episode, as SB3's `predict` does.

        Args:
            obs: one observation of the environment itself.
            deterministic: act by the distribution's mode instead of sampling.
        """
        action, self._memory = self.model.predict(
            self.seen(obs), state=self._memory, deterministic=deterministic
        )
        return action[0], None


class _Spaces(VecEnv):
    """Stands where VecNormalize asks for a vector environment: it has spaces and nothing to step."""

    def __init__(self, observation: gym.Space[Any], action: gym.Space[Any]) -> None:
        super().__init__(1, observation, action)

    def reset(self) -> Any:
        raise NotImplementedError

    def step_async(self, actions: Any) -> None:
        raise NotImplementedError

    def step_wait(self) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None]  # SB3 asks for the render mode

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False]


def _normalizer(spec: ExperimentSpec, shown: gym.Space[Any], state: dict[str, Any]) -> VecNormalize | None:
    """Returns the run's VecNormalize with its statistics, frozen."""
    given = dict(spec.normalize or {})
    # The actions play no part in it.
    made = VecNormalize(_Spaces(shown, gym.spaces.Discrete(1)), **{**given, "training": False})
    restore_normalize(made, state, running=False)
    return made


def _frozen(
    state: StateSpec, space: gym.Space[Any], names: tuple[str, ...], saved: dict[str, Any] | None
) -> StateContext:
    """Returns a memory for one environment with the run's running statistics, which stay as they are."""
    context = state.initial_state(1, space, names)
    context.learning = False
    if saved is not None:
        kept = {
            name: value
            for name, value in saved["applier"]["context"].items()
            if name.rpartition(".")[2] in _STATISTICS
        }
        context.load_state_dict({"known": np.zeros(1, dtype=bool), **kept})
    return context


def _check_shape(shown: gym.Space[Any], trained: gym.Space[Any], label: str) -> None:
    def shape(space: gym.Space[Any]) -> Any:
        if isinstance(space, gym.spaces.Dict):
            return {key: shape(part) for key, part in sorted(space.spaces.items())}
        # SB3 puts an image's channels first
        return sorted(space.shape or ())

    if shape(shown) != shape(trained):
        raise EnvError(
            f"{label} was trained on observations of {trained}, and this environment with the run's design "
            f"shows {shown}; give the environment of the run"
        )
