"""StateSpec: what the agent sees, as a value.

An observation's components pass through a list of operations in float64 and are cast once to float32. The
resulting observation space follows from the bounds of the environment's and is never written by hand.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.components import Components
from rlnb.design.memory import Live, Memory, Recorded
from rlnb.design.operation import Apply, Operation
from rlnb.design.operations import OPERATIONS, Clip, Delta, Derive, Scale, Select
from rlnb.design.spaces import flatten_batch, space_bounds
from rlnb.design.standardize import RunningZScore, ZScore
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError

__all__ = [
    "OPERATIONS", "Clip", "Delta", "Derive", "Operation", "RunningZScore", "Scale", "Select",
    "StateContext", "StatePlan", "StateSpec", "ZScore",
]  # fmt: skip

#: more components than this make learning slow; a state design should stay below
MAX_DIMENSIONS = 100


@dataclass(frozen=True)
class StateSpec:
    """A state design: operations, applied in order. Without any, observations pass untouched."""

    ops: Sequence[Operation] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        given: Any = self.ops
        if isinstance(given, Operation):
            object.__setattr__(self, "ops", (given,))
        elif isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            object.__setattr__(self, "ops", [given])  # refused below, by its value
        for operation in self.ops:
            if not isinstance(operation, Operation):
                raise DesignError(
                    f"A state is made of operations ({', '.join(OPERATIONS)}), not of {operation!r:.60}; "
                    "write e.g. rlnb.Select(['x'])."
                )
        object.__setattr__(self, "ops", tuple(self.ops))

    @property
    def is_identity(self) -> bool:
        """Observations pass untouched, in their own dtype and space."""
        return not self.ops

    def plan(self, observation_space: Any, names: Sequence[str]) -> StatePlan:
        """Fits the operations to an environment's observation space.

        Args:
            observation_space: gymnasium space of one environment.
            names: its components' names (`names.component_names`).

        Raises:
            DesignError: an operation names a component that is not there, or the space has none.
        """
        return StatePlan(self, observation_space, names)

    def space(self, observation_space: Any, names: Sequence[str]) -> Any:
        """Returns the observation space that results; warns above 100 dimensions (UserWarning).

        Raises:
            DesignError: as `plan`.
        """
        plan = self.plan(observation_space, names)
        for sentence in plan.advice():
            warnings.warn(sentence, stacklevel=2)
        return plan.space

    def initial_state(self, n_envs: int, observation_space: Any, names: Sequence[str]) -> StateContext:
        """Returns the memory of `n_envs` environments that have not begun."""
        return StateContext(self.plan(observation_space, names), n_envs)

    def transform(
        self,
        raw: Any,
        context: StateContext,
        *,
        starts: Array | None = None,
        envs: Array | None = None,
        peek: bool = False,
    ) -> Any:
        """Transforms the observations of one step of a vector environment.

        Args:
            raw: (n, ...), or a mapping of such arrays for a Dict space.
            context: from `initial_state`; remembers the rows and the running statistics.
            starts: bool (n,), rows that are the first of an episode (after a reset).
            envs: which environments the rows belong to; None: all, in order.
            peek: the rows are only looked at and nothing is remembered; for the last observation of an
                episode, which a vector environment hands over beside the first of the next. Peek first.

        Returns:
            float32 (n, d); `raw` itself where the design is the identity.
        """
        return context.plan.transform(raw, context, starts=starts, envs=envs, peek=peek)


class StateContext(Live):
    """What the operations remember of `n_envs` environments; `learning = False` freezes statistics."""

    def __init__(self, plan: StatePlan, n_envs: int) -> None:
        super().__init__(n_envs)
        self.plan = plan


class StatePlan:
    """A state design fitted to one observation space.

    Attributes:
        space: the resulting gymnasium space; the original one where the design is the identity.
        names: names of the resulting components.
    """

    def __init__(self, spec: StateSpec, observation_space: Any, names: Sequence[str]) -> None:
        self.spec = spec
        self._source = observation_space
        self._steps: list[Apply] = []
        self.names = tuple(names)
        self.space: Any = observation_space
        if spec.is_identity:
            return
        low, high = space_bounds(observation_space)
        if len(low) != len(self.names):
            raise DesignError(
                f"The observation has {len(low)} components and {len(self.names)} names; a state design works "
                "on named components, so give names= or leave images as they are."
            )
        components = Components(self.names, low, high)
        for key, operation in enumerate(spec.ops):
            with np.errstate(all="ignore"):
                components, step = operation.fit(components, key)
            self._steps.append(step)
        self.names = components.names
        self.components = components
        self.space = _box(components)

    def advice(self) -> list[str]:
        """Returns sentences about what is allowed but unwise."""
        shape: tuple[int, ...] = self.space.shape or ()
        if len(shape) == 1 and shape[0] > MAX_DIMENSIONS:
            return [
                f"The state has {shape[0]} dimensions, more than {MAX_DIMENSIONS}; learning will be slow: "
                "select the components that the task needs."
            ]
        return []

    def transform(
        self,
        raw: Any,
        context: StateContext,
        *,
        starts: Array | None = None,
        envs: Array | None = None,
        peek: bool = False,
    ) -> Any:
        """Transforms one step's observations; see `StateSpec.transform`."""
        if not self._steps:
            return raw
        context.begin(envs=envs, starts=starts, peek=peek)
        transformed = self._run(flatten_batch(self._source, raw), context)
        context.end()
        return transformed

    def preview(self, batch: Transitions, context: StateContext | None = None) -> tuple[Array, Array]:
        """Transforms a recorded batch with the operations that training uses.

        Args:
            context: where running statistics are taken from; without one, they are those of the batch.

        Returns:
            (obs, next_obs), float32 (n, d) each; as stored where the design is the identity. A batch that
            begins in the middle of an episode has no row before its first: its deltas are 0 there.
        """
        if not self._steps:
            return batch.obs.matrix, batch.next_obs.matrix
        starts = np.asarray(batch.t == 0)
        if len(starts):
            starts = starts.copy()
            starts[batch.starts] = True
        memory = Recorded(starts, context.known_statistics() if context else {})
        obs = self._run(flatten_batch(self._source, batch.obs.matrix), memory)
        return obs, self._run(flatten_batch(self._source, batch.next_obs.matrix), memory.following())

    def _run(self, flat: Array, memory: Memory) -> Array:
        values = np.asarray(flat, dtype=np.float64)
        with np.errstate(all="ignore"):
            for step in self._steps:
                values = step(values, memory)
            return np.ascontiguousarray(values, dtype=np.float32)


def _box(components: Components) -> Any:
    from gymnasium import spaces

    with np.errstate(all="ignore"):
        low, high = (end.astype(np.float32) for end in (components.low, components.high))
    return spaces.Box(low, high, dtype=np.float32)
