"""StatePlan: a state design fitted to one observation space, for one step and for a recording alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.memory import Live, Memory, Recorded
from rlnb.design.operations.components import Components
from rlnb.design.operations.image_layout import ImageLayout, is_image
from rlnb.design.operations.images import ImageOperation
from rlnb.design.operations.operation import Apply, Operation
from rlnb.design.operations.stack import Stack
from rlnb.design.spaces import MAX_NAMED, flatten_batch, space_bounds
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError

if TYPE_CHECKING:
    from rlnb.design.state import StateSpec

#: more components than this make learning slow; a state design should stay below
MAX_DIMENSIONS = 100


class StateContext(Live):
    """What the operations remember of `n_envs` environments; `learning = False` freezes statistics."""

    def __init__(self, plan: StatePlan, n_envs: int) -> None:
        super().__init__(n_envs)
        self.plan = plan


@dataclass(frozen=True, eq=False)
class Stage:
    """What there is after an operation.

    Attributes:
        op: the operation; None for the raw observation.
        space: gymnasium space of one observation at this point.
        names: of its components; () for a picture.
        low: float64 (d,), bounds of the components, of a picture's shape for a picture; `high` likewise.
    """

    op: Operation | None
    space: Any
    names: tuple[str, ...]
    low: Array
    high: Array


class StatePlan:
    """A state design fitted to one observation space.

    Attributes:
        space: the resulting gymnasium space; the original one where the design is the identity.
        names: names of the resulting components; () for a picture.

    Raises:
        DesignError: an operation does not fit what it finds.
    """

    def __init__(self, spec: StateSpec, observation_space: Any, names: Sequence[str]) -> None:
        self.spec = spec
        self._source = observation_space
        self._source_names = tuple(names)
        self._steps: list[Apply] = []
        self._forms: list[Components | ImageLayout] = []
        if not spec.is_identity:
            form = _entrance(spec.ops[0], observation_space, self._source_names)
            self._forms.append(form)
            for key, operation in enumerate(spec.ops):
                step: Apply
                with np.errstate(all="ignore"):
                    if isinstance(form, ImageLayout):
                        form, step = operation.fit_image(form, key)
                    else:
                        form, step = operation.fit(form, key)
                self._forms.append(form)
                self._steps.append(step)
        self.names = self._names_after(len(self._steps))
        self.space: Any = self._space_after(len(self._steps))

    @property
    def layout(self) -> ImageLayout | None:
        """The resulting picture's, or None where the result is no picture (or the design the identity)."""
        form = self._forms[-1] if self._forms else None
        return form if isinstance(form, ImageLayout) else None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """What there is before the first operation (the raw observation) and after each.

        Raises:
            DesignError: the space has no components (`spaces`).
        """
        found = []
        for upto in range(len(self._steps) + 1):
            space = self._space_after(upto)
            form = self._forms[upto] if self._forms else None
            if isinstance(form, Components):
                low, high = form.low, form.high
            elif form is not None:
                low, high = (np.broadcast_to(np.float64(end), form.shape) for end in (form.low, form.high))
            else:
                low, high = space_bounds(space)
            operation = self.spec.ops[upto - 1] if upto else None
            found.append(Stage(operation, space, self._names_after(upto), low, high))
        return tuple(found)

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
        transformed = self._run(raw, context, len(self._steps))
        context.end()
        return transformed

    def preview(
        self, batch: Transitions, context: StateContext | None = None, *, upto: int | None = None
    ) -> tuple[Array, Array]:
        """Transforms a recorded batch with the operations that training uses.

        Args:
            context: where running statistics are taken from; without one, they are those of the batch.
            upto: how many of the operations are applied, as `stages[upto]` says; None: all.

        Returns:
            (obs, next_obs), float32 (n, d) each, or pictures (n, ...); as stored where no operation is
            applied. A batch that begins in the middle of an episode has no row before its first: its deltas
            are 0 there, and stacks repeat it.

        Raises:
            DesignError: there are not so many operations.
        """
        count = len(self._steps) if upto is None else upto
        if not 0 <= count <= len(self._steps):
            raise DesignError(
                f"upto={upto} does not fit; the state has {len(self._steps)} operations, so give 0 to "
                f"{len(self._steps)}."
            )
        if not count:
            return batch.obs.matrix, batch.next_obs.matrix
        starts = np.asarray(batch.t == 0)
        if len(starts):
            starts = starts.copy()
            starts[batch.starts] = True
        memory = Recorded(starts, context.known_statistics() if context else {})
        obs = self._run(batch.obs.matrix, memory, count)
        return obs, self._run(batch.next_obs.matrix, memory.following(), count)

    def _run(self, raw: Any, memory: Memory, upto: int) -> Array:
        entrance, last = self._forms[0], self._forms[upto]
        values: Array
        if isinstance(entrance, ImageLayout):
            values = entrance.batch(raw)
        else:
            values = np.asarray(flatten_batch(self._source, raw), dtype=np.float64)
        with np.errstate(all="ignore"):
            for step in self._steps[:upto]:
                values = step(values, memory)
            return np.ascontiguousarray(values, last.dtype if isinstance(last, ImageLayout) else np.float32)

    def _names_after(self, upto: int) -> tuple[str, ...]:
        if not upto:
            return self._source_names
        form = self._forms[upto]
        return form.names if isinstance(form, Components) else ()

    def _space_after(self, upto: int) -> Any:
        if not upto:
            return self._source
        form = self._forms[upto]
        return _box(form) if isinstance(form, Components) else form.space


def _entrance(first: Operation, space: Any, names: tuple[str, ...]) -> Components | ImageLayout:
    """Returns what the first operation finds: a picture where only a picture will do, else named numbers."""
    if isinstance(first, ImageOperation) or (
        isinstance(first, Stack) and first.names is None and is_image(space)
    ):
        return ImageLayout.of(space)
    if not names and is_image(space):
        return ImageLayout.of(space)  # which the operation will refuse, saying what there is
    low, high = space_bounds(space)
    if len(low) != len(names):
        raise DesignError(
            f"The observation has {len(low)} components and {len(names)} names; the state operation "
            f"{first.kind} works on named numbers, of which there may be {MAX_NAMED}, so give one name for each "
            "or let a wrapper reduce the observation."
        )
    return Components(names, low, high)


def _box(components: Components) -> Any:
    from gymnasium import spaces

    with np.errstate(all="ignore"):
        low, high = (end.astype(np.float32) for end in (components.low, components.high))
    return spaces.Box(low, high, dtype=np.float32)
