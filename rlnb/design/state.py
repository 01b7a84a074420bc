"""StateSpec: what the agent sees, as a value.

An observation's components pass through a list of operations in float64 and are cast once to float32. The
resulting observation space follows from the bounds of the environment's and is never written by hand.
Pictures stay pictures: bytes as uint8, anything else as float32.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlnb.design.columns import Array
from rlnb.design.operations.elementwise import OPERATIONS, Clip, Delta, Derive, Scale, Select
from rlnb.design.operations.images import Grayscale, Resize, ToUnit
from rlnb.design.operations.operation import Operation
from rlnb.design.operations.stack import Stack
from rlnb.design.operations.standardize import RunningZScore, ZScore
from rlnb.design.plan import MAX_DIMENSIONS, Stage, StateContext, StatePlan
from rlnb.errors import DesignError

__all__ = [
    "MAX_DIMENSIONS", "OPERATIONS", "Clip", "Delta", "Derive", "Grayscale", "Operation", "Resize",
    "RunningZScore", "Scale", "Select", "Stack", "Stage", "StateContext", "StatePlan", "StateSpec", "ToUnit",
    "ZScore",
]  # fmt: skip


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
            float32 (n, d), or pictures (n, ...); `raw` itself where the design is the identity.
        """
        return context.plan.transform(raw, context, starts=starts, envs=envs, peek=peek)
